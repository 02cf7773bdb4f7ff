"""How much of the stream lies further out than a record."""

import numpy as np
import pytest
from scipy.stats import chi2
from streams import clusters

from faust_oslrau.learner.scoring.tail_mass import BACKGROUND, REFIT, TailMass
from faust_oslrau.learner.scoring.tails import log_survival

D = 5
PAST = clusters(91, 1000, D, missing=0.1)
ROWS = clusters(92, 100, D, missing=0.1)


def fitted(rows):
    result = TailMass()
    result.update(rows, len(rows))
    return result


def gaussians(found):
    """Weight, mean and covariance of each Gaussian that counts, in the fit's units."""
    mixture = found.mixture
    factor = np.linalg.inv(mixture.gaussians.whitening)
    covariance = factor @ factor.transpose(0, 2, 1)
    share = mixture.count / mixture.count.sum()
    mean = mixture.gaussians.mean
    centre = share @ mean
    off = mean - centre
    yield BACKGROUND, centre, np.einsum("k,kab->ab", share, covariance) + (share * off.T) @ off
    for each in zip(mixture.weight, mean, covariance, strict=True):
        if each[0] >= 0.05:
            yield each


def naive_log_mass(found, row):
    seen = ~np.isnan(row)
    total = 0.0
    for weight, mean, covariance in gaussians(found):
        dx = ((row - found.location) * found.scale - mean)[seen]
        part = covariance[np.ix_(seen, seen)]
        total += weight * chi2.sf(dx @ np.linalg.solve(part, dx), len(dx))
    return np.log(total)


def test_the_mass_is_that_of_gaussians_further_out_by_the_observed_fields():
    found = fitted(PAST)
    for row, log_mass in zip(ROWS, found.log_mass(ROWS), strict=True):
        if not np.isnan(row).all():
            expected = min(naive_log_mass(found, row), 0.0)
            assert log_mass == pytest.approx(expected, abs=0.1, rel=0.05)


@pytest.mark.parametrize("fields", [1.0, 3.0, 16.0, 100.0])
def test_the_survival_of_a_chi_square_falls_with_it_and_is_right(fields):
    q = np.linspace(0.0, 6.0 * fields + 60.0, 2000)
    found = np.array([log_survival(each, fields) for each in q])
    assert (np.diff(found) <= 1e-12).all()
    expected = chi2.logsf(q, fields)
    near = expected > -7.0
    np.testing.assert_allclose(found[near], expected[near], atol=0.25)


def test_a_field_that_begins_to_vary_late_counts_from_the_next_fit_on():
    rows = np.column_stack([PAST[:, 0], np.full(len(PAST), 7.0)])
    found = fitted(np.nan_to_num(rows))
    odd = np.array([[0.0, 9.0]])
    assert found.log_mass(odd) == found.log_mass(np.array([[0.0, 7.0]]))
    rows[::2, 1] = 8.0
    found.update(np.nan_to_num(rows), 1000 + REFIT)
    assert found.log_mass(odd) < found.log_mass(np.array([[0.0, 7.0]]))


@pytest.mark.parametrize("wild", [1e300, -1e300, 1.7e308, 5e-324])
def test_wild_values_give_finite_masses_and_do_not_blind(wild):
    past = PAST[:300].copy()
    past[[250, 260], 1] = wild
    found = fitted(past)
    log_mass = found.log_mass(np.vstack([np.full((1, D), wild), past]))
    assert np.isfinite(log_mass).all() and (log_mass <= 0).all()
    far = np.nanmean(PAST[:300], axis=0) + 20.0 * np.nanstd(PAST[:300], axis=0)
    assert found.log_mass(far[None])[0] < np.log(0.01)


def test_without_records_and_of_too_many_fields_nothing_is_unusual():
    assert TailMass().log_mass(ROWS).tolist() == [0.0] * len(ROWS)
    wide = np.random.default_rng(95).normal(size=(50, 129))
    assert fitted(wide).log_mass(wide).tolist() == [0.0] * 50
