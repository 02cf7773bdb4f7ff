"""p-values: right rates, ranks among scores, a tail below all of them."""

import numpy as np
import pytest
from scipy.stats import genpareto

from faust_oslrau.learner.scoring.calibration import FEWEST, TAIL_SHARE, Calibration, fit_tail


def calibrated(scores):
    return Calibration(np.sort(scores))


@pytest.mark.parametrize("n", [1, 7, 500, 3000])
def test_the_score_at_a_p_value_has_it(n):
    calibration = calibrated(np.random.default_rng(n).standard_t(3, n))
    p_value = np.array([1e-9, 1e-5, 0.5, 1.0, 2.5, 0.3 * n, n]) / (n + 1.0)
    if calibration.tail is None:  # then the lowest score is the lowest of all
        p_value = p_value[p_value * (n + 1.0) >= 1.0]
    found = calibration.p_value(calibration.score_at(p_value))
    expected = np.where(p_value * (n + 1.0) > n, 1.0, p_value)  # that of none
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.isinf(calibrated(np.empty(0)).score_at(p_value)).all()


def test_the_lower_bound_of_a_share_has_it_as_its_p_value():
    calibration = calibrated(np.random.default_rng(10).normal(size=8000))
    assert calibration.lower_bound(TAIL_SHARE) == calibration.tail.threshold
    bounds = np.array([calibration.lower_bound(share) for share in (1e-4, 1e-5, 1e-7)])
    assert (np.diff(bounds) < 0).all()
    p_values = calibration.p_value(bounds)
    np.testing.assert_allclose(p_values[1:] / p_values[:-1], [0.1, 0.01], rtol=1e-6)
    assert calibrated(np.zeros(FEWEST - 1)).lower_bound(0.01) == -np.inf


@pytest.mark.parametrize("n", [1, 16, 150, 5000])
def test_p_values_keep_the_order_of_the_scores_wherever_they_lie_and_never_are_zero(n):
    scores = np.random.default_rng(7).normal(size=n)
    grid = np.linspace(-30.0, scores.max(), 1000)
    p_values = calibrated(scores).p_value(grid)
    assert (np.diff(p_values) >= 0).all() and p_values[0] > 0
    if n > 1:  # one score has no spread
        assert len(np.unique(p_values)) == len(grid)


@pytest.mark.parametrize("n", [16, 100, 190])
def test_few_scores_do_not_make_a_record_rarer_than_half_of_one_of_them(n):
    scores = np.random.default_rng(8).normal(size=n)
    assert calibrated(scores).p_value(np.array([-1e300]))[0] >= 0.5 / (n + 1)


def test_the_tail_finds_the_shape_it_was_drawn_from():
    excess = genpareto(0.25, scale=2.0).rvs(20_000, random_state=5)
    scores = np.sort(np.concatenate([-10.0 - excess, np.full(180_000, -10.0)]))
    tail = fit_tail(scores)
    assert tail.shape == pytest.approx(0.25, abs=0.05)
    assert tail.scale == pytest.approx(2.0, rel=0.1)
    assert np.exp(tail.log_survival(np.array([-14.0]))[0]) == pytest.approx(
        genpareto(0.25, scale=2.0).sf(4.0), rel=0.05
    )


def test_few_or_equal_scores_have_no_tail():
    assert fit_tail(np.sort(np.random.default_rng(6).normal(size=100))) is None
    assert fit_tail(np.zeros(5000)) is None
    p_values = calibrated(np.zeros(5000)).p_value(np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(p_values, [1 / 5001, 5000 / 5001, 1.0])
