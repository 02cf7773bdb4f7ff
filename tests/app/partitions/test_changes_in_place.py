"""Settings with which a partition's model goes on: more numbers, another memory or budget."""

import shutil
from dataclasses import replace

import orjson
import pytest
from memory_worker import FIRST, SETTINGS, MemoryBroker, MemoryWorker, clean_scores, records, values

from faust_oslrau.app.kafka.positions import RecordedSuccessor, recorded_successor
from faust_oslrau.app.offline.replay import Replay
from faust_oslrau.app.pipeline import (
    Change,
    PartitionPipeline,
    Snapshot,
    Successor,
    continued,
    new_pipeline,
    settings_digest,
)
from faust_oslrau.app.settings import Settings

BEGUN = 1500
LOG = values(5000)
OLD = replace(SETTINGS, features=("a",))


def learner(**changes):
    return {"learner": replace(OLD.learner, **changes)}


CHANGES = {
    "a field": {"features": ("b", "a")},
    "memory": learner(memory=900.0),
    "budget": learner(max_nodes=60),
    "all": {"features": ("a", "b"), "kinds": (("b", "number"),), **learner(max_nodes=500)},
}
each = pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)


def expected(changes, at=BEGUN, log=LOG):
    """The scores of a model whose settings changed at an offset."""
    pipeline = PartitionPipeline(*FIRST, OLD)
    before = pipeline.process(records(FIRST, log[:at])).scores
    pipeline.change(replace(OLD, **changes), at)
    after = pipeline.process(records(FIRST, log[at:], at)).scores
    return [score.value for score in (*before, *after)]


@pytest.fixture
def broker():
    return MemoryBroker(LOG)


def worker(folder, broker, **changes):
    return MemoryWorker(folder, broker, **({"features": OLD.features} | changes))


async def begin(folder, broker):
    async with worker(folder, broker) as before:
        await before.first_read(BEGUN)


@each
async def test_the_model_goes_on_with_the_new_settings(changes, tmp_path, broker, caplog):
    caplog.set_level("INFO")
    await begin(tmp_path, broker)
    for most in (300, 1000, None):  # with a restart between any two
        async with worker(tmp_path, broker, **changes) as after:
            partition = await after.first_read(most)
    assert broker.scores[FIRST] == expected(changes)
    if changes is not CHANGES["budget"]:  # which the network of one field does not reach
        assert broker.scores[FIRST] != clean_scores(FIRST, LOG, OLD)
    assert (partition.start, partition.successor, partition.change) == (0, None, None)
    assert caplog.text.count(f"goes on with the new settings from offset {BEGUN} on") == 1
    assert partition.pipeline.n_records == len(LOG)


@each
async def test_after_a_crash_the_settings_change_where_they_did(changes, tmp_path, broker):
    await begin(tmp_path / "a", broker)
    shutil.copytree(tmp_path / "a", tmp_path / "b")  # the snapshot with the old settings
    async with worker(tmp_path / "a", broker, **changes) as crashed:
        await crashed.first_read(900)
        await crashed.assignment.commit(crashed.held.values())
    digest = settings_digest(crashed.settings)
    assert recorded_successor(broker.group[FIRST]) == RecordedSuccessor(BEGUN, digest)
    async with worker(tmp_path / "b", broker, **changes) as after:
        await after.first_read()
    assert broker.scores[FIRST] == expected(changes)


async def test_settings_that_change_twice(tmp_path, broker):
    await begin(tmp_path, broker)
    first, second = CHANGES["memory"], CHANGES["a field"] | CHANGES["memory"]
    for changes, most in ((first, 700), (second, None)):
        async with worker(tmp_path, broker, **changes) as after:
            partition = await after.first_read(most)
    pipeline, found = PartitionPipeline(*FIRST, OLD), []
    for at, stop, changes in ((0, BEGUN, {}), (BEGUN, 2200, first), (2200, None, second)):
        if changes:
            pipeline.change(replace(OLD, **changes), at)
        found += pipeline.process(records(FIRST, LOG[at:stop], at)).scores
    assert broker.scores[FIRST] == [score.value for score in found]
    assert [epoch.until for epoch in partition.pipeline.epochs] == [BEGUN, 2200]


class Scores(list):
    def write(self, messages):
        self.extend(message.value for message in messages)


@each
@pytest.mark.parametrize("first", [0, 400, BEGUN + 300])
def test_a_replay_changes_the_settings_where_the_worker_did(changes, first):
    new = replace(OLD, **changes)
    pipeline = PartitionPipeline(*FIRST, OLD)
    pipeline.process(records(FIRST, LOG[:BEGUN]))
    pipeline.change(new, BEGUN)
    epochs = {FIRST: Snapshot.from_bytes(pipeline.snapshot(0, BEGUN).to_bytes()).epochs}
    scores = Scores()
    replay = Replay(new, scores, Scores(), Scores(), epochs=epochs)
    for start in range(first, len(LOG), 700):
        replay.process(records(FIRST, LOG[start : start + 700], start))
    if first == 0:
        assert scores == expected(changes)
    elif first < BEGUN:
        pipeline, part = PartitionPipeline(*FIRST, OLD), records(FIRST, LOG[first:], first)
        before = pipeline.process(part[: BEGUN - first]).scores
        pipeline.change(new, BEGUN)
        after = pipeline.process(part[BEGUN - first :]).scores
        assert scores == [score.value for score in (*before, *after)]
    else:
        pipeline = PartitionPipeline(*FIRST, new)
        part = pipeline.process(records(FIRST, LOG[first:], first)).scores
        assert scores == [score.value for score in part]


