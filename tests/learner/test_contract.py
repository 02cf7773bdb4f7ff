"""What every model and every scorer promises of its state, whatever it is made of.

Any cutting of the stream gives the same bits, with restarts or without.
"""

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from contract import at_once, run, state_at, unpacked, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import needs_compiler
from scipy import stats
from subjects import KEYS, MODELS, OF, PLACES, SCORERS, SUBJECTS, exact

from faust_oslrau.learner.state import unpack
from faust_oslrau.learner.vector.blocks import MOST_ROWS

pytestmark = pytest.mark.usefixtures("sooner", "blocks_of_three")

LONG = needs_compiler("whole streams, again and again")
NETWORKS = [name for name in MODELS if "Density" not in name]
QUICK = ("plain", "OSLRAU", "OSLRAU of one component", "EntityDensity")


def of_each(names):
    """Parametrize by names of subjects, of which a few are quick without the compiler."""
    marked = [pytest.param(name, marks=() if name in QUICK else LONG) for name in names]
    return pytest.mark.parametrize("name", marked)


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


def taught(name, n=60):
    """Return a model after its stream, and what it is asked: some rows, with the entities."""
    subject = MODELS[name]
    keys = () if subject.keys is None else (subject.keys[:n],)
    return subject.read(whole(name)[0]), subject.rows[:n].copy(), keys


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
    model, rows, _ = taught(name, 100)
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


@of_each(MODELS)
def test_contributions_are_the_log_densities_without_a_field_less_those_with_it(name):
    model, rows, keys = taught(name)
    rows[7, 1:] = rows[3, 0] = np.nan
    found, density = model.contributions(rows, *keys), model.score_samples(rows, *keys)
    for column in range(rows.shape[1]):
        rest, known = rows.copy(), ~np.isnan(rows[:, column])
        rest[:, column] = np.nan
        assert np.isnan(found[~known, column]).all()
        if column >= rows.shape[1] - getattr(model, "n_categories", 0):
            known &= ~np.isnan(rows[:, -2:]).any(axis=1)  # sums over many pairs are not exact
        expected = model.score_samples(rest, *keys) - density
        np.testing.assert_allclose(found[known, column], expected[known], atol=1e-9)
    if hasattr(model, "given_others"):
        np.testing.assert_allclose(model.given_others(rows, *keys)[0], found, atol=1e-9)


@of_each([name for name in MODELS if not name.startswith("Categorical")])
def test_conditional_densities_and_what_is_filled_in_follow_from_densities_and_means(name):
    model, rows, keys = taught(name)
    rows[::3, 1] = np.nan
    rest = np.column_stack([rows[:, :1], np.full((len(rows), rows.shape[1] - 1), np.nan)])
    expected = model.score_samples(rows, *keys) - model.score_samples(rest, *keys)
    found = model.conditional_log_density(rows, *keys, given=[0])
    np.testing.assert_array_equal(found, expected)
    filled, (mean, _) = model.impute(rows, *keys), model.expected(rows, *keys)
    np.testing.assert_array_equal(filled, np.where(np.isnan(rows), mean, rows))


def on_axis(model, row, v, middle, width, key=None):
    """Return values of a field, and what of its density given the others of a row is at them."""
    x = middle + width * np.sinh(np.linspace(-14.0, 14.0, 20_001))
    rest, rows = row[None].copy(), np.tile(row, (len(x), 1))
    rest[:, v], rows[:, v] = np.nan, x
    joint, others = (
        model.score_samples(each, *([] if key is None else [[key] * len(each)]))
        for each in (rows, rest)
    )
    density = np.exp(joint - others)
    return (x[1:] + x[:-1]) / 2, np.diff(x) * (density[1:] + density[:-1]) / 2


@LONG
@pytest.mark.parametrize("name", NETWORKS)
def test_expected_values_are_the_moments_of_the_conditional_density(name):
    model, rows, _ = taught(name, 3)
    rows[2, -1] = np.nan
    means, deviations = model.expected(rows)
    for r, v in np.argwhere(~np.isnan(means)):  # of a field never observed nothing is expected
        mean, deviation = means[r, v], deviations[r, v]
        x, mass = on_axis(model, rows[r], v, mean, 1e-3 * deviation)
        assert mass.sum() == pytest.approx(1.0, abs=1e-4)
        assert mass @ x == pytest.approx(mean, abs=1e-3 * deviation)
        assert np.sqrt(mass @ (x - mean) ** 2) == pytest.approx(deviation, rel=5e-3)


