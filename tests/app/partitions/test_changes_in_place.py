"""Settings with which a partition's model goes on: more fields, another memory or budget."""

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
OLD = replace(SETTINGS, features=("a",))


def with_categories(number, value):
    """Return a value with categories: one that `a` says, two others, and one as an entity."""
    record = orjson.loads(value)
    more = {"m": "low" if record["a"] < 0 else "high", "s": "xyz"[number % 3]}
    return orjson.dumps(record | more | {"t": number % 5 == 0, "k": f"k{number % 7}"})


LOG = [with_categories(*each) for each in enumerate(values(6200))]  # late fields are learned anew


def learner(**changes):
    return {"learner": replace(OLD.learner, **changes)}


def categories(*fields):
    return {"kinds": tuple((field, "category") for field in fields)}


CHANGES = {
    "a field": {"features": ("b", "a")},
    "memory": learner(memory=900.0),
    "budget": learner(max_nodes=60),
    "all": {"features": ("a", "b"), "kinds": (("b", "number"),), **learner(max_nodes=500)},
    "a category": {"features": ("m", "a"), **categories("m")},
    "a category beside others": {"features": ("m", "a", "s"), **categories("m", "s")},
    "a number and categories": {"features": ("a", "b", "m", "t"), **categories("m", "t")},
    "a number beside categories": {"features": ("s", "b"), **categories("s")},
    "those chosen, and one": {"features": tuple("abkmst"), **categories(*"kmst")},
}
BEFORE = {
    "a category beside others": {"features": ("s", "a"), **categories("s")},
    "a number and categories": {"entity": "k"},
    "a number beside categories": {"features": ("s",), **categories("s")},
    "those chosen, and one": {"features": "auto", "kinds": (("b", "ignored"),)},
}
CASES = {name: (replace(OLD, **BEFORE.get(name, {})), of) for name, of in CHANGES.items()}
each = pytest.mark.parametrize(("old", "changes"), CASES.values(), ids=CASES)


def expected(changes, at=BEGUN, log=LOG, old=OLD):
    """The scores of a model whose settings changed at an offset."""
    pipeline = PartitionPipeline(*FIRST, old)
    before = pipeline.process(records(FIRST, log[:at])).scores
    pipeline.change(replace(old, **changes), at)
    after = pipeline.process(records(FIRST, log[at:], at)).scores
    return [score.value for score in (*before, *after)]


@pytest.fixture
def broker():
    return MemoryBroker(LOG)


def worker(folder, broker, old=OLD, **changes):
    own = {name: getattr(old, name) for name in ("features", "kinds", "entity")}
    return MemoryWorker(folder, broker, **(own | changes))


async def begin(folder, broker, old=OLD):
    async with worker(folder, broker, old) as before:
        await before.first_read(BEGUN)


@each
async def test_the_model_goes_on_with_the_new_settings(old, changes, tmp_path, broker, caplog):
    caplog.set_level("INFO")
    await begin(tmp_path, broker, old)
    for most in (300, 1000, None):  # with a restart between any two
        async with worker(tmp_path, broker, old, **changes) as after:
            partition = await after.first_read(most)
    assert broker.scores[FIRST] == expected(changes, old=old)
    if changes is not CHANGES["budget"]:  # which the network of one field does not reach
        assert broker.scores[FIRST] != clean_scores(FIRST, LOG, old)
    assert (partition.start, partition.following.is_changing) == (0, False)
    assert caplog.text.count(f"goes on with the new settings from offset {BEGUN} on") == 1
    assert partition.pipeline.n_records == len(LOG)


@each
async def test_after_a_crash_the_settings_change_where_they_did(old, changes, tmp_path, broker):
    await begin(tmp_path / "a", broker, old)
    shutil.copytree(tmp_path / "a", tmp_path / "b")  # the snapshot with the old settings
    async with worker(tmp_path / "a", broker, old, **changes) as crashed:
        await crashed.first_read(900)
        await crashed.assignment.commit(crashed.held.values())
    digest = settings_digest(crashed.settings)
    assert recorded_successor(broker.group[FIRST]) == RecordedSuccessor(BEGUN, digest)
    async with worker(tmp_path / "b", broker, old, **changes) as after:
        await after.first_read()
    assert broker.scores[FIRST] == expected(changes, old=old)


