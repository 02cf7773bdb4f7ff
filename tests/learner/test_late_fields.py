"""Fields that come late, or never: what is said of the others, and how the new one is learned."""

import numpy as np
import pytest

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.entities.kinds import Kinds
from faust_oslrau.learner.state import unpack
from faust_oslrau.learner.stream.late import ENOUGH

START = 4000


def related(rng, n, d=4):
    """Rows of fields in units far apart, the last one of which follows the first."""
    z = rng.normal(size=(n, d))
    z[:, -1] = 0.9 * z[:, 0] + np.sqrt(1 - 0.9**2) * z[:, -1]
    return 500.0 + z * 20.0 ** np.arange(d)


def clusters(rng, n, d=4, k=6):
    centres = rng.normal(size=(k, d)) * 5
    return centres[rng.integers(k, size=n)] + rng.normal(size=(n, d))


@pytest.mark.parametrize("mixtures", [False, True])
def test_a_field_that_never_comes_costs_the_others_nothing(mixtures):
    rng = np.random.default_rng(0)
    X, latest = np.split(clusters(rng, 8000), [6000])
    without = OSLRAU(mixtures=mixtures).partial_fit(X, batch_size=256)
    never = np.full((len(X), 1), np.nan)
    model = OSLRAU(mixtures=mixtures).partial_fit(np.hstack([X, never]), batch_size=256)
    found = model.score_samples(np.hstack([latest, never[: len(latest)]])).mean()
    assert found > without.score_samples(latest).mean() - 0.2


def test_gaussians_of_a_field_that_never_comes_stay_as_they_are():
    rng, kinds = np.random.default_rng(0), Kinds()
    for _ in range(200):
        X = np.column_stack([rng.normal(size=(256, 3)), np.full(256, np.nan)])
        Z = np.ascontiguousarray(X.T)
        shares = np.empty((256, 0)) if kinds.mixture is None else kinds.mixture.log_density(Z)[1]
        kinds.learn(X, shares)
    variances = kinds.mixture.squares[:, 3, 3] / kinds.mixture.count
    np.testing.assert_allclose(variances, 1.0, rtol=1e-9)
    assert (kinds.mixture.sums[:, 3] == 0.0).all()


LAYERS = {
    "plain": {},
    "history": {"history": ("10",)},
    "seasons": {"seasons": "UTC"},
    "entities": {"max_entities": 30},
    "entities and history": {"max_entities": 30, "history": ("10",)},
}


def with_late_field(rng, n, late=START):
    X, machine = related(rng, n), rng.integers(20, size=n)
    X += (machine * 3.0)[:, None] * 20.0 ** np.arange(X.shape[1])
    X[:late, -1] = np.nan
    return X, machine


def processed(scorer, X, machine, start=0):
    entity = machine if scorer.parameters["max_entities"] else None
    number = start + np.arange(len(X))
    return scorer.process(X, entity, np.column_stack([number, 60_000 * number]))


@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
def test_a_field_that_comes_late_raises_no_alarms(layers):
    X, machine = with_late_field(np.random.default_rng(1), START + 1000)
    block = processed(StreamScorer(OSLRAU(), **layers), X, machine)
    assert np.mean(block.p_value[START:] <= 0.01) < 0.03


@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
def test_how_a_late_field_depends_on_others_is_learned_from_as_many_records_as_are_kept(layers):
    n = START + ENOUGH + 3 * 256
    X, machine = with_late_field(np.random.default_rng(2), n)
    scorer = StreamScorer(OSLRAU(), **layers)
    processed(scorer, X, machine)
    odd, own = with_late_field(np.random.default_rng(3), 40, late=0)
    z = (odd[:, 0] - 500.0 - 3.0 * own)[::2]
    # usual values, but not beside that of the first field
    odd[::2, -1] = 500.0 + 8000.0 * (3.0 * own[::2] - np.sign(z) * 2.0)
    p_value = processed(scorer, odd, own, n).p_value
    assert np.median(p_value[::2][np.abs(z) > 0.5]) < 0.01 < np.median(p_value[1::2])


def assert_may_be_cut_anywhere(new, X, machine):
    """Hold what a ``new`` scorer says, in pieces and read anew, against the whole."""
    whole = processed(new(), X, machine)
    scorer, found, start = new(), [], 0
    stops = START + np.array([-9, 100, 300, 2000, ENOUGH - 100, ENOUGH + 200, ENOUGH + 600])
    for stop in stops.tolist():
        at = slice(start, stop)
        found.append(processed(scorer, X[at], machine[at], start).p_value)
        scorer, start = StreamScorer.from_bytes(scorer.to_bytes()), stop
    np.testing.assert_array_equal(np.concatenate(found), whole.p_value)


@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
def test_a_stream_with_a_late_field_may_be_cut_and_read_anywhere(layers):
    X, machine = with_late_field(np.random.default_rng(4), START + ENOUGH + 600)
    assert_may_be_cut_anywhere(lambda: StreamScorer(OSLRAU(), **layers), X, machine)


def test_a_field_that_is_rare_changes_nothing_for_the_others():
    """Records are learned anew only for one that half of them have."""
    rng = np.random.default_rng(5)
    X = clusters(rng, START + ENOUGH + 600)
    X[:, -1] = np.nan
    rare = X.copy()
    rare[START::50, -1] = rng.normal(size=len(X[START::50]))
    scorer = StreamScorer(OSLRAU())
    scorer.process(rare)
    assert scorer.learner.n_records_ > 0.9 * len(X)


def test_rows_are_kept_only_while_a_late_field_is_waited_for():
    X, _ = with_late_field(np.random.default_rng(6), START + ENOUGH + 600)
    scorer, kept = StreamScorer(OSLRAU()), []
    for some in np.split(X, [START, START + ENOUGH // 2]):
        scorer.process(some)
        kept.append(len(unpack(scorer.to_bytes(), "StreamScorer")[1]["late_rows"]))
    assert kept[0] == kept[2] == 0 < ENOUGH // 4 < kept[1]


@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
def test_p_values_do_not_depend_on_units_where_values_are_missing(layers):
    rng = np.random.default_rng(7)
    X, machine = with_late_field(rng, 3000, late=0)
    X[rng.random(X.shape) < 0.2] = np.nan
    other = X * np.array([1e-3, 1.0, 1e6, 1e-9])
    found, same = (
        processed(StreamScorer(OSLRAU(), **layers), rows, machine).p_value for rows in (X, other)
    )
    assert np.mean(np.isclose(found, same, rtol=0.1, equal_nan=True)) > 0.98


@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_records_that_lack_a_value_are_no_more_and_no_less_unusual(layers, unit):
    rng = np.random.default_rng(8)
    X, machine = related(rng, 8000), rng.integers(20, size=8000)
    X[1::2, 1] = np.nan
    p_value = processed(StreamScorer(OSLRAU(), **layers), X * unit, machine).p_value[4000:]
    for some in (p_value[::2], p_value[1::2]):
        assert 0.3 < np.median(some) < 0.7
        assert 0.002 < np.mean(some <= 0.01) < 0.02
