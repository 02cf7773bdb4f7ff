"""Numbers that are added to a stream: as if they had been missing in each record so far."""

import numpy as np
import pytest
from contract import NETWORKS, learned, state_at
from interpreter import needs_compiler
from streams import clusters
from subjects import KEYS, PLACES, ROWS, SCORERS
from test_late_fields import LAYERS, START, processed, with_late_field

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.density.gaussian_mixture import GaussianMixture
from faust_oslrau.learner.errors import InvalidParameterError
from faust_oslrau.learner.network.layout import SUM
from faust_oslrau.learner.state import unpack
from faust_oslrau.learner.stored import Places
from faust_oslrau.learner.stream.late import ENOUGH

pytestmark = [pytest.mark.usefixtures("sooner"), needs_compiler("long streams")]

ADDED = [None, "asinh", "count"]
N = len(ROWS)

MIDST = [(name, 700 if name == "categories" else 1040) for name in SCORERS]
"""All scorers in the midst of a learning batch, without open incidents."""

EARLY = [("all", 10), ("plain", 16), ("transforms", 30), ("mixtures", 300), ("entities", 130)]
LATE = [
    ("incidents", 1360),
    ("all", 1360),
    ("categories", 1360),
    ("plain", 1530),
    ("history", 1530),
]
"""Scorers with open incidents, and then with records that are held back."""

FORMER = [("entities", 1530)]
"""One with former entities, and relations in each entity that have just changed."""

of_all = pytest.mark.parametrize(("name", "at"), MIDST + EARLY + LATE + FORMER)
of_most = pytest.mark.parametrize(("name", "at"), MIDST + EARLY + LATE)
of_calm = pytest.mark.parametrize(("name", "at"), MIDST + EARLY)


def n_numbers(name):
    return len(SCORERS[name].columns) - SCORERS[name].parameters.get("n_categories", 0)


def narrow(name):
    return ROWS[:, SCORERS[name].columns]


def wide(name, added=np.nan):
    """Return the rows of a subject's stream with the numbers (N, 3) that are added."""
    before, after = np.split(narrow(name), [n_numbers(name)], axis=1)
    return np.column_stack([before, np.broadcast_to(added, (N, len(ADDED))), after])


def process(name, scorer, rows, start, stop=N):
    some = slice(start, stop)
    keys = KEYS[some] if "max_entities" in SCORERS[name].parameters else None
    return scorer.process(rows[some], keys, PLACES[some])


def widened(name, at):
    scorer = SCORERS[name].read(state_at(name, at))
    scorer.add_numbers(ADDED)
    return scorer


LOOSE = {"transforms": 3.0, "entities": 0.2, "few entities": 0.2}
"""Nats by which log-likelihoods may differ where they depend on the number of columns: counts are
spread by it, and the covariance of an entity is drawn to that of all by it."""


@of_most
def test_records_without_them_are_as_usual_as_before(name, at):
    before = process(name, SCORERS[name].read(state_at(name, at)), narrow(name), at)
    after = process(name, widened(name, at), wide(name), at)
    same = after.n_learned == after.n_learned[0]
    assert np.count_nonzero(same) >= 6
    density, wider = before.log_likelihood[same], after.log_likelihood[same]
    np.testing.assert_allclose(wider, density, rtol=1e-6, atol=LOOSE.get(name, 1e-9))
    moved = np.abs(np.log(after.p_value[same] / before.p_value[same]))
    if name != "transforms" and not np.isnan(moved).all():
        # Gaussians are a little wider where as many records tell of more fields
        assert np.nanmedian(moved) < 0.05
        assert np.nanmax(moved) < 0.3


OF_THE_NETWORK = (
    "learner", "level", "spread", "mean_level", "mean_spread", "mass_", "recent_", "drift_",
    "pending_measures", "pending_scores", "pending_marks", "evidence", "relevance_counts",
    "entity_unmet", "entity_score_ages", "entity_new_score_ages", "kinds_", "habit_",
)  # fmt: skip
"""Arrays that rest on densities, whose networks grow otherwise, or on rows as a whole; and those of
a batch in which a field is missing, with nothing of that field."""

OF_COUNTS = ("neighbours", "variance", "lowest", "highest", "pending_rows")
"""Those that have counts, which the number of columns spreads."""


