"""Networks in other units, and what they know then."""

from copy import deepcopy

import numpy as np
import pytest
from interpreter import INTERPRETED
from streams import clusters

from faust_oslrau.learner import StackedSPN
from faust_oslrau.learner.queries.scaling import Scaling
from faust_oslrau.learner.stacked.members import Member, log_densities
from faust_oslrau.learner.stacked.merging import move_to

if INTERPRETED:
    pytest.skip("needs the compiler: long streams", allow_module_level=True)

D = 4
ROWS = clusters(81, 8000, D, missing=0.02)


def learned(rows, **parameters):
    return StackedSPN(**parameters).partial_fit(rows, batch_size=256)


@pytest.mark.parametrize("n", [1000, 5000])  # while records are kept, and after
@pytest.mark.parametrize(("factor", "tolerance"), [(1.0, 1e-7), (3.0, 0.05)])
def test_a_network_in_other_units_says_the_same(n, factor, tolerance):
    model = learned(ROWS[:n])
    moved, new = deepcopy(model), deepcopy(model._training.scaling)
    new.location[1] += 1000.0
    new.scale[1] *= factor
    move_to(moved._training, new)
    before, after = (each.score_samples(ROWS[6000:7000]) for each in (model, moved))
    np.testing.assert_allclose(after, before, atol=tolerance)
    mean, covariance = moved.conditional_moments(np.full(D, np.nan))
    expected = model.conditional_moments(np.full(D, np.nan))
    np.testing.assert_allclose(mean, expected[0], rtol=1e-4)
    np.testing.assert_allclose(covariance, expected[1], rtol=1e-2, atol=1e-3)


def test_squares_lost_in_rounding_when_units_move_far_can_be_restored():
    model = learned(ROWS[:5000])
    old = model._training.scaling
    for location in (old.location + 1e8, old.location):  # there and back
        move_to(model._training, Scaling.of_state({"location": location, "scale": old.scale}))
    n, first, second = model._training.network.products.moments
    assert (second >= 0.0).all()
    assert (second * n >= first**2 * (1.0 - 1e-12)).all()
    restored = StackedSPN.from_bytes(model.to_bytes())
    assert restored.score_samples(ROWS[:9]).tobytes() == model.score_samples(ROWS[:9]).tobytes()


def test_a_network_in_far_smaller_units_than_the_other_keeps_its_density():
    models = [learned(units * ROWS[:2500]) for units in (1e100, 1e-100)]
    members = [Member(0.5, model._training.network, model._training.scaling) for model in models]
    rows = 1e-100 * ROWS[2500:2600]
    found, _ = log_densities(members, rows)
    np.testing.assert_allclose(found, models[1].score_samples(rows) + np.log(0.5), rtol=1e-6)
