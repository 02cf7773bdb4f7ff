"""Categories that are added to a stream: as if each record so far had lacked them."""

import numpy as np
import pytest
from contract import state_at
from interpreter import needs_compiler
from streams import codes
from subjects import ROWS, SCORERS
from test_added_numbers import (
    LOOSE,
    OF_COUNTS,
    assert_may_be_cut_anywhere,
    coming,
    narrow,
    process,
)
from test_effects import records
from test_late_categories import FIELDS, RATE, of_layers, services
from test_late_fields import START, processed

from faust_oslrau.learner import OSLRAU, IncidentParameters, StreamScorer
from faust_oslrau.learner.errors import InvalidParameterError
from faust_oslrau.learner.state import unpack
from faust_oslrau.learner.stream.late import ENOUGH

pytestmark = [pytest.mark.usefixtures("sooner"), needs_compiler("long streams")]

K, N = 2, len(ROWS)

MIDST = [(name, 1040) for name in SCORERS]
EARLY = [("all", 16), ("plain", 10), ("categories", 10), ("mixtures", 300), ("entities", 130)]
LATE = [("incidents", 1360), ("categories", 1360), ("plain", 1530), ("history", 1530)]
"""Scorers with open incidents, and then with records that are held back."""

of_all = pytest.mark.parametrize(("name", "at"), MIDST + EARLY + LATE)


def wide(name, added=np.nan):
    """Return the rows of a subject's stream with the categories (N, 2) that are added."""
    return np.column_stack([narrow(name), np.broadcast_to(added, (N, K))])


def widened(name, at):
    scorer = SCORERS[name].read(state_at(name, at))
    assert scorer.takes_fields(0, K)
    scorer.add_categories(K)
    return scorer


def has_nearness(name):
    return not {"n_categories", "history", "max_entities"} & SCORERS[name].parameters.keys()


@of_all
def test_records_without_them_are_as_usual_as_before(name, at):
    before = process(name, SCORERS[name].read(state_at(name, at)), narrow(name), at)
    after = process(name, widened(name, at), wide(name), at)
    same = after.n_learned == after.n_learned[0]
    assert np.count_nonzero(same) >= 6
    density, wider = before.log_likelihood[same], after.log_likelihood[same]
    np.testing.assert_allclose(wider, density, rtol=1e-9, atol=LOOSE.get(name, 1e-9))
    moved = after.p_value[same] - before.p_value[same]
    if name == "transforms" or np.isnan(moved).all():
        return
    if has_nearness(name):  # one measure less is at least as high
        assert np.nanmin(moved) > -0.1
        assert -0.02 < np.nanmean(moved) < 0.2
    else:
        assert np.nanmax(np.abs(moved), initial=0.0) < 0.02  # equal records are not known yet


OF_NEARNESS = (
    "level", "spread", "mean_level", "mean_spread", "recent_scores", "recent_densities", "held_",
    "pending_measures", "pending_scores", "evidence", "relevance_counts", "incident",
    "learner", "neighbours", "variance", "mass_", "drift_",
)  # fmt: skip
"""Arrays that rest on nearness, or on records that are held back by it."""

BESIDE_NUMBERS = ("category_", "effect_", "late_category_", "recent_marks", "pending_marks")
"""Those of categories, which begin when they are added."""


def assert_same_state(scorer, expected, skipped):
    arrays, expected = (unpack(each.to_bytes(), "StreamScorer")[1] for each in (scorer, expected))
    assert arrays["recent_marks"].size == 0  # later rows have other ones
    assert np.isnan(arrays["pending_marks"]).all()
    compared = [array for array in expected if not array.startswith(skipped)]
    assert len(compared) > 5
    for array in compared:
        np.testing.assert_allclose(arrays[array], expected[array], rtol=1e-9, err_msg=array)


@pytest.mark.parametrize(
    "name", [name for name in SCORERS if "n_categories" not in SCORERS[name].parameters]
)
def test_the_state_is_what_it_would_be_if_they_had_been_missing(name):
    at, parameters = 1040, SCORERS[name].parameters | {"n_categories": K}
    scorer = StreamScorer(SCORERS[name].learner(), alarm_rate=0.02, **parameters)
    process(name, scorer, wide(name), 0, at)
    skipped = BESIDE_NUMBERS + OF_NEARNESS * has_nearness(name)
    assert_same_state(widened(name, at), scorer, skipped + OF_COUNTS * (name == "transforms"))


@of_layers
def test_beside_others_too(layers):
    n = START + 300
    rows, machine = services(np.random.default_rng(6), n, late=n)
    scorer, expected = (
        StreamScorer(OSLRAU(), n_categories=c, incidents=IncidentParameters(), **layers)
        for c in (1, 2)
    )
    processed(scorer, rows[:, :-1], machine)
    processed(expected, rows, machine)
    scorer.add_categories(1)
    assert_same_state(scorer, expected, ("recent_marks", "pending_marks"))


@of_all
def test_a_scorer_with_them_may_be_cut_and_read_anywhere(name, at):
    added = coming(np.random.default_rng(at), at, codes(at, N, (3, 4))[:, 1:])
    assert_may_be_cut_anywhere(name, at, widened, wide(name, added))


@of_all
def test_one_after_the_other_they_give_the_same_state(name, at):
    scorer = SCORERS[name].read(state_at(name, at))
    for _ in range(K):
        scorer.add_categories(1)
    assert scorer.to_bytes() == widened(name, at).to_bytes()


