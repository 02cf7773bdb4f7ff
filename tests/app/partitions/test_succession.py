"""Settings that change under a partition's model: it goes on until its successor has learned."""

import json
import shutil
from dataclasses import replace

import pytest
from aiokafka import OffsetAndMetadata
from memory_worker import FIRST, SETTINGS, MemoryBroker, MemoryWorker, clean_scores, records, values

from faust_oslrau.app.kafka.positions import RecordedSuccessor, recorded_successor
from faust_oslrau.app.pipeline import (
    IncompatibleSnapshotError,
    PartitionPipeline,
    Snapshot,
    Successor,
    continued,
    new_pipeline,
    scoring_settings,
)
from faust_oslrau.app.pipeline.snapshot import earlier_settings
from faust_oslrau.app.pipeline.succession import BLOCK, TAKES_OVER_AFTER
from faust_oslrau.app.settings import Settings

BEGUN = 1500
OVER = -(-(BEGUN + TAKES_OVER_AFTER) // BLOCK) * BLOCK
LOG = values(OVER + 700)
OLD = replace(SETTINGS, features=("a",))
NEW = {"features": ("b",), "learner": {"memory": 5000}}


def old_scores(end):
    return clean_scores(FIRST, LOG[:end], OLD)


def new_scores():
    """The scores of a deployment with the new settings that begins where the change does."""
    pipeline = PartitionPipeline(*FIRST, changed())
    return [score.value for score in pipeline.process(records(FIRST, LOG[BEGUN:], BEGUN)).scores]


def changed():
    return replace(SETTINGS, features=NEW["features"], learner=replace(OLD.learner, memory=5000))


@pytest.fixture(scope="module")
def expected():
    return old_scores(OVER) + new_scores()[OVER - BEGUN :]


@pytest.fixture
def broker():
    return MemoryBroker(LOG)


def worker(folder, broker, settings):
    own = {"features": settings.features, "learner": settings.learner}
    return MemoryWorker(folder, broker, **own)


async def begin(folder, broker):
    """Let a worker with the old settings score the first records."""
    async with worker(folder, broker, OLD) as before:
        await before.first_read(BEGUN)


async def test_the_model_goes_on_until_its_successor_has_learned(
    tmp_path, broker, expected, caplog
):
    caplog.set_level("INFO")
    await begin(tmp_path, broker)
    for most in (700, 5000, 4000, None):  # with a restart between any two
        async with worker(tmp_path, broker, changed()) as after:
            partition = await after.first_read(most)
            left = after.metric("successor_records_left", topic="features", partition="0")
    assert broker.scores[FIRST] == expected
    assert (left, partition.start, partition.successor) == (0, BEGUN, None)
    assert "features = ['a'], now ['b']; learner.memory = None, now 5000.0" in caplog.text
    assert f"scores from offset {OVER} on, as it would if a new deployment" in caplog.text
    assert f'"start": {BEGUN}' in broker.group[FIRST].metadata


@pytest.mark.parametrize("reached", [BEGUN + 900, OVER + 200])
async def test_after_a_crash_the_successor_has_begun_where_it_had(
    tmp_path, broker, expected, reached
):
    await begin(tmp_path / "a", broker)
    async with worker(tmp_path / "a", broker, changed()) as crashed:
        await crashed.first_read(reached - BEGUN)
        await crashed.assignment.commit(crashed.held.values())
        shutil.copytree(tmp_path / "a", tmp_path / "b")  # without the snapshot of its end
    committed = broker.committed(FIRST)
    async with worker(tmp_path / "b", broker, changed()) as after:
        await after.first_read()
    assert committed == reached
    assert broker.scores[FIRST] == expected


async def test_a_takeover_outlives_a_commit_that_fails(tmp_path, broker, expected):
    await begin(tmp_path, broker)
    async with worker(tmp_path, broker, changed()) as after:
        await after.first_read(2000)
        await after.assignment.commit(after.held.values())
        await after.read(FIRST, OVER - BEGUN - 1500)
        broker.is_away = True
        await after.assignment.revoked(1)
        broker.is_away = False
        assert recorded_successor(broker.group[FIRST]).start == BEGUN
        partition = await after.first_read()
    assert (partition.start, broker.scores[FIRST]) == (BEGUN, expected)
    found = {json.loads(score)["offset"]: score for score in broker.scores[FIRST]}
    assert found == {json.loads(score)["offset"]: score for score in expected}


@pytest.mark.parametrize(
    "changes", [{"features": ("aa",)}, {"features": ("b",), "learning": False}]
)
async def test_a_model_that_learns_nothing_does_not_take_over(changes, tmp_path, broker):
    await begin(tmp_path, broker)
    async with MemoryWorker(tmp_path, broker, **changes) as after:
        partition = await after.first_read()
    assert json.loads(broker.scores[FIRST][-1])["n_learned"] > 1000
    assert partition.successor.records_left == TAKES_OVER_AFTER


async def test_an_initial_model_takes_over_once_it_has_read_a_record(tmp_path, broker):
    fitted = PartitionPipeline(*FIRST, changed())
    fitted.process(records(FIRST, values(TAKES_OVER_AFTER + 500, seed=1)))
    (tmp_path / "model").write_bytes(fitted.snapshot(0, 0).to_bytes())
    await begin(tmp_path, broker)
    own = {"features": NEW["features"], "learner": changed().learner}
    own["initial_model"] = str(tmp_path / "model")
    async with MemoryWorker(tmp_path, broker, **own) as after:
        partition = await after.first_read(1500)
        settings = after.settings
    fresh = new_pipeline(*FIRST, settings).process(records(FIRST, LOG[BEGUN:3000], BEGUN)).scores
    expected = [score.value for score in fresh]
    assert broker.scores[FIRST] == old_scores(2048) + expected[2048 - BEGUN :]
    assert partition.start == BEGUN


async def test_while_it_chooses_its_fields_the_model_keeps_its_snapshots(tmp_path, broker):
    await begin(tmp_path, broker)
    for _ in range(2):
        async with MemoryWorker(tmp_path, broker, features="auto") as after:
            partition = await after.first_read(100)
        assert (await after.snapshots(FIRST))[0] == broker.committed(FIRST)
    assert partition.successor.start == BEGUN + 100
    assert broker.scores[FIRST] == old_scores(BEGUN + 200)


async def test_a_field_that_no_record_has_is_named_before_it_is_too_late(tmp_path, broker, caplog):
    await begin(tmp_path, broker)
    async with MemoryWorker(tmp_path, broker, features=("bb", "b")) as after:
        await after.assign(FIRST)
        left = after.metric("successor_records_left", topic="features", partition="0")
        await after.read(FIRST, 1100)
    assert "none of the first 1100 records has a value of bb" in caplog.text
    assert left == TAKES_OVER_AFTER


async def test_what_a_successor_waits_for_is_told_once(tmp_path, broker, caplog, monkeypatch):
    caplog.set_level("INFO")
    lacks = {"days": 2, "entities": 30}
    module = "faust_oslrau.app.pipeline.succession"
    monkeypatch.setattr(f"{module}.Successor._lacks", lambda successor, former: lacks)
    await begin(tmp_path, broker)
    async with worker(tmp_path, broker, changed()) as after:
        partition = await after.first_read(5000)
        assert partition.successor_awaits == {"records": partition.successor.records_left}
        assert "still to come" not in caplog.text
        for most in (TAKES_OVER_AFTER - 4500, None):
            await after.read(FIRST, most)
    assert caplog.text.count("still to come are 2 days, 30 entities") == 1
    assert partition.successor_awaits == lacks
    assert broker.scores[FIRST] == old_scores(len(LOG))


async def test_with_the_old_settings_again_the_model_stays(tmp_path, broker):
    for settings in (OLD, changed(), OLD):
        async with worker(tmp_path, broker, settings) as current:
            partition = await current.first_read(3000)
    assert broker.scores[FIRST] == old_scores(9000)
    assert partition.successor is None
    assert recorded_successor(broker.group[FIRST]) is None


async def test_another_change_begins_another_successor(tmp_path, broker):
    other = replace(changed(), seasons="UTC")
    for settings in (OLD, changed(), other):
        async with MemoryWorker(
            tmp_path, broker,
            features=settings.features, learner=settings.learner, seasons=settings.seasons,
        ) as current:  # fmt: skip
            partition = await current.first_read(1000)
    assert (partition.start, partition.successor.start) == (0, 2000)
    assert recorded_successor(broker.group[FIRST]).start == 2000


def test_the_format_of_records_cannot_change():
    pipeline = PartitionPipeline(*FIRST, OLD)
    pipeline.process(records(FIRST, LOG[:300]))
    registry = replace(OLD.registry, url="http://localhost:1")
    avro = replace(OLD, format="avro", registry=registry)
    with pytest.raises(IncompatibleSnapshotError, match="made with format = 'json', now 'avro'"):
        continued(pipeline.snapshot(0, 300), None, None, avro, 300)


def test_incidents_are_closed_by_one_model_and_opened_by_the_next():
    fault = [b'{"a": 90, "b": 90}'] * 30
    old, new = PartitionPipeline(*FIRST, OLD), PartitionPipeline(*FIRST, changed())
    found = records(FIRST, LOG[:3000] + fault)
    for pipeline in (old, new):
        pipeline.process(found)
    (last,) = records(FIRST, LOG[:1], len(found))
    told = Successor(new, 0, "").events(old, last)
    states = [b'"state":"closed"' in event.value for event in told]
    assert states == [True, False]
    assert [event.offset for event in told] == [len(found)] * 2


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"features": "auto", "entity": "key", "max_entities": 50, "history": ["100", "1000"]},
        {"kinds": {"a": "count", "b": "category"}, "features": ["a", "b", "c"]},
        {"transforms": {"a": "log"}, "directions": {"b": "high"}, "least": {"a": 0.5}},
        {"learner": {"mixtures": True, "memory": 1e4}, "adapt_after": 64, "batch_size": 512},
        {"learner": {"oslrau": {"min_count": 9, "max_leaf_vars": 3}}, "seasons": "UTC"},
        {"wrong_type": "missing", "time": "at"},
    ],
)
def test_a_snapshot_tells_the_settings_that_it_was_made_with(changes):
    learner = replace(Settings().learner, **changes.pop("learner", {}))
    made = replace(Settings(), **changes, learner=learner)
    snapshot = Snapshot("features", 0, 0, 0, ("a",), scoring_settings(made), "0", 0, 0, None)
    again = Snapshot.from_bytes(snapshot.to_bytes())
    now = replace(Settings(), entity="machine", seasons="Europe/Berlin", alarm_rate=0.25)
    found = earlier_settings(again.settings, now)
    assert scoring_settings(found) == scoring_settings(made)
    is_ranked = bool(made.directions or made.least)  # by deviations that matter, up to the rate
    assert found.alarm_rate == (made.alarm_rate if is_ranked else 0.25)


def test_settings_that_this_version_does_not_know_are_left_to_the_state():
    unknown = scoring_settings(Settings()) | {"stretches": 4, "learner.spread": 2.0}
    snapshot = Snapshot("features", 0, 0, 0, ("a",), unknown, "0", 0, 0, None)
    assert scoring_settings(earlier_settings(snapshot.settings, OLD)) == scoring_settings(
        Settings()
    )


@pytest.mark.parametrize("told", ["1", "[1]", '["1", "a"]', "[-1, null]", '[201, "a"]', "{}"])
def test_what_another_program_says_of_a_successor_is_ignored(told):
    commit = OffsetAndMetadata(200, f'{{"start": 0, "format": 2, "successor": {told}}}')
    assert recorded_successor(commit) is None
    good = OffsetAndMetadata(200, '{"start": 0, "format": 2, "successor": [200, "a"]}')
    assert recorded_successor(good) == RecordedSuccessor(200, "a")
