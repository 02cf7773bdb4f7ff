"""The range in which the model expects the fields of records, for plots."""

import numpy as np
import pytest

from faust_oslrau.learner import OSLRAU, StreamScorer


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
