"""Predictive mixtures: their quantiles, and the Gaussians of missing variables given the others."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, t

from faust_oslrau.learner.density.components import append, conditional_quantiles, new_components
from faust_oslrau.learner.density.gaussians import Gaussians
from faust_oslrau.learner.entities.student import NODES, fill_nodes

LEVELS = np.array([0.01, 0.3, 0.99])


def mixture(seed, k):
    """Draw a mixture of very different components: some are narrow, some are far apart."""
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.full(k, 0.5)) + 1e-5
    return np.column_stack([weight, 5.0 * rng.normal(size=k), np.exp(2.0 * rng.normal(size=k))])


def quantiles_of(mixtures):
    """Return means (m,) and quantiles (q, m) of one variable, by the kernels."""
    components = new_components(1, len(mixtures), max(map(len, mixtures)))
    for r, parts in enumerate(mixtures):
        for part in parts.tolist():
            append(0, r, *part, components)
    some = [type(components)(*(part[[r]] for part in components)) for r in range(len(mixtures))]
    found = [
        conditional_quantiles(np.full((1, 1), np.nan), LEVELS, lambda at, c=c: c) for c in some
    ]
    mean, quantiles = conditional_quantiles(
        np.full((len(mixtures), 1), np.nan), LEVELS, lambda at: components
    )
    assert np.concatenate([alone for alone, _ in found]).tobytes() == mean.tobytes()
    joined = np.concatenate([alone for _, alone in found], axis=1)
    assert joined.tobytes() == quantiles.tobytes()
    return mean[:, 0], quantiles[:, :, 0]


def test_quantiles_of_mixtures_are_those_of_bisection():
    mixtures = [mixture(seed, k) for seed, k in enumerate([1, 2, 5, 15, 16, 17, 60] * 5)]
    mean, quantiles = quantiles_of(mixtures)
    for r, (weight, centre, deviation) in enumerate(part.T for part in mixtures):
        share = weight / weight.sum()
        assert mean[r] == pytest.approx(share @ centre, rel=1e-9)
        for level, found in zip(LEVELS, quantiles[:, r], strict=True):

            def off(x, level=level, share=share, centre=centre, deviation=deviation):
                return share @ norm.cdf((x - centre) / deviation) - level

            ends = centre + norm.ppf(level) * deviation
            expected = brentq(off, ends.min() - 1.0, ends.max() + 1.0, xtol=1e-14)
            assert off(found) == pytest.approx(0.0, abs=1e-8 * min(level, 1.0 - level))
            assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("freedom", [5.0, 6.3, 12.0, 100.0, 1e5])
def test_gaussians_of_gamma_distributed_precisions_make_a_students_t(freedom):
    nodes = np.empty((2, NODES))
    fill_nodes(freedom, nodes)
    for level in (0.01, 0.3, 0.99):
        x = t.ppf(level, freedom)
        error = nodes[0] @ norm.cdf(x / nodes[1]) - level
        assert error / t.pdf(x, freedom) == pytest.approx(0.0, abs=3e-5)


@pytest.mark.parametrize("missing", [[0, 1], [1, 3], [0, 1, 2, 3]])
def test_gaussians_given_some_variables_are_the_textbook_ones(missing):
    rng = np.random.default_rng(0)
    mixing = np.eye(4) + 0.5 * rng.normal(size=(3, 4, 4))
    covariance = mixing @ mixing.transpose(0, 2, 1)
    lacks = np.isin(np.arange(4), missing)
    given = Gaussians(np.zeros((3, 4)), covariance).given(lacks)
    for k, whole in enumerate(covariance):
        known, cross = whole[np.ix_(~lacks, ~lacks)], whole[np.ix_(lacks, ~lacks)]
        gain = np.linalg.solve(known, cross.T).T
        np.testing.assert_allclose(given.gain[k], gain, atol=1e-9)
        rest = whole[np.ix_(lacks, lacks)] - gain @ cross.T
        np.testing.assert_allclose(given.deviation[k], np.sqrt(np.diag(rest)), rtol=1e-9)