@of_calm
def test_the_state_is_what_it_would_be_if_they_had_been_missing(name, at):
    parameters, d = SCORERS[name].parameters, n_numbers(name)
    transforms = parameters.get("transforms", {}) | {d + 1: "asinh", d + 2: "count"}
    scorer = StreamScorer(
        SCORERS[name].learner(), alarm_rate=0.02, **parameters | {"transforms": transforms}
    )
    process(name, scorer, wide(name), 0, at)
    values, arrays = unpack(widened(name, at).to_bytes(), "StreamScorer")
    expected_values, expected = unpack(scorer.to_bytes(), "StreamScorer")
    assert values == expected_values
    skipped = OF_THE_NETWORK + (OF_COUNTS if name == "transforms" else ())
    compared = [array for array in expected if not array.startswith(skipped)]
    assert arrays.keys() == expected.keys()
    assert len(compared) > 10
    assert arrays["recent_marks"].size == 0  # later rows have other ones
    assert np.isnan(arrays["pending_marks"]).all()
    for array in compared:
        np.testing.assert_allclose(arrays[array], expected[array], rtol=1e-9, err_msg=array)


def assert_may_be_cut_anywhere(name, at, widened, rows):
    """Hold what a ``widened`` scorer says, in pieces and read anew, against the whole."""
    scorer = widened(name, at)
    whole = process(name, scorer, rows, at)
    read, parts, start = widened(name, at), [], at
    for stop in (at + 1, at + 90, at + 101, at + 160, at + 224, at + 300, N):
        read = SCORERS[name].read(read.to_bytes())
        parts.append(process(name, read, rows, start, stop).p_value)
        start = stop
    np.testing.assert_array_equal(np.concatenate(parts), whole.p_value)
    assert read.to_bytes() == scorer.to_bytes()


def coming(rng, at, added):
    """Return fields (N, k) some of which are missing, and all until some records after ``at``."""
    added[rng.random(added.shape) < 0.1] = np.nan
    added[: at + 100] = np.nan
    return added


@of_all
def test_a_scorer_with_them_may_be_cut_and_read_anywhere(name, at):
    rng = np.random.default_rng(at)
    added = np.column_stack([ROWS[:, :2] + rng.normal(size=(N, 2)), rng.poisson(3, size=N)])
    assert_may_be_cut_anywhere(name, at, widened, wide(name, coming(rng, at, added)))


@of_all
def test_one_after_the_other_they_give_the_same_state(name, at):
    scorer = SCORERS[name].read(state_at(name, at))
    for added in ADDED:
        scorer.add_numbers([added])
    values, arrays = unpack(scorer.to_bytes(), "StreamScorer")
    expected_values, expected = unpack(widened(name, at).to_bytes(), "StreamScorer")
    assert values == expected_values
    for array in expected.keys() - {"learner"}:  # whose leaves may be in another order
        np.testing.assert_array_equal(arrays[array], expected[array], array)


NOT_THERE = (
    "entity_reference", "entity_unmet", "run_last", "neighbours", "season_rows", "season_level",
    "kinds_first",
)  # fmt: skip
"""Arrays whose last columns are missing for fields that have not come."""


@of_all
def test_they_are_unknown_until_they_come(name, at):
    """Some are added while others that were added have not come."""
    d, scorer, rows = n_numbers(name), SCORERS[name].read(state_at(name, at)), wide(name)
    scorer.add_numbers(ADDED[:1])
    process(name, scorer, np.delete(rows, [d + 1, d + 2], axis=1), at, at + 5)
    scorer.add_numbers(ADDED[1:])
    for start, stop in ((at + 5, at + 20), (at + 20, at + 300)):
        process(name, scorer, rows, start, stop)
        arrays = unpack(scorer.to_bytes(), "StreamScorer")[1]
        found = [array for array in NOT_THERE if arrays.get(array, np.empty(0)).size]
        assert len(found) > 1
        for array in found:
            assert np.isnan(arrays[array][..., d:]).all(), array
        for columns in (arrays["held_rows"], arrays["pending_rows"], scorer.learner.scale_):
            assert np.isnan(columns.reshape(-1, d + len(ADDED))[:, d:]).all()
        learner = unpack(scorer.learner.to_bytes(), "OSLRAU")[1]
        first = learner.get("first", np.full((1, d + len(ADDED)), np.nan).T)
        assert np.isnan(first.reshape(-1, d + len(ADDED), first.shape[1])[:, d:]).all()
    assert not arrays["late_there"][d:].any()


