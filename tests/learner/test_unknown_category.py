"""Records that lack a category on which their numbers depend: an exact sum in all layers."""

import numpy as np
import pytest
from interpreter import needs_compiler
from scipy.integrate import trapezoid
from test_late_fields import LAYERS

from faust_oslrau.learner import OSLRAU, StreamScorer

N, MINUTES = 3000, 420_000
LEVELS, SPREADS = np.array([-20.0, 0.0, 30.0]), np.array([1.0, 1.5, 2.0])


def stream(rng):
    """Rows of two numbers and two categories, on which the first number depends, and entities."""
    machine, service, cached = (rng.integers(k, size=N) for k in (12, 3, 2))
    number = LEVELS[service] + SPREADS[service] * rng.normal(size=N) + 8.0 * cached + 2.0 * machine
    rows = np.column_stack([number, 0.1 * number + rng.normal(size=N), service, cached])
    rows[rng.random(N) < 0.1, 2] = np.nan
    return rows, machine


@needs_compiler("thousands of records")
@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("cached", [1.0, np.nan])
def test_densities_without_a_category_integrate_to_one(layers, cached):
    rows, machine = stream(np.random.default_rng(1))
    scorer = StreamScorer(OSLRAU(), n_categories=2, **layers)
    places = np.column_stack([np.arange(N), MINUTES * np.arange(N)])
    keys = machine if "max_entities" in layers else None
    scorer.process(rows, keys, places)
    state, at = scorer.to_bytes(), np.linspace(-60.0, 90.0, 601)
    following = np.array([[N, MINUTES * N]])

    def log_likelihood(number):
        row = np.array([[number, np.nan, np.nan, cached]])
        key = None if keys is None else keys[-1:]
        found = StreamScorer.from_bytes(state).process(row, key, following)
        return found.log_likelihood[0]

    density = np.exp([log_likelihood(number) for number in at])
    total = trapezoid(density, at) / np.exp(log_likelihood(np.nan))
    assert total == pytest.approx(1.0, abs=2e-3)
