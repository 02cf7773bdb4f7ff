"""`faust-oslrau inspect --entity`: what a snapshot knows of an entity."""

import math

import numpy as np
import orjson
import pytest
from as_records import as_records
from faust.types import TP

from faust_oslrau.app.commands.inspect import _details, entity_text
from faust_oslrau.app.offline import inspection
from faust_oslrau.app.pipeline import PartitionPipeline, Successor
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots import StoredSnapshot
from faust_oslrau.learner.state import Extent
from faust_oslrau.topics import Record

MACHINES, N = 30, 5200


@pytest.fixture(scope="module")
def found():
    """A snapshot of machines, of which `press` is far hotter than all others."""
    rng = np.random.default_rng(0)
    of = rng.integers(MACHINES, size=N)
    rows = rng.normal(size=(N, 2)) + 3.0 * rng.normal(size=(MACHINES, 2))[of] + [60.0, 5.0]
    rows[of == 3, 0] += 50.0
    names = [b"press" if at == 3 else b"m%d" % at for at in range(MACHINES)]
    records = [
        Record("features", 2, offset, 0, names[of[offset]], orjson.dumps({"heat": a, "noise": b}))
        for offset, (a, b) in enumerate(rows.tolist())
    ]
    pipeline = PartitionPipeline("features", 2, Settings(entity="key"))
    pipeline.process(records)
    data = pipeline.snapshot(0, N).to_bytes()
    return _found(N, data), rows[of == 3]


def _found(offset, data):
    stored = StoredSnapshot("here", offset, 0, Extent.of(data))
    return inspection._found(TP("features", 2), stored)


def test_level_and_spread_are_those_of_the_entitys_records(found):
    data, rows = inspection.describe_entity(found[0], "press"), found[1]
    assert (data["partition"], data["next_offset"], data["entity"]) == (2, N, "press")
    heat, noise = data["fields"]
    assert (heat["field"], noise["field"]) == ("heat", "noise")
    assert heat["level"] == pytest.approx(rows[:, 0].mean(), abs=1.0)
    assert noise["spread"] == pytest.approx(rows[:, 1].std(), rel=0.3)
    assert heat["usual_level"] == pytest.approx(60.0, abs=3.0)
    assert heat["expected"] == pytest.approx(heat["level"], abs=1.0)
    assert data["entity_p_value"] < 0.001
    assert data["aspects"][0]["aspect"] == "level" and data["aspects"][0]["field"] == "heat"
    orjson.dumps(data)


def test_a_young_entity_cannot_be_compared_yet():
    pipeline = PartitionPipeline("features", 2, Settings(features=("a", "b"), entity="key"))
    pipeline.process(as_records([{"a": at, "b": 2} for at in range(20)], 2, key=b"m"))
    data = pipeline.snapshot(0, 20).to_bytes()
    described = inspection.describe_entity(_found(20, data), "m")
    assert math.isnan(described["entity_p_value"])
    assert "not comparable yet" in entity_text(described)


def test_a_model_that_is_to_follow_with_changed_settings_is_told():
    records = as_records([{"a": at, "b": 2} for at in range(50)], 2)
    old, new = (
        PartitionPipeline("features", 2, Settings(features=of)) for of in (("a",), ("a", "b"))
    )
    successor = Successor(new, 20, "digest")
    old.process(records)
    alone = b"".join(old.snapshot_parts(0, 50))
    successor.learn(records, None)
    data = b"".join(old.snapshot_parts(0, 50, None, successor.snapshot_parts(50, None)))
    found = [_found(50, each) for each in (alone, data)]
    told = [inspection.describe(each, 0.0)["successor"] for each in found]
    assert told[0] is None
    assert (told[1]["start"], told[1]["records"]) == (20, 30)
    assert told[1]["settings"]["features"] == ["a", "b"]
    assert "to be followed: by a model from offset 20, 30 records" in _details(found[1])
