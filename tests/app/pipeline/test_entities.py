"""Entities from the records of a partition to its messages."""

import numpy as np
import orjson

from faust_oslrau.app.pipeline import EntityCounts, PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record

RNG = np.random.default_rng(5)
N = 1200
OF = RNG.integers(9, size=N)
ROWS = 30.0 * OF[:, None] + RNG.normal(size=(N, 2)) * (1 + OF[:, None])
BY_KEY = Settings(features=["a", "b"], entity="key", max_entities=6)


def records(keys=True):
    for offset, (machine, row) in enumerate(zip(OF.tolist(), ROWS.tolist(), strict=True)):
        document = {"a": row[0], "b": row[1], "machine": {"id": machine or None}}
        value = b"broken" if offset % 100 == 99 else orjson.dumps(document)
        key = b"%d" % machine if keys and machine else None
        yield Record("features", 0, offset, None, key, value)


def test_entities_are_counted():
    pipeline = PartitionPipeline("features", 0, BY_KEY)
    first, second = (pipeline.process(list(records())[part]) for part in
                     (slice(0, 600), slice(600, N)))  # fmt: skip
    valid = np.arange(N) % 100 != 99
    without = np.count_nonzero((OF == 0) & valid)
    assert first.entities.held == second.entities.held == 6
    assert first.entities.without + second.entities.without == without
    assert min(first.entities.evicted, second.entities.evicted) > 100
    nothing = pipeline.process([])
    assert nothing.entities == EntityCounts(6, 0, 0)
    assert PartitionPipeline("features", 0, Settings()).process(list(records())).entities is None