def test_an_open_incident_goes_on_with_the_fields_that_it_blames():
    name, at = "categories", 1360
    one = process(name, SCORERS[name].read(state_at(name, at)), narrow(name), at).incidents[0]
    other = process(name, widened(name, at), wide(name), at).incidents[0]
    assert other.incident == one.incident
    assert one.incident.opened.number < at
    for blame in (one.blame, other.blame):
        assert blame.order[0, : blame.n_blamed[0]].tolist() == [0, 1]


@pytest.mark.parametrize("together", [0.0, 4.0])
def test_what_numbers_depend_on_stays_the_same(together):
    rows = records(0, together)
    scorer = StreamScorer(OSLRAU(), n_categories=3)
    scorer.process(rows)
    added = StreamScorer.from_bytes(scorer.to_bytes())
    added.add_categories(2)
    before, wider = rows[:500], np.insert(rows[:500], [4, 4], np.nan, axis=1)
    np.testing.assert_allclose(
        added.process(wider).log_likelihood, scorer.process(before).log_likelihood, rtol=1e-9
    )
    names = ["number", "a", "b", "c", "d", "e"]
    assert added.dependences(names) == scorer.dependences(names[:4])


@of_layers
@pytest.mark.parametrize("has_others", [False, True], ids=["beside numbers", "beside others"])
def test_they_raise_no_alarms_and_numbers_come_to_depend_on_them(layers, has_others):
    n = START + ENOUGH + 2000
    rows, machine = services(np.random.default_rng(1), n, late=0)
    if not has_others:
        rows = np.delete(rows, 3, axis=1)
    scorer = StreamScorer(OSLRAU(), alarm_rate=RATE, n_categories=int(has_others), **layers)
    processed(scorer, rows[: START + 100, :-1], machine[: START + 100])
    scorer.add_categories(1)
    rest = slice(START + 100, n)
    alarms = processed(scorer, rows[rest], machine[rest], START + 100).is_anomaly
    for some in (alarms[:1000], alarms[1000:ENOUGH], alarms[ENOUGH:]):
        assert some.mean() < 3 * RATE
    fields = [field for field in FIELDS if has_others or field != "zone"]
    assert scorer.dependences(fields)["a"] == ["service"]


@pytest.mark.parametrize("name", ["plain", "categories", "entities"])
def test_a_category_that_hardly_ever_comes_is_found_soon(name):
    at, rng = 1040, np.random.default_rng(3)
    added = np.where(rng.random((N, K)) < 0.5, 1.0, 2.0)
    added[at + 700, 0] = 9.0
    block = process(name, widened(name, at), wide(name, added), at)
    assert block.p_value[700] < 0.02


def scored(d=3, n=40, **parameters):
    scorer = StreamScorer(OSLRAU(), **parameters)
    rows = np.random.default_rng(1).normal(size=(n, d))
    rows[:, d - parameters.get("n_categories", 0) :] = np.arange(n)[:, None]
    scorer.process(rows, np.zeros(n, np.int64) if "max_entities" in parameters else None)
    return scorer


REFUSED = {
    "beside numbers": (lambda: scored(), 129, "categories = 129: .* at most 128"),
    "beside others": (lambda: scored(n_categories=1), 128, "categories = 129: "),
    "no units yet": (lambda: scored(n=10, max_entities=5), 1, "expected a learning batch before"),
}  # fmt: skip


@pytest.mark.parametrize(("new", "k", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_added_is_refused_and_changes_nothing(new, k, message):
    scorer = new()
    state = scorer.to_bytes()
    assert not scorer.takes_fields(0, k)
    with pytest.raises(InvalidParameterError, match=message):
        scorer.add_categories(k)
    assert scorer.to_bytes() == state


@pytest.mark.parametrize(("k", "parameters"), [(128, {}), (127, {"n_categories": 1})])
def test_what_is_just_possible_is_not_refused(k, parameters):
    scorer = scored(**parameters)
    scorer.add_categories(k)
    read = StreamScorer.from_bytes(scorer.to_bytes())
    assert read.n_fields == 3 + k


def test_the_most_frequent_values_are_told_apart_still():
    """Of two categories with many values, and of the pairs of them, on which a number depends."""
    rng = np.random.default_rng(5)
    of = np.minimum(rng.geometric(0.02, size=(12_000, 2)), 250)
    levels = 5.0 * rng.normal(size=(2, 251))
    number = levels[0, of[:, 0]] + levels[1, of[:, 1]] + rng.normal(size=len(of))
    number[(of[:, 0] % 2 == 0) & (of[:, 1] % 2 == 0)] += 10.0
    rows = np.column_stack([number, of])
    scorer = StreamScorer(OSLRAU(), n_categories=2)
    scorer.process(rows)
    added = StreamScorer.from_bytes(scorer.to_bytes())
    added.add_categories(2)
    added = StreamScorer.from_bytes(added.to_bytes())
    held = np.isin(scorer.category_codes(), added.category_codes())
    assert len(scorer.category_codes()) > 200 > len(added.category_codes()) > 100
    assert held.any()
    wider = np.insert(rows, [3, 3], np.nan, axis=1)[-500:]
    before, after = (each.process(some) for each, some in ((scorer, rows[-500:]), (added, wider)))
    frequent = (of[-500:] < 60).all(axis=1)
    gap = after.log_likelihood - before.log_likelihood
    assert frequent.sum() > 200
    np.testing.assert_allclose(gap[frequent], 0.0, atol=0.5)
    assert np.median(np.abs(gap[frequent])) < 0.05
    assert np.isfinite(gap).all()


def test_nothing_is_to_be_done_before_the_first_rows():
    scorer = StreamScorer(OSLRAU())
    scorer.add_categories(2)
    assert scorer.to_bytes() == StreamScorer(OSLRAU(), n_categories=2).to_bytes()
