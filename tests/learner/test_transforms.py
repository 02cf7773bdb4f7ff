"""Transformed fields: exact densities in their own units, and values that can be read."""

import numpy as np
import pytest
from scipy.stats import poisson
from streams import blame_of

from faust_oslrau.learner import OSLRAU, InvalidInputError, StreamScorer
from faust_oslrau.learner.scoring.transforms import Transforms

FUNCTIONS = {"log": np.log, "log1p": np.log1p, "asinh": np.arcsinh}
RNG = np.random.default_rng(61)
LOAD = RNG.normal(size=12_000)
X = np.column_stack([np.exp(3 + 0.8 * LOAD + 0.2 * RNG.normal(size=12_000)), LOAD])


def run(rows=X, **parameters):
    scorer = StreamScorer(OSLRAU(), **parameters)
    return scorer, scorer.process(rows)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_go_there_and_back(name):
    values = np.column_stack([np.geomspace(1e-6, 1e9, 50), np.full(50, np.nan)])
    transforms = Transforms({0: name})
    Y = transforms.apply(values)
    np.testing.assert_allclose(Y[:, 0], FUNCTIONS[name](values[:, 0]), rtol=1e-14)
    np.testing.assert_allclose(transforms.undo(Y), values, rtol=1e-12)
    step = values[:, 0] * 1e-6
    above, below = (FUNCTIONS[name](values[:, 0] + d) for d in (step, -step))
    slope = (above - below) / (2 * step)
    np.testing.assert_allclose(np.exp(transforms.log_slope(Y)[:, 0]), slope, rtol=1e-4)


def test_counts_go_there_and_back_wherever_they_are_spread_to():
    values = np.column_stack([np.append(np.arange(300.0), [1e6, 1e9, np.nan])] * 2)
    transforms = Transforms({0: "count"})
    Y = transforms.apply(values)
    np.testing.assert_allclose(Y[:, 0], 2.0 * np.sqrt(values[:, 0] + 0.5))
    for first in (0, 10**9):
        spread = transforms.spread(Y, first)
        np.testing.assert_array_equal(transforms.undo(spread), values)
        assert (spread[:-3, 0] != Y[:-3, 0]).all()
        np.testing.assert_array_equal(spread[:, 1], values[:, 1])
    apart = np.concatenate([transforms.spread(Y[i : i + 7], i) for i in range(0, len(Y), 7)])
    np.testing.assert_array_equal(apart, transforms.spread(Y, 0))
    assert transforms.undo(np.array([[-3.0, 0.0]]))[0, 0] == 0.0


@pytest.mark.parametrize("mean", [0.05, 1.0, 30.0])
def test_the_likelihood_of_counts_is_a_probability(mean):
    rows = np.random.default_rng(3).poisson(mean, (20_000, 1)).astype(float)
    scorer, block = run(rows, transforms={0: "count"})
    late = slice(12_000, None)
    expected = poisson.logpmf(rows[late, 0], mean)
    assert block.log_likelihood[late].mean() == pytest.approx(expected.mean(), abs=0.06)
    for alarm_rate in (0.01, 0.1):
        assert np.mean(block.p_value[late] <= alarm_rate) <= 1.5 * alarm_rate
    scorer.learning = False
    most = int(mean + 12 * np.sqrt(mean) + 12)
    counts = np.tile(np.arange(most + 1.0), 400)[:, None]  # each is spread to many places
    density = np.exp(scorer.process(counts).log_likelihood)
    total = density.reshape(400, -1).mean(axis=0).sum()
    assert 0.95 < total < 1.01  # some of the density lies below the root of 0


def test_the_blame_of_a_count_is_in_whole_numbers():
    rows = np.random.default_rng(4).poisson([3.0, 40.0], (6000, 2)).astype(float)
    rows[5500, 0] = 30.0
    _, block = run(rows, transforms={0: "count", 1: "count"})
    fields, blame = blame_of(block, 5500)
    assert list(fields) == [0] and blame.value[0] == 30.0 and blame.expected[0] in (2.0, 3.0)


def test_the_blame_is_in_the_fields_own_units():
    rows = X.copy()
    rows[11_000] = [2000.0, 0.0]
    _, block = run(rows, transforms={0: "log"})
    _, blame = blame_of(block, 11_000)
    assert blame.value.tolist() == [2000.0, 0.0]
    assert blame.expected[0] == pytest.approx(np.exp(3), rel=0.3)
    assert 0 < blame.deviation[0] < 40
    assert blame.nats[0] > blame.usual[0] + 5


def test_values_beyond_the_range_are_refused_before_anything_is_scored():
    scorer, _ = run(X[:300], transforms={0: "log"})
    before = scorer.to_bytes()
    with pytest.raises(InvalidInputError, match="above 0 in column 0, transformed by log, got -1"):
        scorer.process([[1.0, 0.0], [-1.0, 0.0]])
    assert scorer.to_bytes() == before