def test_an_open_incident_goes_on_with_the_fields_that_it_blames():
    name, at = "categories", 1360
    one = process(name, SCORERS[name].read(state_at(name, at)), narrow(name), at).incidents[0]
    other = process(name, widened(name, at), wide(name), at).incidents[0]
    assert other.incident.opened == one.incident.opened
    assert one.incident.opened.number < at
    for blame in (one.blame, other.blame):
        assert blame.order[0, : blame.n_blamed[0]].tolist() == [0, 1]
    np.testing.assert_allclose(other.blame.nats[0, :2], one.blame.nats[0, :2])


def test_what_is_set_of_later_columns_goes_with_these():
    scorer = scored(3, n_categories=2, directions={0: "high", 1: "low"}, least={2: 1.0})
    scorer.add_numbers([None, "log"])
    assert scorer.parameters["directions"] == {0: "high", 3: "low"}
    assert scorer.parameters["least"] == {4: 1.0}
    assert scorer.parameters["transforms"] == {2: "log"}


@pytest.mark.usefixtures("blocks_of_three")
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_the_density_it_had(name):
    model, rows, _ = learned(name, 100)
    d = rows.shape[1]
    places = Places(np.arange(d) + (np.arange(d) > 0), d + 3)  # among them, and after them
    wider = np.full((len(rows), d + 3), np.nan)
    wider[:, places.old] = rows
    expected = model.score_samples(rows)
    model.add_variables(places)
    model.network_.check_validity()
    np.testing.assert_allclose(model.score_samples(wider), expected, rtol=1e-9, atol=1e-9)
    model = type(model).from_bytes(model.to_bytes())
    np.testing.assert_allclose(model.score_samples(wider), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("parameters", [{}, {"background": False}, {"n_init_components": 1}])
def test_a_network_is_what_it_would_be_if_they_had_been_missing(parameters):
    X = clusters(3, 400, 4, missing=0.05)
    model, expected = (
        OSLRAU(structure_until=0, **parameters).partial_fit(rows, batch_size=50)
        for rows in (X, np.insert(X, [4, 4], np.nan, axis=1))
    )
    model.add_variables(Places(np.arange(4), 6))
    found, expected = (unpack(each.to_bytes(), "OSLRAU")[1] for each in (model, expected))
    for array in expected:
        np.testing.assert_allclose(found[array], expected[array], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mixtures", [False, True])
def test_all_parts_of_a_network_learn_them_once_they_come(mixtures):
    rng = np.random.default_rng(4)
    X = clusters(4, 12_000, 3)
    model = OSLRAU(mixtures=mixtures, structure_until=2000)
    model.partial_fit(X[:2000], batch_size=100)
    model.add_variables(Places(np.arange(3), 4))
    added = 100.0 + rng.normal(size=len(X))
    added[2100:] += 3.0  # its units are those of the first batch
    model.partial_fit(np.column_stack([X, added])[2000:], batch_size=100)
    np.testing.assert_allclose(model.impute([[np.nan] * 4])[0, 3], 103.0, atol=0.3)
    network = model.network_
    factors = [
        child
        for sum_ in network.live[network.nodes["kind"][network.live] == SUM]
        if network.nodes["n_scope"][sum_] == 1 and network.scope(sum_)[0] == 3
        for child, _ in network.children(sum_)
    ]
    assert (len(factors) > 1) == mixtures
    learned_most = network.nodes[sorted(factors, key=lambda i: network.nodes["observed"][i])[-1:]]
    assert (learned_most["mean"] > 2.0).all()


def test_gaussians_have_them_with_a_variance_of_about_1_and_without_covariances():
    Z = np.ascontiguousarray(clusters(2, 500, 2).T)
    mixture = GaussianMixture.of_seeds(Z, 3, np.random.default_rng(0)).fit(Z)
    before = mixture.log_density(Z)[0]
    mixture.add_fields(Places(np.array([0, 2]), 4))
    wider = np.full((4, Z.shape[1]), np.nan)
    wider[[0, 2]] = Z
    np.testing.assert_allclose(mixture.log_density(wider)[0], before, atol=0.1)
    covariance = mixture.covariances(mixture.gaussians.mean)
    assert (np.abs(covariance[:, [1, 3], [1, 3]] - 1.0) < 0.2).all()
    assert (covariance[:, [1, 2, 3, 3, 3], [0, 1, 0, 1, 2]] == 0.0).all()
    assert (mixture.gaussians.mean[:, [1, 3]] == 0.0).all()


def added_later(layers, X, machine, start=START):
    """Return a scorer to which the last number was added, and what it said since then."""
    scorer = StreamScorer(OSLRAU(), **layers)
    processed(scorer, X[:start, :-1], machine[:start])
    scorer.add_numbers([None])
    return scorer, processed(scorer, X[start:], machine[start:], start)


of_layers = pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)


@of_layers
def test_while_they_are_missing_records_are_learned_as_without_them(layers):
    X, machine = with_late_field(np.random.default_rng(1), START + 2000)
    X[:, -1] = np.nan
    _, after = added_later(layers, X, machine)
    before = processed(StreamScorer(OSLRAU(), **layers), X[:, :-1], machine)
    gap = after.log_likelihood - before.log_likelihood[START:]
    assert abs(gap.mean()) < 0.05
    moved = np.abs(np.log(after.p_value / before.p_value[START:]))
    assert np.median(moved) < 0.1


@of_layers
def test_they_raise_no_alarms_when_they_come(layers):
    X, machine = with_late_field(np.random.default_rng(2), START + 1000)
    _, block = added_later(layers, X, machine)
    assert np.mean(block.p_value <= 0.01) < 0.03


@of_layers
def test_how_they_depend_on_others_is_learned_from_as_many_records_as_are_kept(layers):
    n = START + ENOUGH + 3 * 256
    X, machine = with_late_field(np.random.default_rng(3), n)
    scorer, _ = added_later(layers, X, machine)
    odd, own = with_late_field(np.random.default_rng(4), 40, late=0)
    z = (odd[:, 0] - 500.0 - 3.0 * own)[::2]
    # usual values, but not beside that of the first field
    odd[::2, -1] = 500.0 + 8000.0 * (3.0 * own[::2] - np.sign(z) * 2.0)
    p_value = processed(scorer, odd, own, n).p_value
    assert np.median(p_value[::2][np.abs(z) > 0.5]) < 0.01 < np.median(p_value[1::2])


def test_rows_that_are_kept_for_a_late_field_lack_one_that_is_added():
    X, machine = with_late_field(np.random.default_rng(5), START + ENOUGH + 600)
    scorer, _ = added_later({}, X[: START + 600], machine)
    scorer.add_numbers([None])
    arrays = unpack(scorer.to_bytes(), "StreamScorer")[1]
    assert len(arrays["late_rows"]) > 200
    assert np.isnan(arrays["late_rows"][:, -1]).all()
    rest = np.insert(X[START + 600 :], X.shape[1], np.nan, axis=1)
    assert np.mean(processed(scorer, rest, machine, START + 600).p_value <= 0.01) < 0.02


def scored(d, learner=None, **parameters):
    scorer = StreamScorer(learner or OSLRAU(), **parameters)
    keys = np.zeros(40, np.int64) if "max_entities" in parameters else None
    scorer.process(clusters(1, 40, d), keys)
    return scorer


REFUSED = {
    "habits": (lambda: scored(30, max_entities=5), 3 * [None], "numbers = 33: .* at most 32"),
    "background": (lambda: scored(120), 9 * [None], "numbers = 129: "),
    "background of means": (lambda: scored(60, history=("9",)), 5 * [None], "numbers = 65: "),
    "mass": (
        lambda: scored(120, OSLRAU(background=False)), 9 * [None], "numbers = 129: .* at most 128",
    ),
    "transform": (lambda: scored(3), ["log", "exp"], "transform 'exp' of column 4"),
    "no rows yet": (lambda: StreamScorer(OSLRAU()), ["log"], "expected rows before"),
    "learned before": (
        lambda: StreamScorer(OSLRAU().partial_fit(np.eye(3))), [None], "expected rows before",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("new", "added", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_added_is_refused_and_changes_nothing(new, added, message):
    scorer = new()
    state = scorer.to_bytes()
    with pytest.raises(InvalidParameterError, match=message):
        scorer.add_numbers(added)
    assert scorer.to_bytes() == state


@pytest.mark.parametrize(
    ("d", "more", "parameters"),
    [
        (30, 2, {"max_entities": 5}),
        (33, 5, {"max_entities": 5}),
        (30, 3, {"max_entities": 5, "history": ("9",)}),
        (120, 8, {}),
        (130, 20, {}),
    ],
)
def test_what_is_just_possible_is_not_refused(d, more, parameters):
    scorer = scored(d, **parameters)
    scorer.add_numbers(more * [None])
    assert StreamScorer.from_bytes(scorer.to_bytes()).n_fields == d + more


def test_nothing_is_to_be_done_before_the_first_rows():
    scorer = StreamScorer(OSLRAU())
    scorer.add_numbers([None])
    assert scorer.to_bytes() == StreamScorer(OSLRAU()).to_bytes()