@each
def test_a_snapshot_after_the_change_goes_on_to_the_same_scores(changes):
    new, at = replace(OLD, **changes), BEGUN + 100
    pipeline = PartitionPipeline(*FIRST, OLD)
    pipeline.process(records(FIRST, LOG[:BEGUN]))
    pipeline.change(new, BEGUN)
    pipeline.process(records(FIRST, LOG[BEGUN:at], BEGUN))
    snapshot = Snapshot.from_bytes(pipeline.snapshot(0, at).to_bytes())
    restored, follows = continued(snapshot, None, None, new, at)
    assert follows is None
    scores = restored.process(records(FIRST, LOG[at:], at)).scores
    assert [score.value for score in scores] == expected(changes)[at:]


def test_a_field_that_is_added_counts_as_one_that_was_missing_so_far():
    without = [orjson.dumps({**orjson.loads(value), "c": None}) for value in LOG[:BEGUN]]
    log = without + [orjson.dumps({**orjson.loads(v), "c": 7.0}) for v in LOG[BEGUN:]]
    found = [orjson.loads(score) for score in expected({"features": ("a", "c")}, log=log)]
    assert "c" not in str(found[BEGUN - 1]) or found[BEGUN - 1].get("c") is None
    assert sum(score["p_value"] <= 0.01 for score in found[BEGUN:]) < 0.03 * len(found[BEGUN:])


KINDS = {"kinds": (("b", "category"),)}


@pytest.mark.parametrize(
    ("before", "now", "in_place"),
    [
        ({}, {"features": ("a", "b"), "kinds": (("b", "count"),)}, True),
        ({}, {"features": ("a", "b"), "transforms": (("b", "log"),)}, True),
        ({"features": ("b", "a"), **KINDS}, {"features": ("c", "a", "b"), **KINDS}, True),
        ({"history": ("10",)}, {"history": ("10",), "features": ("a", "b")}, True),
        ({}, {"features": ("a", "b"), **KINDS}, False),
        ({}, {"features": ("b",)}, False),
        ({"features": ("a", "b")}, {"features": ("a",)}, False),
        ({}, {"features": "auto"}, False),
        ({}, {"transforms": (("a", "asinh"),)}, False),
        ({}, {"kinds": (("a", "count"),)}, False),
        ({}, {"features": ("a", "b"), "history": ("10",)}, False),
        ({}, {"features": ("a", "b"), "least": (("b", 1.0),)}, False),
        ({}, {"features": ("a", "b"), "adapt_after": 20}, False),
        ({"features": ("a",), "kinds": (("a", "category"),)},
         {"features": ("a", "b"), "kinds": (("a", "category"),)}, False),
    ],
)  # fmt: skip
def test_what_changes_in_place_and_what_brings_a_successor(before, now, in_place):
    before, now = (
        replace(Settings(features=("a",)), **before),
        replace(Settings(features=("a",)), **now),
    )
    pipeline = PartitionPipeline(*FIRST, before)
    pipeline.process(records(FIRST, LOG[:300]))
    _, follows = continued(pipeline.snapshot(0, 300), None, None, now, 300)
    assert isinstance(follows, Change if in_place else Successor)


def test_a_new_initial_model_follows_and_an_old_one_may_be_left_out(tmp_path):
    more, path = replace(OLD, features=("a", "b")), tmp_path / "model"
    fitted = new_pipeline(*FIRST, OLD)
    fitted.process(records(FIRST, LOG[:300]))
    path.write_bytes(fitted.snapshot(0, 300).to_bytes())
    begun = new_pipeline(*FIRST, replace(OLD, initial_model=str(path)))
    begun.process(records(FIRST, LOG[:300]))
    _, follows = continued(begun.snapshot(0, 300), None, None, more, 300)
    assert isinstance(follows, Change)
    fitted = new_pipeline(*FIRST, more)
    fitted.process(records(FIRST, LOG[:300]))
    (tmp_path / "wider").write_bytes(fitted.snapshot(0, 300).to_bytes())
    wider = replace(more, initial_model=str(tmp_path / "wider"))
    _, follows = continued(begun.snapshot(0, 300), None, None, wider, 300)
    assert isinstance(follows, Successor)


def test_the_alarm_rate_changes_in_place_where_p_values_depend_on_it():
    before = replace(OLD, directions=(("a", "high"),))
    pipeline = PartitionPipeline(*FIRST, before)
    pipeline.process(records(FIRST, LOG[:300]))
    now = replace(before, alarm_rate=0.05)
    changed, follows = continued(pipeline.snapshot(0, 300), None, None, now, 300)
    assert isinstance(follows, Change)
    changed.change(follows.settings, follows.offset)
    assert changed.scorer.alarm_rate == 0.05
