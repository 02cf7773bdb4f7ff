"""Units of a StackedSPN that move with the stream, and what it knows through that."""

from copy import deepcopy

import numpy as np
import pytest
from interpreter import INTERPRETED
from streams import clusters, switching

from faust_oslrau.learner import StackedSPN, StreamScorer
from faust_oslrau.learner.stacked.members import Member, log_densities
from faust_oslrau.learner.stacked.rescaling import move_units

if INTERPRETED:
    pytest.skip("needs the compiler: long streams", allow_module_level=True)

D = 4
ROWS = clusters(81, 8000, D, missing=0.02)


def learned(rows, **parameters):
    return StackedSPN(**parameters).partial_fit(rows, batch_size=256)


@pytest.mark.parametrize("n", [1000, 5000])  # while records are kept, and after
@pytest.mark.parametrize(("factor", "tolerance"), [(1.0, 1e-7), (3.0, 0.02)])
def test_a_network_in_other_units_says_the_same(n, factor, tolerance):
    model = learned(ROWS[:n], tree_nodes=0)
    moved = deepcopy(model)
    far = ROWS[5000:5256].copy()
    far[:, 1] = factor * far[:, 1] + 1000.0
    assert move_units(moved._training, far)
    before, after = (each.score_samples(ROWS[6000:7000]) for each in (model, moved))
    np.testing.assert_allclose(after, before, atol=tolerance)
    assert moved._training.scaling.location[1] == pytest.approx(np.nanmean(far[:, 1]))
    mean, covariance = moved.conditional_moments(np.full(D, np.nan))
    expected = model.conditional_moments(np.full(D, np.nan))
    np.testing.assert_allclose(mean, expected[0], rtol=1e-4)
    np.testing.assert_allclose(covariance, expected[1], rtol=1e-2, atol=1e-3)


def test_the_grown_network_learns_the_kept_records_again_within_the_same_budget():
    training = learned(ROWS[:1000], tree_nodes=120)._training
    far = ROWS[1000:1256].copy()
    far[:, 1] += 1000.0
    assert move_units(training, far)
    grown = training.network.tree.learner
    assert (grown.max_nodes, grown.n_records_) == (120, 1000)


@pytest.mark.parametrize("seed", [9, 23])
def test_units_move_while_a_challenger_takes_the_room_of_the_grown_network(seed):
    """The grown network is worth its nodes when the challenger enters, and no longer later."""
    rows, _ = switching([77, 9, seed], 24_000)
    block = StreamScorer(StackedSPN(), history=["10"]).process(rows)
    assert np.isfinite(block.log_likelihood[16:]).all()


def test_what_a_record_loses_is_bounded_in_the_new_units():
    rows = ROWS.copy()
    rows[:3000, 2] = 5.0
    rows[:, 2] *= np.where(np.arange(len(rows)) < 3000, 1.0, 100.0)
    model = learned(rows[:3300], adapt_after=None)
    odd = rows[3300:3301].copy()
    odd[0, 2] = 5e7 * model.scale_[2]
    assert (model.score_samples(rows[3300:3301]) - model.score_samples(odd))[0] < 70.0


def test_units_stay_where_values_are_near_or_few_or_the_first():
    training = learned(ROWS[:1000])._training
    some_far = ROWS[1000:1256].copy()
    some_far[:100, 1] += 1e4
    few = np.full((10, D), 1e4)
    for rows in (ROWS[1000:1256], some_far, few):
        assert not move_units(deepcopy(training), rows)
    young = learned(ROWS[:200])._training
    assert not move_units(young, np.full((100, D), 1e4))


@pytest.mark.parametrize("start", [400, 3000])
@pytest.mark.parametrize("adapt_after", [None, 8192])
def test_a_field_that_begins_to_move_is_learned_like_any_other(start, adapt_after):
    rows = ROWS.copy()
    rows[:start, 2] = 5.0
    model = learned(rows[:7000], adapt_after=adapt_after)
    reference = learned(rows[start:7000])
    found, best = (each.score_samples(rows[7000:]).mean() for each in (model, reference))
    assert found > best - 0.6


def test_learning_goes_on_from_bytes_to_the_same_bits_after_units_have_moved():
    rows = ROWS.copy()
    rows[:3000, 2] = 5.0
    model = learned(rows[:3300], adapt_after=None)
    copy = StackedSPN.from_bytes(model.to_bytes())
    for start in range(3300, 6000, 256):
        model.partial_fit(rows[start : start + 256])
        copy.partial_fit(rows[start : start + 256])
    assert copy.to_bytes() == model.to_bytes()


def test_squares_lost_in_rounding_when_units_move_far_can_be_restored():
    model = learned(ROWS[:5000], tree_nodes=0)
    for offset in (1e8, 0.0):  # there and back
        assert move_units(model._training, ROWS[5000:5256] + offset)
    n, first, second = model._training.network.products.moments
    assert (second >= 0.0).all()
    assert (second * n >= first**2 * (1.0 - 1e-12)).all()
    restored = StackedSPN.from_bytes(model.to_bytes())
    assert restored.score_samples(ROWS[:9]).tobytes() == model.score_samples(ROWS[:9]).tobytes()


def test_a_network_in_far_smaller_units_than_the_other_keeps_its_density():
    models = [learned(units * ROWS[:2500], tree_nodes=0) for units in (1e100, 1e-100)]
    members = [Member(0.5, model._training.network, model._training.scaling) for model in models]
    rows = 1e-100 * ROWS[2500:2600]
    found, _ = log_densities(members, rows)
    np.testing.assert_allclose(found, models[1].score_samples(rows) + np.log(0.5), rtol=1e-6)