@LONG
@pytest.mark.parametrize("known", [[], [2], [1, 2]])
@pytest.mark.parametrize("name", NETWORKS)
def test_quantiles_are_where_so_much_of_the_conditional_density_lies_below(name, known):
    model, rows, _ = taught(name, 1)
    row, levels = np.full_like(rows, np.nan), [0.01, 0.5, 0.99]
    row[0, known] = rows[0, known]
    mean, quantiles = model.conditional_quantiles(row, levels)
    low, middle, high = quantiles[:, 0, 0]
    x, mass = on_axis(model, row[0], 0, middle, 1e-3 * (high - low))
    found = np.interp([low, middle, high], x + np.diff(x, append=0.0) / 2, mass.cumsum())
    np.testing.assert_allclose(found, levels, atol=1e-4)
    assert mean[0, 0] == pytest.approx(mass @ x, abs=1e-3 * (high - low))
    np.testing.assert_array_equal(quantiles[:, 0, known], row[[0, 0, 0]][:, known])
    unseen = np.isnan(MODELS[name].rows).all(axis=0)
    assert np.isnan(mean[:, unseen]).all() and np.isnan(quantiles[:, :, unseen]).all()


@LONG
@pytest.mark.parametrize("name", NETWORKS)
def test_conditional_moments_of_several_fields_are_those_of_one_given_the_other(name):
    model, rows, _ = taught(name, 1)
    row = np.nan_to_num(rows[0])
    row[[0, -1]] = np.nan
    mean, covariance = model.conditional_moments(row)
    np.testing.assert_allclose(mean, model.impute(row[None])[0], rtol=1e-9)
    deviation = model.expected(row[None])[1][0, [0, -1]]
    np.testing.assert_allclose(np.sqrt(covariance.diagonal()[[0, -1]]), deviation, rtol=1e-9)
    x, mass = on_axis(model, row, 0, mean[0], 1e-3 * deviation[0])
    given = np.tile(row, (len(x), 1))
    given[:, 0] = x
    found = mass @ ((x - mean[0]) * model.expected(given)[0][:, -1])
    assert found == pytest.approx(covariance[0, -1], abs=1e-3 * deviation.prod())
    assert not covariance[1].any(), "nothing is unknown of a field that is given"


@LONG
@pytest.mark.parametrize("size", [1e3, 1e9, 1e30])
@pytest.mark.parametrize("name", NETWORKS)
def test_an_impossible_field_is_expected_where_the_others_say(name, size):
    model, rows, _ = taught(name, 1)
    row = np.nan_to_num(rows)
    without = row.copy()
    row[0, 0], without[0, 0] = size, np.nan
    for far, unknown in zip(model.expected(row), model.expected(without), strict=True):
        assert far[0, 0] == pytest.approx(unknown[0, 0], rel=1e-9)
    nats = model.score_samples(without) - model.score_samples(row)
    assert model.contributions(row)[0, 0] == pytest.approx(nats[0], rel=1e-12)


OF_ENTITIES = [name for name in MODELS if name.startswith("EntityDensity")]


@LONG
@pytest.mark.parametrize("known", [[], [0], [0, 2]])
@pytest.mark.parametrize(
    ("name", "key"),
    [*((name, None) for name in NETWORKS), *itertools.product(OF_ENTITIES, [OF[0], b"new"])],
)
def test_what_is_drawn_has_the_conditional_density_which_integrates_to_one(name, key, known):
    model, rows, _ = taught(name, 1)
    row = np.full(rows.shape[1], np.nan)
    row[known] = rows[0, known]
    drawn = model.sample(*([] if key is None else [key]), 2000, given=row, random_state=2)
    assert (drawn[:, known] == row[known]).all()
    v = max({1, 2, 3} - {*known} - {len(row)})
    found = drawn[:, v]
    x, mass = on_axis(model, row, v, np.median(found), 1e-3 * np.ptp(found), key)
    assert mass.sum() == pytest.approx(1.0, abs=1e-3)
    below = np.interp(found, x + np.diff(x, append=0.0) / 2, mass.cumsum())
    assert stats.kstest(below, "uniform").pvalue > 1e-3


@of_each(MODELS)
def test_what_is_drawn_repeats_with_a_seed_and_holds_what_is_given(name):
    model, rows, keys = taught(name, 1)
    given = np.where(np.arange(rows.shape[1]) == 0, 1.0, np.nan)
    draw = functools.partial(model.sample, *(key[0] for key in keys), given=given)
    drawn = draw(50, random_state=4)
    np.testing.assert_array_equal(drawn, draw(50, random_state=4))
    assert (drawn != draw(50, random_state=5)).any() and drawn.shape == (50, rows.shape[1])
    assert (drawn[:, 0] == 1.0).all() and np.isfinite(model.score_samples(drawn[:1], *keys))
    assert model.to_bytes() == whole(name)[0], "drawing changes nothing"


@of_each(MODELS)
def test_no_rows_have_no_answers_and_one_without_any_value_has_density_one(name):
    model, rows, keys = taught(name, 1)
    none = [key[:0] for key in keys]
    assert model.score_samples(rows[:0], *none).shape == (0,)
    assert model.contributions(rows[:0], *none).shape == (0, rows.shape[1])
    nearly = pytest.approx([0.0], abs=1e-6 if keys else 1e-12)  # of entities in single precision
    assert model.score_samples(np.full_like(rows, np.nan), *keys) == nearly
    new = MODELS[name].new()
    assert new.partial_fit(rows[:0], *none).n_records_ == 0


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
