"""An upgrade keeps the models: snapshots of released versions are read, and go on."""

from importlib.metadata import version

import numpy as np
import orjson
import pytest
from aiokafka import OffsetAndMetadata
from released_snapshots import (
    ACCEPTED,
    CLAIM,
    PARTITION,
    RELEASED,
    SUCCESSOR,
    TEXTS,
    TOPIC,
    WITH,
    N,
    records,
)

from faust_oslrau.app.kafka.positions import (
    is_of_earlier_version,
    recorded_model,
    recorded_start,
    recorded_successor,
    recorded_topic,
)
from faust_oslrau.app.pipeline import PartitionPipeline, Snapshot
from faust_oslrau.app.registry.acceptance_log import acceptance_of
from faust_oslrau.app.snapshots.claim import Claim
from faust_oslrau.app.snapshots.manifest import Manifest

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


@pytest.mark.parametrize("folder", sorted(RELEASED.iterdir()), ids=lambda folder: folder.name)
def test_the_small_messages_of_a_released_version_are_read(folder):
    text = {name: (folder / f"{name}.json").read_bytes() for name in TEXTS}
    manifest = Manifest.from_record(text["manifest"], 7, 0)
    assert manifest == Manifest(N, 900_001, "01" * 16, (5, 6), 3, 7, 0)
    assert Claim.from_bytes(text["claim"]) == CLAIM
    assert acceptance_of(text["acceptance"]) == ACCEPTED
    commit = OffsetAndMetadata(N, text["commit"].decode())
    assert (recorded_start(commit), recorded_topic(commit)) == (17, "topic-1")
    assert (recorded_model(commit), recorded_successor(commit)) == ("23" * 16, SUCCESSOR)
    assert not is_of_earlier_version(commit)


def test_an_acceptance_without_a_format_has_the_first():
    data = orjson.loads(TEXTS["acceptance"])
    del data["format"]
    assert acceptance_of(orjson.dumps(data)) == ACCEPTED


def test_this_version_has_its_snapshots_among_those_released():
    folder = RELEASED / version("faust-oslrau")
    assert {path.stem for path in folder.iterdir()} == {*WITH, *TEXTS}, "run released_snapshots.py"
