"""Where leaves begin: frequent values and quantiles, and how many of them."""

import numpy as np
import pytest
from interpreter import INTERPRETED

from faust_oslrau.learner import StackedSPN
from faust_oslrau.learner.stacked import sizes
from faust_oslrau.learner.stacked.leaves import WIDE, Leaves

if INTERPRETED:
    pytest.skip("needs the compiler: long streams", allow_module_level=True)


def smooth(n, d):
    """Positive numbers with long tails that depend on three factors; none comes twice."""
    rng = np.random.default_rng(3)
    loadings = rng.normal(size=(3, d))
    return np.exp(0.7 * (rng.normal(size=(n, 3)) @ loadings + 0.5 * rng.normal(size=(n, d))))


def test_frequent_values_have_leaves_of_their_own_besides():
    rng = np.random.default_rng(5)
    column = np.where(rng.random(2000) < 0.5, rng.integers(0, 8, 2000), rng.normal(size=2000))
    leaves = Leaves.of_sample(column[:, None], 58, 58, 24)
    own = leaves.mean[len(WIDE) :]
    assert len(own) == 8 + 24
    assert set(range(8)) <= set(own.tolist())


def test_few_leaves_describe_smooth_values_better(monkeypatch):
    rows = smooth(4000, 16)

    def score():
        model = StackedSPN().partial_fit(rows[:3000], batch_size=256)
        return model.score_samples(rows[3000:]).mean()

    few = score()
    monkeypatch.setattr(sizes, "FEWEST_QUANTILES", 90)
    assert few > score() + 0.2