@pytest.mark.parametrize("added", [CHANGES["a field"], CHANGES["a category"]])
async def test_settings_that_change_twice(added, tmp_path, broker):
    await begin(tmp_path, broker)
    first, second = added, added | CHANGES["memory"] | {"features": (*added["features"], "t")}
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
def test_a_replay_changes_the_settings_where_the_worker_did(old, changes, first):
    new = replace(old, **changes)
    pipeline = PartitionPipeline(*FIRST, old)
    pipeline.process(records(FIRST, LOG[:BEGUN]))
    pipeline.change(new, BEGUN)
    epochs = {FIRST: Snapshot.from_bytes(pipeline.snapshot(0, BEGUN).to_bytes()).epochs}
    scores = Scores()
    replay = Replay(new, scores, Scores(), Scores(), epochs=epochs)
    for start in range(first, len(LOG), 700):
        replay.process(records(FIRST, LOG[start : start + 700], start))
    if first == 0:
        assert scores == expected(changes, old=old)
    elif first < BEGUN:
        pipeline, part = PartitionPipeline(*FIRST, old), records(FIRST, LOG[first:], first)
        before = pipeline.process(part[: BEGUN - first]).scores
        pipeline.change(new, BEGUN)
        after = pipeline.process(part[BEGUN - first :]).scores
        assert scores == [score.value for score in (*before, *after)]
    else:
        pipeline = PartitionPipeline(*FIRST, new)
        part = pipeline.process(records(FIRST, LOG[first:], first)).scores
        assert scores == [score.value for score in part]


@each
@pytest.mark.parametrize("at", [BEGUN, BEGUN + 100])
def test_a_snapshot_after_the_change_goes_on_to_the_same_scores(at, old, changes):
    new = replace(old, **changes)
    pipeline = PartitionPipeline(*FIRST, old)
    pipeline.process(records(FIRST, LOG[:BEGUN]))
    pipeline.change(new, BEGUN)
    pipeline.process(records(FIRST, LOG[BEGUN:at], BEGUN))
    snapshot = Snapshot.from_bytes(pipeline.snapshot(0, at).to_bytes())
    restored, follows = continued(snapshot, None, None, new, at)
    assert follows is None
    scores = restored.process(records(FIRST, LOG[at:], at)).scores
    assert [score.value for score in scores] == expected(changes, old=old)[at:]


@pytest.mark.parametrize(("content", "kinds"), [(7.0, {}), ("on", categories("c"))])
def test_a_field_that_is_added_counts_as_one_that_was_missing_so_far(content, kinds):
    without = [orjson.dumps({**orjson.loads(value), "c": None}) for value in LOG[:BEGUN]]
    log = without + [orjson.dumps({**orjson.loads(v), "c": content}) for v in LOG[BEGUN:]]
    added = {"features": ("a", "c"), **kinds}
    found = [orjson.loads(score) for score in expected(added, log=log)]
    assert "c" not in str(found[BEGUN - 1]) or found[BEGUN - 1].get("c") is None
    assert sum(score["p_value"] <= 0.01 for score in found[BEGUN:]) < 0.03 * len(found[BEGUN:])


@pytest.mark.parametrize(("content", "kinds"), [(7.0, {}), ("on", categories("c"))])
def test_a_field_that_is_added_is_no_news(content, kinds):
    log = [orjson.dumps({**orjson.loads(value), "c": content}) for value in LOG[BEGUN:]]
    pipeline = PartitionPipeline(*FIRST, OLD)
    pipeline.process(records(FIRST, LOG[:BEGUN]))
    pipeline.change(replace(OLD, features=("a", "c"), **kinds), BEGUN)
    assert not pipeline.process(records(FIRST, log, BEGUN)).changed_fields
    other = PartitionPipeline(*FIRST, OLD)
    other.process(records(FIRST, LOG[:BEGUN]))
    assert other.process(records(FIRST, log, BEGUN)).changed_fields == {"appeared": 1}


def test_the_texts_of_categories_go_on():
    old, changes = CASES["a category beside others"]
    pipeline = PartitionPipeline(*FIRST, old)
    pipeline.process(records(FIRST, LOG[:BEGUN]))
    pipeline.change(replace(old, **changes), BEGUN)
    assert pipeline.fields == ("a", "s", "m")
    assert pipeline.snapshot(0, BEGUN).texts == ("x", "y", "z")
    pipeline.process(records(FIRST, LOG[BEGUN:], BEGUN))
    snapshot = pipeline.snapshot(0, len(LOG))
    assert (snapshot.fields, snapshot.n_categories) == (("a", "s", "m"), 2)
    assert snapshot.texts == ("high", "low", "x", "y", "z")
    assert pipeline.dependences["a"] == ["m"]


KINDS = categories("b")
TWO = {"features": ("a", "m", "s"), **categories("m", "s")}
AUTO = {"features": "auto", "kinds": (("b", "ignored"),)}
KINDS_OF_ALL = categories(*"kmst")["kinds"]


