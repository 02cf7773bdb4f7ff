"""A stream that has a bit of everything, and what the pipeline makes of it."""

import numpy as np
import orjson
import pytest

from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.settings.value_types import CHOSEN_EVENTS
from faust_oslrau.topics import Record

TRACE = (("traceparent", b"00-1f-2e-01"), ("tracestate", b"a=b"))
START = 1767225600000


def record(offset, value, key=b"k", time=START):
    return Record("features", 1, offset, time, key, value, TRACE)


def process(records, **settings):
    return PartitionPipeline("features", 1, Settings(**settings)).process(records)


NEW = {2000, *range(6000, 6040)}
"""Records with another category, which is to blame beside numbers."""


@pytest.fixture(scope="session")
def processed():
    """What the pipeline makes of a stream that changes, with anomalies and bad records."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(9000, 3))
    rows[6000:] = 3 * rows[6000:] + 2
    rows[2000, 0] = 1000.0
    values = [
        orjson.dumps(dict(zip("abc", row, strict=True)) | {"s": "new" if i in NEW else "s"})
        for i, row in enumerate(rows.tolist())
    ]
    keys = [b"silent" if 100 < row < 2000 and row % 9 == 0 else b"k" for row in range(9002)]
    values += [b"broken", b'"%b"' % (b"x" * 100_000)]
    records = [
        record(i, value, key, None if i == 7 else START + i)
        for i, (key, value) in enumerate(zip(keys, values, strict=True))
    ]
    return process(
        records, features=["a", "b", "c", "s"], kinds=[("s", "category")], max_message_bytes=1024,
        entity="key", events=("records", *CHOSEN_EVENTS), forecasts=True,
    )  # fmt: skip


@pytest.fixture(scope="session")
def of_entities():
    """What the pipeline tells of 40 entities, of which three differ from all others."""
    rng = np.random.default_rng(1)
    of = rng.integers(40, size=9000)
    state = np.where(of == 9, 0.0, rng.choice([-3.0, 3.0], 9000))  # all but one have two
    rows = rng.normal(size=(9000, 2)) + rng.normal(size=(40, 2))[of] + state[:, None]
    rows[of == 7, 0] += 30.0
    rows[of == 8, 1] *= 20.0
    values = [orjson.dumps({"a": a, "b": b}) for a, b in rows.tolist()]
    records = [record(i, value, b"machine-%d" % of[i]) for i, value in enumerate(values)]
    records[6000] = records[6000]._replace(key=b"new")
    return process(records, entity="key", events=("records", *CHOSEN_EVENTS)).entity_events


@pytest.fixture(scope="session")
def of_rates():
    """What the pipeline tells of a partition of which most records cease to come."""
    value = b'{"a": 1.0, "b": "x"}'
    seconds = [second for second in range(900) if second < 800 or second % 5 == 0]
    records = [record(second, value, time=START + 1000 * second) for second in seconds]
    changes = []
    for more in ({"entity": "key"}, {"rates_by": "b"}):
        changes += process(records, features=["a"], rates="20s", **more).rate_changes
    return [change for change in changes if b'"entity"' in change.value or b'"b"' in change.value]


@pytest.fixture(scope="session")
def of_fields():
    """What the pipeline tells of a partition whose fields change."""
    before, after = b'{"a": %d, "b": 1}', b'{"a": %d000, "b": "x"}'
    values = [(before, after)[i > 3000] % (i % 97 + 50) for i in range(6000)]
    records = [record(i, value) for i, value in enumerate(values)]
    return process(records, features=["a", "b"]).field_changes


@pytest.fixture(scope="session")
def sent(processed, of_entities, of_rates, of_fields):
    """All messages that are JSON, by kind."""
    return {
        "score": processed.scores, "anomaly": processed.anomalies, "incident": processed.incidents,
        "silence": processed.silences, "rate": of_rates, "field": of_fields,
        "drift": processed.events, "entity": of_entities,
    }  # fmt: skip


@pytest.fixture(scope="session")
def messages(sent):
    """The same as plain data."""
    return {kind: [orjson.loads(message.value) for message in sent[kind]] for kind in sent}
