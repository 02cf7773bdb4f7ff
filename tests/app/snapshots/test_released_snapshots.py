"""An upgrade keeps the models: snapshots of released versions are read, and go on."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import orjson
import pytest
from released_snapshots import PARTITION, RELEASED, TOPIC, WITH, N, records

from faust_oslrau.app.pipeline import PartitionPipeline, Snapshot

MORE = 600


def log_likelihoods(block):
    return np.array([orjson.loads(score.value)["log_likelihood"] for score in block.scores])


@pytest.fixture(scope="module")
def without_upgrade():
    """Log-likelihoods of the next records by pipelines of this version that have seen them all."""
    found = {}
    for name, settings in WITH.items():
        pipeline = PartitionPipeline(TOPIC, PARTITION, settings)
        pipeline.process(records(0, N))
        found[name] = log_likelihoods(pipeline.process(records(N, N + MORE)))
    return found


@pytest.mark.parametrize(
    "path", sorted(RELEASED.glob("*/*.bin")), ids=lambda path: f"{path.stem} of {path.parent.name}"
)
def test_a_snapshot_of_a_released_version_goes_on(path, without_upgrade):
    snapshot = Snapshot.from_bytes(path.read_bytes())
    pipeline = PartitionPipeline.restored(snapshot, WITH[path.stem])
    found = log_likelihoods(pipeline.process(records(N, N + MORE)))
    assert np.median(found) == pytest.approx(np.median(without_upgrade[path.stem]), abs=0.2)
    assert pipeline.snapshot(0, N + MORE).records == N + MORE


def test_this_version_has_its_snapshots_among_those_released():
    folder = RELEASED / version("faust-oslrau")
    assert {path.stem for path in folder.glob("*.bin")} == {*WITH}, "run released_snapshots.py"
