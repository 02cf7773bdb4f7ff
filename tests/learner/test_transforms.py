"""Transformed fields: exact densities in their own units, and values that can be read."""

import numpy as np
import pytest
from streams import blame_of

from faust_oslrau.learner import OSLRAU, InvalidInputError, InvalidParameterError, StreamScorer
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
    slope = (FUNCTIONS[name](values[:, 0] + step) - FUNCTIONS[name](values[:, 0] - step)) / (
        2 * step
    )
    np.testing.assert_allclose(np.exp(transforms.log_slope(Y)[:, 0]), slope, rtol=1e-4)


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


def test_an_unknown_transform_is_named():
    with pytest.raises(InvalidParameterError, match=r"'sqrt'.*expected one of log, log1p, asinh"):
        StreamScorer(OSLRAU(), transforms={0: "sqrt"})
