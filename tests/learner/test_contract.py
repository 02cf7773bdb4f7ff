"""What every model and every scorer promises of its state, whatever it is made of.

Any cutting of the stream gives the same bits, with restarts or without.
"""

import dataclasses
import itertools
from functools import partial

import numpy as np
import pytest
from contract import (
    LONG,
    NETWORKS,
    QUICK,
    at_once,
    learned,
    of_each,
    run,
    state_at,
    unpacked,
    whole,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from subjects import CATEGORY, COUNTER, KEYS, MODELS, PLACES, ROWS, SCORERS, SUBJECTS, exact

from faust_oslrau.learner import CategoricalDensity, EntityDensity, StreamScorer
from faust_oslrau.learner.state import unpack
from faust_oslrau.learner.vector.blocks import MOST_ROWS

pytestmark = pytest.mark.usefixtures("sooner", "blocks_of_three")

AROUND_BOUNDARIES = [1, 15, 16, 17, 47, 48, 49, 111, 112, 239, 240, 241, 300, 496, 497, 1000]
IN_THE_MIDST = [820, 840, 860, 905, 1125, 1350, 1366, 1430, 1479, 1530, 1776, 1800, 1801, 1950]


@of_each(SUBJECTS)
@pytest.mark.parametrize("restart", [False, True])
def test_a_cut_at_each_boundary_and_a_restart_there_give_the_same_bits(name, restart):
    assert_same_bits(name, AROUND_BOUNDARIES + IN_THE_MIDST, restart)


@pytest.mark.parametrize("name", QUICK)
@settings(max_examples=2, deadline=None)
@given(cuts=st.lists(st.integers(0, 2000), max_size=20), restart=st.booleans())
def test_any_cutting_and_any_restart_give_the_same_bits(name, cuts, restart):
    assert_same_bits(name, cuts, restart)


def assert_same_bits(name, cuts, restart):
    """Hold a stream in pieces, perhaps with a restart after each, against the whole."""
    subject = SUBJECTS[name]
    state, answers = whole(name)
    taught, said = run(subject, cuts, restart=restart)
    found = subject.answers(taught, said)
    assert found == answers
    assert taught.to_bytes() == state


@LONG
def test_the_stream_has_something_for_each_layer():
    """Else the same bits would say little."""
    blocks = {name: at_once(name)[2][0][1] for name in SCORERS}
    states = {event.state for event in blocks["incidents"].incidents}
    assert states == {"opened", "updated", "closed"}
    assert {event.state for event in blocks["all"].silences} == {"began", "ended"}
    assert {event.state for event in blocks["entities"].entity_events} == {"new"}
    assert {event.state for event in blocks["all but entities"].rate_changes} == {"began", "ended"}
    assert blocks["plain"].held_back > 30
    assert all(block.is_anomaly.any() for block in blocks.values())
    for scorer in (SUBJECTS[name].read(whole(name)[0]) for name in SCORERS):
        if scorer.parameters["seasons"] is not None:
            assert unpack(scorer.to_bytes(), "StreamScorer")[1]["season_counting"].any()
        if scorer.parameters["max_former_entities"]:
            assert scorer.n_former_entities > 0


@LONG
@pytest.mark.parametrize("name", NETWORKS)
def test_learning_what_was_evaluated_gives_the_same_bits(name):
    subject = SUBJECTS[name]
    model, size = subject.new(), subject.batch
    for start in range(0, subject.n, size):
        rows = subject.rows[start : start + size]
        model.partial_fit(rows, evaluation=model.evaluate(rows) if start else None)
    assert model.to_bytes() == whole(name)[0]


EVALUATED = ["OSLRAU that ends early", "mixtures of OSLRAU"]
"""Their structures grow no more, which may need more room first, and then evaluates again."""


def evaluated(name):
    """Return a model after its stream, and rows without missing values, of which all is kept."""
    model, rows, _ = learned(name, 100)
    return model, np.nan_to_num(rows)


@LONG
@pytest.mark.parametrize("name", EVALUATED)
def test_an_evaluation_is_used(name):
    model, rows = evaluated(name)
    plain, evaluation = MODELS[name].read(model.to_bytes()), model.evaluate(rows)
    wrong = evaluation._replace(values=np.roll(evaluation.values, 1, axis=1))
    model.partial_fit(rows, evaluation=wrong)
    assert model.to_bytes() != plain.partial_fit(rows).to_bytes()


UNUSED = {
    "of other rows": lambda model, rows, _: model.evaluate(rows[::-1]),
    "of fewer rows": lambda model, rows, _: model.evaluate(rows[:99]),
    "by another model": lambda _, rows, other: other.partial_fit(-rows).evaluate(rows),
    "from before": lambda model, rows, _: (model.evaluate(rows), model.partial_fit(rows[:50]))[0],
    "forgetting first": lambda model, rows, _: model.set_params(memory=100.0).evaluate(rows),
    "of several mini-batches": lambda model, rows, _: model.evaluate(rows),
}


@LONG
@pytest.mark.parametrize("name", EVALUATED)
@pytest.mark.parametrize("case", UNUSED)
def test_an_evaluation_that_is_none_of_these_rows_by_the_model_as_it_is_is_not_used(name, case):
    model, rows = evaluated(name)
    evaluation = UNUSED[case](model, rows, MODELS[name].read(model.to_bytes()))
    plain, size = MODELS[name].read(model.to_bytes()), 50 if "several" in case else 100
    model.partial_fit(rows, evaluation=evaluation, batch_size=size)
    assert model.to_bytes() == plain.partial_fit(rows, batch_size=size).to_bytes()


QUERIES = {
    "score_samples": lambda model, *given: model.score_samples(*given)[:, None],
    "contributions": lambda model, *given: model.contributions(*given),
    "impute": lambda model, *given: model.impute(*given),
    "expected": lambda model, *given: np.hstack(model.expected(*given)),
    "given_others": lambda model, *given: np.hstack(model.given_others(*given)),
    "evaluate": lambda model, *given: model.evaluate(*given).log_density[:, None],
    "quantiles": lambda model, *given: np.hstack(
        [*model.conditional_quantiles(*given, [0.01, 0.5])[1]]
    ),
}


@LONG
@pytest.mark.parametrize("name", MODELS)
def test_an_answer_about_a_row_depends_on_that_row_alone(name):
    subject = SUBJECTS[name]
    model = subject.read(whole(name)[0])
    rows = np.concatenate([subject.rows[:227], subject.rows[-30:]])
    assert len(rows) == MOST_ROWS + 1, "a row is left over by a block"
    rows[::7, -1] = rows[::5, 0] = np.nan
    rows[3], rows[50], rows[20, 1] = 1e12, np.nan, 1e12
    rows[60:63, 1:] = np.nan
    keys = [] if subject.keys is None else [[*subject.keys[:227], *subject.keys[-30:]]]
    fewer = {"EntityDensity": [*QUERIES][:4], "CategoricalDensity": [*QUERIES][:3]}
    queries = fewer.get(subject.kind, QUERIES)
    for query in queries:

        def ask(some, order="C", query=query):
            given = np.asarray(rows[some], order=order)
            return QUERIES[query](model, given, *(each[some] for each in keys))

        together = ask(slice(None))
        assert np.array_equal(ask(slice(13, 147), "F"), together[13:147], equal_nan=True), query
        assert np.array_equal(ask(slice(None, None, -1)), together[::-1], equal_nan=True), query
        for r in [*range(0, 64, 7), 255, 256]:
            alone = ask(slice(r, r + 1))
            assert exact(alone) == exact(together[r : r + 1]), (query, r)
    assert model.to_bytes() == whole(name)[0], "asking changes nothing"


@LONG
@pytest.mark.parametrize("at", [101, 1461, 1851])
@pytest.mark.parametrize("name", [name for name in SCORERS if SCORERS[name].later])
def test_the_forecast_of_the_next_record_is_what_its_band_will_be(name, at):
    subject, state, some = SCORERS[name], state_at(name, at), slice(at, at + 1)
    scorer = subject.read(state)
    keys = KEYS[some] if "max_entities" in subject.parameters else None
    foreseen = scorer.forecast(keys, PLACES[some, 1])
    assert scorer.to_bytes() == state
    assert exact(subject.go_on(scorer, some)[1].forecast) == exact(foreseen)


ESTIMATORS = {
    "EntityDensity": (EntityDensity, {"max_entities": 1000}, (0, 1, 2)),
    "CategoricalDensity": (
        partial(CategoricalDensity, n_categories=2), {"n_categories": 2}, (0, 1, CATEGORY, COUNTER)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_that_learns_when_a_scorer_does_has_its_density(kind, name):
    make, parameters, columns = ESTIMATORS[name]
    estimator, scorer, n = make(kind()), StreamScorer(kind(), **parameters), 0
    keys = [b"m-%d" % number for number in np.random.default_rng(3).integers(30, size=752)]
    for start, stop in itertools.pairwise([0, 16, 48, 112, 240, 496, 752]):
        some, own = slice(start, stop), keys[start:stop]
        given = (ROWS[some, columns], own) if name == "EntityDensity" else (ROWS[some, columns],)
        block = scorer.process(*given)
        assert block.held_back == 0, "the guard must let all records pass"
        if start > 0:  # later records of an entity know of earlier ones
            first = np.unique(own, return_index=True)[1] if len(given) > 1 else slice(None)
            found, expected = estimator.score_samples(*given)[first], block.log_likelihood[first]
            np.testing.assert_allclose(found, expected, rtol=0.0 if len(given) > 1 else 1e-12)
            n += len(found)
        estimator.partial_fit(*given)
    assert n > 100


OFF = {
    "incidents": ("incidents", None),
    "entity_events": ("entity_events", ()),
    "silences": ("silences", False),
    "forecasting": ("forecast", False),
}
"""What may be told besides scores, and how to leave it out."""


@LONG
@pytest.mark.parametrize("setting", OFF)
def test_what_is_told_besides_scores_changes_none_of_them_and_nothing_else(setting):
    subject, (member, off) = SCORERS["all"], OFF[setting]
    fewer = [
        {key: value for key, value in each.items() if key != setting}
        for each in (subject.parameters, subject.later)
    ]
    without = dataclasses.replace(subject, parameters=fewer[0], later=fewer[1])
    scorer, said = run(without)
    state, answers = whole("all")
    assert without.answers(scorer, said) | {member: None} == answers | {member: None}
    told = subject.read(state)
    setattr(told, setting, off)
    assert told.to_bytes() == scorer.to_bytes()


@LONG
def test_a_layer_that_is_off_leaves_nothing_in_the_state():
    values, arrays = unpacked("plain", 1960)
    layers = "entit former habit kinds watch history season silence rate incident evidence category"
    assert not [name for name in (*values, *arrays) if name.startswith(tuple(layers.split()))]
    timed = ("silences", "history", "seasons", "categories and seasons", "all but entities", "all",
             "all with mixtures")  # fmt: skip
    for name, subject in SCORERS.items():
        assert subject.new().needs_times == (name in timed), name
