"""Habits of entities: kinds of records and a covariance of each entity, beside the network."""

import numpy as np
import pytest
from naive_habits import Common, NaiveHabits
from scipy.stats import norm, t
from test_entities import machines

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.density.components import append, new_components
from faust_oslrau.learner.density.gaussian_mixture import GaussianMixture
from faust_oslrau.learner.density.gaussians import Gaussians
from faust_oslrau.learner.entities import habit_kernels
from faust_oslrau.learner.entities.habits import Habits, Mixed
from faust_oslrau.learner.entities.student import NODES, fill_nodes
from faust_oslrau.learner.scoring.tails import log_mass
from faust_oslrau.learner.state import unpack

D, KINDS = 3, 2


def shared(seed):
    """Two kinds, and weights of the densities."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(D) + 0.6 * rng.normal(size=(KINDS, D, D))
    covariance, mean = mixing @ mixing.transpose(0, 2, 1), 0.5 * rng.normal(size=(KINDS, D))
    at = np.tril_indices(D)
    lower = np.ascontiguousarray(covariance[:, at[0], at[1]])
    weight, moment = np.array([0.3, 0.7]), lower + mean[:, at[0]] * mean[:, at[1]]
    common = rng.dirichlet(np.ones(habit_kernels.DENSITIES))
    return Common(weight, moment, common, mean, lower)


def rows_of(seed, m, missing=0.2):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(m, D)) @ (np.eye(D) + 0.5 * rng.normal(size=(D, D)))
    rows[:, :2][rng.random((m, 2)) < missing] = np.nan
    rows[-1] *= 30
    return rows


class Standard:
    """A network of one Gaussian N(0, 4) for each field."""

    def score_samples(self, X):
        return np.nansum(-0.5 * (X / 2) ** 2 - np.log(2) - 0.5 * np.log(2 * np.pi), axis=1)

    def given_others(self, X):
        nats = 0.5 * (X / 2) ** 2 + np.log(2) + 0.5 * np.log(2 * np.pi)
        return nats, np.zeros(X.shape), np.full(X.shape, 2.0)

    def predictive(self, X, more=0):
        found = new_components(D, len(X), 1 + more)
        for r, v in np.argwhere(np.isnan(X)).tolist():
            append(v, r, 1.0, 0.0, 2.0, found)
        return found


def mixed(rows, common):
    """Mix rows of a new entity; return the log-densities and what was predicted."""
    of_rows = Habits()
    of_rows._kinds.mixture = mixture_of(common.weight, common.mean, common.covariance)
    of_rows._shared = habit_kernels.Shared(*common[:3])
    m = len(rows)
    network = Mixed(Standard().score_samples(rows), np.zeros(m))
    fresh = np.arange(m) == 0
    found = of_rows.mix(rows, np.zeros(m, np.int64), fresh, network, 1)
    return found, of_rows


def mixture_of(weight, mean, lower):
    mixture = GaussianMixture(len(weight), D)
    covariance = np.zeros((len(weight), D, D))
    i, j = np.tril_indices(D)
    covariance[:, i, j] = lower
    mixture.weight, mixture.gaussians = weight, Gaussians(mean, covariance)
    return mixture


def test_the_mixed_density_is_that_of_the_oracle_and_the_mass_further_out_about_its_own():
    common, rows = shared(1), rows_of(2, 60)
    rows[20] = [np.nan, 0.5, np.nan]
    found, naive, network = mixed(rows, common)[0], NaiveHabits(common), Standard()
    of_rows = zip(rows, found.log_density, found.log_mass, network.score_samples(rows), strict=True)
    for row, log_density, mass, of_network in of_rows:
        assert log_density == pytest.approx(naive.log_density(row, of_network), rel=1e-4, abs=1e-4)
        expected = naive.log_mass(row)
        if expected > -20.0:  # beyond, the order counts, and the approximations differ
            assert mass == pytest.approx(expected, rel=0.1, abs=0.2)
        else:
            assert mass < -15.0
        naive.learn(row, of_network)
    rows = np.full((1, D), np.nan)
    assert log_mass(np.zeros((1, 1)), np.ones(1), rows) == pytest.approx(0.0, abs=0.1)


def test_fields_are_compared_by_the_density_that_was_mixed():
    common, rows = shared(3), rows_of(4, 40)
    found, of_rows = mixed(rows, common)
    which = (np.arange(40) >= 30) | (np.arange(40) == 0)
    density = of_rows.conditionals(Standard(), which)
    some = rows[which]
    np.testing.assert_allclose(density.score_samples(some), found.log_density[which], rtol=1e-6)
    nats, mean, deviation = density.given_others(some)
    grid = np.linspace(-400, 400, 80_001)
    for r in range(len(some)):
        alone = density.of(np.full(len(grid), r))
        for v in range(D):
            if np.isnan(np.delete(some[r], v)).all():
                continue
            without, on_grid = some[r].copy(), np.tile(some[r], (len(grid), 1))
            without[v], on_grid[:, v] = np.nan, grid
            rest = density.of(np.array([r])).score_samples(without[None])[0]
            p = np.exp(alone.score_samples(on_grid) - rest)
            assert np.trapezoid(p, grid) == pytest.approx(1.0, abs=1e-3)
            assert mean[r, v] == pytest.approx(np.trapezoid(p * grid, grid), abs=0.01)
            variance = np.trapezoid(p * (grid - mean[r, v]) ** 2, grid)
            assert deviation[r, v] == pytest.approx(np.sqrt(variance), rel=0.02)
            if not np.isnan(some[r, v]):
                joint = density.of(np.array([r])).score_samples(some[r : r + 1])[0]
                assert nats[r, v] == pytest.approx(rest - joint, rel=1e-6, abs=1e-6)


def test_what_is_expected_given_other_fields_or_none_follows_from_the_density_that_was_mixed():
    common, rows = shared(3), rows_of(4, 40)
    _, of_rows = mixed(rows, common)
    which = np.isin(np.arange(40), [0, 7, 30, 39])  # with a far one
    density, some = of_rows.conditionals(Standard(), which), rows[which]
    some[:, 0], some[1], levels = np.nan, np.nan, [0.01, 0.5, 0.99]
    mean, quantiles = density.conditional_quantiles(some, levels)
    grid = np.linspace(-400, 400, 80_001)
    for r, row in enumerate(some):
        on_grid = np.tile(row, (len(grid), 1))
        on_grid[:, 0] = grid
        rest = density.of(np.array([r])).score_samples(row[None])[0]
        p = np.exp(density.of(np.full(len(grid), r)).score_samples(on_grid) - rest)
        below = np.cumsum(p) * (grid[1] - grid[0])
        assert mean[r, 0] == pytest.approx(np.trapezoid(p * grid, grid), abs=0.01)
        found = np.interp(quantiles[:, r, 0], grid + 0.005, below)
        assert found == pytest.approx(levels, abs=2e-4)
        alone = density.of(np.array([r])).conditional_quantiles(row[None], levels)
        assert alone[0].tobytes() == mean[r].tobytes()
        assert alone[1][:, 0].tobytes() == np.ascontiguousarray(quantiles[:, r]).tobytes()


@pytest.mark.parametrize("freedom", [5.0, 6.3, 12.0, 100.0, 1e5])
def test_gaussians_of_gamma_distributed_precisions_make_a_students_t(freedom):
    nodes = np.empty((2, NODES))
    fill_nodes(freedom, nodes)
    for level in (0.01, 0.3, 0.99):
        x = t.ppf(level, freedom)
        error = nodes[0] @ norm.cdf(x / nodes[1]) - level
        assert error / t.pdf(x, freedom) == pytest.approx(0.0, abs=3e-5)


def test_more_fields_than_a_covariance_takes_leave_the_network_alone():
    keys, rows, _, _ = machines(1, 400, 10, 33)
    scorer = StreamScorer(OSLRAU(), max_entities=10)
    assert np.isfinite(scorer.process(rows, keys).log_likelihood[16:]).all()
    _, arrays = unpack(scorer.to_bytes(), "StreamScorer")
    assert arrays["habit_products"].size == 0


def test_records_without_any_value_are_as_likely_as_can_be():
    keys, rows, _, _ = machines(1, 600, 10, 3)
    rows[550] = np.nan
    block = StreamScorer(OSLRAU(), max_entities=10).process(rows, keys)
    assert block.log_likelihood[550] == pytest.approx(0.0, abs=1e-6)
