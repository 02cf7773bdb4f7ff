"""The records of entities that somebody looks at."""

from collections import Counter

import numpy as np
import pytest

from faust_oslrau.app.metrics.sampled_rows import SampledRows
from faust_oslrau.app.metrics.watched_entities import WatchedEntities
from faust_oslrau.app.pipeline import ProcessedBlock


def _block(keys, alarming=()):
    m = len(keys)
    nothing = np.full(m, np.nan)
    values = np.arange(m, dtype=float)
    return ProcessedBlock(
        [], [], [], Counter(), nothing, nothing, values / 10, Counter(), 0, Counter(), {},
        rows=values[:, None], keys=keys, alarming=list(alarming),
    )  # fmt: skip


def _times(rows):
    return [(row.time, row.values[0], row.is_anomaly) for row in rows.between(0, 10_000)]


@pytest.mark.parametrize(("size", "blocks"), [(30_000, 40), (20, 1000), (1, 1000)])
def test_the_last_records_are_bounded(size, blocks):
    watched, none = WatchedEntities(10_000), SampledRows(300)
    for time in range(blocks):
        watched.add(time, _block([b"saw"] * size))
    times = [time for time, *_ in _times(watched.watch(b"saw", blocks, none))]
    assert times[-1] == blocks - 1 and len(times) <= 512
    assert len(times) * size <= 65_536
    assert _times(watched.watch(b"mill", blocks, none)) == []


def test_an_entity_that_nobody_asks_for_is_forgotten():
    watched, none = WatchedEntities(60), SampledRows(300)
    rows = watched.watch(b"saw", 0, none)
    watched.add(60, _block([b"saw"]))
    watched.add(61, _block([b"saw"]))
    watched.add(62, _block([b"saw"]))
    assert [time for time, *_ in _times(rows)] == [60]
    assert watched.watch(b"saw", 62, none) is not rows


def test_of_many_entities_the_ones_asked_for_last_are_kept():
    watched, none = WatchedEntities(300), SampledRows(300)
    names = [b"%d" % number for number in range(20)]
    rows = [watched.watch(name, at, none) for at, name in enumerate(names)]
    watched.add(20, _block(names))
    kept = [bool(_times(each)) for each in rows]
    assert kept == [False] * 12 + [True] * 8
