"""What is expected: of the fields of records, and of the next one, given the past."""

import numpy as np
import pytest
from interpreter import needs_compiler
from streams import autoregression, share_within
from subjects import WITH_MIXTURES

from faust_oslrau.learner import OSLRAU, StreamScorer

RNG = np.random.default_rng(5)
N = 2600
HOURS = np.arange(N) / 6.0
ROWS = autoregression(0.3 * RNG.normal(size=(N, 2)), 0.9)
ROWS += 3.0 * np.sin(2 * np.pi * HOURS / 24.0)[:, None]
ROWS[RNG.random(ROWS.shape) < 0.02] = np.nan
PLACES = np.column_stack([np.arange(N), 1_700_000_000_000 + 600_000 * np.arange(N)])
KEYS = [b"machine-%d" % number for number in RNG.integers(12, size=N)]
LAYERS = {
    "plain": {},
    "entities": {"history": ("10",), "max_entities": 10},
    "habits": {"max_entities": 10},
    "all": {"history": ("10", "3600s"), "max_entities": 10, "seasons": "UTC"},
}


def scorer_of(layers, learner=OSLRAU):
    return StreamScorer(learner(), transforms={1: "asinh"}, forecasting=True, **LAYERS[layers])


def process(scorer, at):
    keys = KEYS[at] if scorer.parameters["max_entities"] else None
    return scorer.process(ROWS[at], keys, PLACES[at])


def learned(layers, n=N - 1, learner=OSLRAU):
    scorer = scorer_of(layers, learner)
    process(scorer, slice(0, n))
    return scorer


@needs_compiler("a long stream")
@pytest.mark.parametrize(
    ("layers", "learner", "key"),
    [
        ("plain", OSLRAU, None), ("habits", OSLRAU, KEYS[-1]), ("all", OSLRAU, KEYS[-1]),
        ("all", OSLRAU, b"new"), ("all", WITH_MIXTURES, KEYS[-1]),
    ],
)  # fmt: skip
def test_the_band_has_98_percent_of_the_density_that_log_likelihoods_tell(layers, learner, key):
    """In the fields' own units; a record that lacks the other field has the density of one."""
    scorer = learned(layers, learner=learner)
    keys, place = [key] if scorer.parameters["max_entities"] else None, PLACES[-1:]
    state, band = scorer.to_bytes(), scorer.forecast(keys, place[:, 1])
    for v in range(2):
        found = share_within(band.low[0, v], band.high[0, v], v, 2, state, keys, place)
        assert found == pytest.approx(0.98, abs=2e-3)


def test_nothing_is_expected_before_there_is_a_model():
    scorer = scorer_of("entities")
    assert scorer.forecast([b"machine-1"]).expected.shape == (1, 0)
    band = process(scorer, slice(0, 20)).forecast
    assert np.isnan(band.low[:16]).all()
    assert np.isfinite(band.low[16:]).all()


def test_an_unknown_entity_is_expected_to_be_like_the_others():
    scorer = learned("entities", n=300)
    band = scorer.forecast([b"machine-1", "stranger", None])
    assert band.low.shape == (3, 2)
    assert (band.low < band.expected).all() and (band.expected < band.high).all()
    assert band.low[1].tolist() == band.low[2].tolist()


def _rows(n, seed=0):
    """Rows of three fields; the second follows the first with a deviation of 0.1."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    return np.column_stack([a, a + 0.1 * rng.normal(size=n), 5 + 2 * rng.normal(size=n)])


@pytest.fixture(scope="module")
def state():
    scorer = StreamScorer(OSLRAU())
    scorer.process(_rows(3000))
    return scorer.to_bytes()


def test_the_range_holds_the_values_of_usual_records_and_is_as_narrow_as_they_are(state):
    X = _rows(500, seed=1)
    scorer = StreamScorer.from_bytes(state)
    low, high = scorer.expected_range(X, 2.0)
    scorer.expected_range([[50.0, np.nan, -5.0]], 2.0)
    assert scorer.to_bytes() == state  # asking changes nothing
    inside = ((low <= X) & (high >= X)).mean(axis=0)
    assert (inside > 0.9).all() and (inside < 0.995).all()
    assert np.median((high - low)[:, 1]) == pytest.approx(0.4, rel=0.25)


def test_a_wrong_value_does_not_move_what_is_expected_of_other_fields(state):
    X = np.array([[0.5, 0.5, 5.0], [0.5, 30.0, 5.0]])
    low, high = StreamScorer.from_bytes(state).expected_range(X, 2.0)
    middle = (low + high) / 2
    assert middle[0, 1] == pytest.approx(0.5, abs=0.2)
    assert middle[1, 1] == pytest.approx(0.5, abs=0.2)  # by the first field
    # The first field is expected to be usual, not to follow the wrong second one.
    assert abs(middle[1, 0]) < 1.0


def test_the_range_of_a_transformed_field_is_in_its_own_units():
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(3000, 2)))
    scorer = StreamScorer(OSLRAU(), transforms={0: "log"})
    scorer.process(X)
    low, high = scorer.expected_range(X[:200], 2.0)
    assert (low[:, 0] > 0).all()
    inside = ((low <= X[:200]) & (high >= X[:200]))[:, 0].mean()
    assert inside > 0.9
