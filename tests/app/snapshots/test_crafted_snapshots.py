"""Snapshots with a right checksum, and their manifests, that no worker wrote are refused."""

from dataclasses import replace

import numpy as np
import orjson
import pytest
from as_records import as_records
from stored_snapshots import MANIFEST

from faust_oslrau.app.pipeline import PartitionPipeline, Snapshot
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots.manifest import Manifest
from faust_oslrau.learner import StateError
from faust_oslrau.learner.state import pack, unpack

_SETTINGS = Settings()


@pytest.fixture(scope="module")
def snapshot():
    pipeline = PartitionPipeline("features", 3, _SETTINGS)
    values = np.random.default_rng(0).normal(size=(300, 2)).tolist()
    pipeline.process(as_records([{"a": a, "b": b} for a, b in values], 3))
    return pipeline.snapshot(0, 300)


@pytest.mark.parametrize(
    "changes",
    [
        {"next_offset": "x"}, {"next_offset": None}, {"next_offset": -1}, {"next_offset": 2.5},
        {"start": 301}, {"partition": "3"}, {"topic": 3}, {"settings": [["batch_size", 256]]},
        {"fields": "ab"}, {"fields": [1, 2]}, {"fields": []}, {"fields": None}, {"left_out": "n"},
        {"topic_id": 7}, {"more": 1}, {"epochs": 3}, {"epochs": [3]}, {"epochs": [[3]]},
        {"epochs": [["3", {}]]}, {"epochs": [[3, []]]},
    ],
    ids=str,
)  # fmt: skip
def test_values_of_another_kind_are_refused(changes, snapshot):
    values, arrays = unpack(snapshot.to_bytes(), "Snapshot")
    with pytest.raises(StateError):
        Snapshot.from_bytes(pack("Snapshot", values | changes, arrays))


def test_a_value_that_is_missing_is_refused(snapshot):
    values, arrays = unpack(snapshot.to_bytes(), "Snapshot")
    newer = {"topic_id", "n_categories", "texts", "watched", "counts", "mixed", "left_out"}
    newer.add("epochs")
    for name in values.keys() - newer:
        fewer = {other: value for other, value in values.items() if other != name}
        with pytest.raises(StateError):
            Snapshot.from_bytes(pack("Snapshot", fewer, arrays))


@pytest.mark.parametrize("fields", [("a",), ("a", "b", "c")])
def test_a_scorer_of_another_number_of_fields_is_refused(fields, snapshot):
    with pytest.raises(StateError, match="expected a scorer of the fields"):
        PartitionPipeline.restored(replace(snapshot, fields=fields), _SETTINGS)


@pytest.mark.parametrize(
    "changes", [{"batch_size": 64}, {"alarm_rate": 1.5}, {"transforms": [[0, "log"]]}]
)
def test_a_scorer_with_other_settings_than_its_snapshot_is_refused(changes, snapshot):
    values, arrays = unpack(snapshot.scorer, "StreamScorer")
    scorer = pack("StreamScorer", values | changes, arrays)
    with pytest.raises(StateError):
        PartitionPipeline.restored(replace(snapshot, scorer=scorer), _SETTINGS)


@pytest.mark.parametrize(
    "changes",
    [
        {"next_offset": "3"}, {"next_offset": -1}, {"next_offset": True}, {"size": "5"},
        {"checksum": None}, {"chunks": "012"}, {"chunks": [2, 1]}, {"chunks": [-1]},
        {"chunks": [[0]]}, {"previous": "1"}, {"previous": 10**12}, {"offset": 1},
        {"chunks": [10**12]},  # it would be waited for
    ],
    ids=str,
)  # fmt: skip
def test_a_manifest_with_other_values_is_damaged(changes):
    Manifest.from_record(orjson.dumps(MANIFEST), 4, 0)
    for text in (orjson.dumps(MANIFEST | changes), b"[" * 100_000):
        with pytest.raises(StateError):
            Manifest.from_record(text, 4, 0)