@pytest.mark.parametrize(
    ("before", "now", "in_place"),
    [
        ({}, {"features": ("a", "b"), "kinds": (("b", "count"),)}, True),
        ({}, {"features": ("a", "b"), "transforms": (("b", "log"),)}, True),
        ({"features": ("b", "a"), **KINDS}, {"features": ("c", "a", "b"), **KINDS}, True),
        ({"history": ("10",)}, {"history": ("10",), "features": ("a", "b")}, True),
        ({}, {"features": ("a", "b"), **KINDS}, True),
        ({}, TWO, True),
        ({"features": ("m",), **categories("m")}, {"features": ("m", "s"), **categories("m", "s")},
         True),
        ({"history": ("10",), "entity": "k"}, {"history": ("10",), "entity": "k", **TWO}, True),
        ({"features": ("a", "m")}, TWO, False),
        (TWO, {"features": ("a", "m", "s"), **categories("m")}, False),
        (TWO, {"features": ("a", "m"), **categories("m")}, False),
        ({}, {"features": ("a", *map(str, range(128))), **categories(*map(str, range(128)))}, True),
        ({}, {"features": ("b",)}, False),
        ({"features": ("a", "b")}, {"features": ("a",)}, False),
        ({}, {"features": "auto"}, False),
        ({}, {"transforms": (("a", "asinh"),)}, False),
        ({}, {"kinds": (("a", "count"),)}, False),
        ({}, {"features": ("a", "b"), "history": ("10",)}, False),
        ({}, {"features": ("a", "b"), "least": (("b", 1.0),)}, False),
        ({}, {"features": ("a", "b"), "adapt_after": 20}, False),
        ({"features": ("m",), **categories("m")}, {"features": ("m", "b"), **categories("m")},
         True),
        (AUTO, {"features": tuple("abckmst"), "kinds": KINDS_OF_ALL}, True),
        (AUTO, {"features": tuple("akmst"), "kinds": (*KINDS_OF_ALL, ("a", "number"))}, True),
        (AUTO, {"features": tuple("abkmst"), **categories(*"kms")}, False),
        (AUTO, {"features": tuple("akms"), **categories(*"kms")}, False),
        (AUTO, {"features": tuple("akmst"), "kinds": (*KINDS_OF_ALL, ("a", "count"))}, False),
        (AUTO, {"features": tuple("akmst"), "kinds": KINDS_OF_ALL, "transforms": (("a", "asinh"),)},
         False),
    ],
)  # fmt: skip
def test_what_changes_in_place_and_what_brings_a_successor(before, now, in_place):
    before, now = (
        replace(Settings(features=("a",)), **before),
        replace(Settings(features=("a",)), **now),
    )
    pipeline = PartitionPipeline(*FIRST, before)
    pipeline.process(records(FIRST, LOG[:1100]))
    _, follows = continued(pipeline.snapshot(0, 1100), None, None, now, 1100)
    assert isinstance(follows, Change if in_place else Successor)


def test_fields_that_records_left_out_are_told_no_more_once_all_are_named():
    pipeline = PartitionPipeline(*FIRST, replace(OLD, **AUTO))
    pipeline.process(records(FIRST, LOG[:BEGUN]))
    assert pipeline.left_out == ("b (ignored)",)
    pipeline.change(replace(OLD, **CHANGES["those chosen, and one"]), BEGUN)
    assert pipeline.left_out == ()


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


@pytest.mark.parametrize(("n", "in_place"), [(6, False), (300, True)])
def test_with_entities_the_first_category_comes_in_place_once_a_batch_is_learned(n, in_place):
    old, changes = CASES["a number and categories"]
    pipeline = PartitionPipeline(*FIRST, old)
    pipeline.process(records(FIRST, LOG[:n]))
    _, follows = continued(pipeline.snapshot(0, n), None, None, replace(old, **changes), n)
    assert isinstance(follows, Change if in_place else Successor)


def test_values_for_which_there_is_no_room_beside_those_that_are_added_give_way():
    log = [orjson.dumps(orjson.loads(v) | {"m": f"v{i % 255}"}) for i, v in enumerate(LOG[:4000])]
    old = replace(OLD, features=("a", "m"), **categories("m"))
    new = replace(OLD, features=("a", "m", "s", "t"), **categories("m", "s", "t"))
    pipeline = PartitionPipeline(*FIRST, old)
    pipeline.process(records(FIRST, log[:3000]))
    assert len(pipeline.snapshot(0, 3000).texts) == 255
    assert pipeline.takes(new)
    pipeline.change(new, 3000)
    restored, _ = continued(pipeline.snapshot(0, 3000), None, None, new, 3000)
    scores, again = (
        p.process(records(FIRST, log[3000:], 3000)).scores for p in (pipeline, restored)
    )
    assert scores == again
    assert {"v0", "v254", "x", "true"} <= set(pipeline.snapshot(0, 4000).texts)


def test_a_replay_begins_anew_where_its_model_does_not_take_the_new_settings():
    old, changes = CASES["a number and categories"]
    new, scores, first = replace(old, **changes), Scores(), BEGUN - 5
    pipeline = PartitionPipeline(*FIRST, old)
    pipeline.process(records(FIRST, LOG[:BEGUN]))
    pipeline.change(new, BEGUN)
    replay = Replay(new, scores, Scores(), Scores(), epochs={FIRST: pipeline.epochs})
    replay.process(records(FIRST, LOG[first:], first))
    assert scores[5:] == clean_scores_from(BEGUN, new)


def clean_scores_from(first, settings):
    """The scores of a model that began at an offset."""
    pipeline = PartitionPipeline(*FIRST, settings)
    return [score.value for score in pipeline.process(records(FIRST, LOG[first:], first)).scores]
