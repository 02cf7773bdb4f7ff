"""Conditional queries, contributions and samples against brute force."""

import itertools

import numpy as np
import pytest
from interpreter import needs_compiler
from scipy.stats import multivariate_normal
from streams import clusters

from faust_oslrau.learner import OSLRAU

UNITS = np.array([1.0, 100.0, 0.01])
X = clusters(31, 3000, 3) * UNITS


def grown(max_leaf_vars, **parameters):
    model = OSLRAU(min_count=20, max_leaf_vars=max_leaf_vars, **parameters)
    model.partial_fit(X, batch_size=50)
    assert model.n_nodes_ > 20
    assert (model.structure_changes_["multivariate_leaf"] > 0) == (max_leaf_vars == 2)
    return model


@pytest.fixture(scope="module", params=[0, 2], ids=["univariate", "multivariate"])
def tree(request):
    return grown(request.param)


@pytest.fixture(scope="module", params=[0, 2, "mixtures"])
def model(request):
    return grown(2, mixtures=True) if request.param == "mixtures" else grown(request.param)


def axis_of(v, n=8001):
    return np.linspace(X[:, v].min() - 5 * X[:, v].std(), X[:, v].max() + 5 * X[:, v].std(), n)


def slice_density(model, row, v):
    """Density of field v on a grid, given the observed fields of the row."""
    axis = axis_of(v)
    rows = np.tile(row, (len(axis), 1))
    rows[:, v] = axis
    density = np.exp(model.score_samples(rows) - model.score_samples(row[None]))
    return axis, density * (axis[1] - axis[0])


@pytest.mark.parametrize("size", [1e3, 1e9, 1e30])
def test_an_impossible_field_is_expected_where_the_others_say(model, size):
    row = X[:1].copy()
    without = row.copy()
    row[0, 0] += size
    without[0, 0] = np.nan
    for far, unknown in zip(model.expected(row), model.expected(without), strict=True):
        assert far[0, 0] == pytest.approx(unknown[0, 0], rel=1e-9)
    assert model.contributions(row)[0, 0] == pytest.approx(
        (model.score_samples(without) - model.score_samples(row))[0], rel=1e-12
    )


@needs_compiler("grids of 72,000 points")
def test_expected_values_are_the_moments_of_the_conditional_density(tree):
    rows = X[:3].copy()
    rows[2, 2] = np.nan
    mean, deviation = tree.expected(rows)
    for r, row in enumerate(rows):
        for v in range(3):
            rest = row.copy()
            rest[v] = np.nan
            axis, density = slice_density(tree, rest, v)
            assert density.sum() == pytest.approx(1, abs=1e-3)
            centre = (axis * density).sum()
            spread = np.sqrt(((axis - centre) ** 2 * density).sum())
            assert mean[r, v] == pytest.approx(centre, abs=2e-3 * UNITS[v])
            assert deviation[r, v] == pytest.approx(spread, rel=5e-3)


@needs_compiler("a grid of 810,000 points")
def test_conditional_moments_equal_those_of_a_fine_grid(tree):
    row = np.array([np.nan, np.nan, X[0, 2]])
    axes = [np.linspace(axis_of(v)[0], axis_of(v)[-1], 900) for v in (0, 1)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    rows = np.column_stack([grid, np.full(len(grid), row[2])])
    weight = np.exp(tree.score_samples(rows) - tree.score_samples(row[None]))
    weight /= weight.sum()
    centre = weight @ grid
    spread = (grid - centre).T @ ((grid - centre) * weight[:, None])
    mean, covariance = tree.conditional_moments(row)
    np.testing.assert_allclose(mean[:2], centre, rtol=0.01, atol=0.01)
    np.testing.assert_allclose(covariance[:2, :2], spread, rtol=0.02, atol=0.02)
    assert mean[2] == row[2] and not covariance[2].any()


def test_samples_fill_cells_of_the_density(model):
    """Share of samples in boxes against the integral of the density over the box."""
    rows = model.sample(40_000, random_state=2)
    edges = np.quantile(X[:, 0], [0, 0.2, 0.5, 0.8, 1.0])
    for low, high in itertools.pairwise(edges):
        axis = np.linspace(low, high, 2001)
        line = np.full((len(axis), 3), np.nan)
        line[:, 0] = axis
        probability = np.exp(model.score_samples(line)).mean() * (high - low)
        share = ((rows[:, 0] >= low) & (rows[:, 0] < high)).mean()
        assert share == pytest.approx(probability, abs=0.02)


@pytest.mark.parametrize("known", [[], [0]])
def test_samples_keep_the_given_fields_and_have_the_moments_of_the_density(tree, known):
    given = np.full(3, np.nan)
    given[known] = X[5, known]
    drawn = np.isnan(given)
    rows = tree.sample(40_000, given=given, random_state=3)
    assert (rows[:, ~drawn] == given[~drawn]).all()
    mean, covariance = tree.conditional_moments(given)
    error = np.sqrt(np.diag(covariance)[drawn] / len(rows))
    assert (np.abs(rows.mean(axis=0) - mean)[drawn] < 5 * error).all()
    np.testing.assert_allclose(np.cov(rows.T), covariance, rtol=0.1, atol=0.1)


def test_a_single_gaussian_gives_the_textbook_conditional():
    rng = np.random.default_rng(4)
    rows = rng.multivariate_normal([1, 2, 3], [[2, 1, 0.5], [1, 2, 1], [0.5, 1, 2]], size=500)
    model = OSLRAU.paper(n_init_components=1, min_count=1, max_leaf_vars=3)
    for part in np.split(rows, 5):
        model.partial_fit(part)
    assert model.node_counts_["multivariate_leaf"] == model.n_nodes_ == 1
    mean, covariance = model.conditional_moments(np.full(3, np.nan))
    row = np.array([np.nan, 2.5, 2.0])
    gain = covariance[0, 1:] @ np.linalg.inv(covariance[1:, 1:])
    expected = mean[0] + gain @ (row[1:] - mean[1:])
    variance = covariance[0, 0] - gain @ covariance[1:, 0]
    assert model.impute(row[None])[0, 0] == pytest.approx(expected)
    assert model.expected(row[None])[1][0, 0] == pytest.approx(np.sqrt(variance))
    marginal = multivariate_normal(mean[1:], covariance[1:, 1:]).logpdf(row[1:])
    assert model.score_samples(row[None])[0] == pytest.approx(marginal)


@pytest.mark.parametrize("known", [[1, 2], [2], []])
def test_quantiles_are_where_so_much_of_the_conditional_density_lies_below(model, known):
    row = np.full((1, 3), np.nan)
    row[0, known] = X[5, known]
    levels = [0.01, 0.5, 0.99]
    mean, quantiles = model.conditional_quantiles(row, levels)
    # fine in the middle, and beyond the widest leaf
    axis = X[:, 0].mean() + X[:, 0].std() * np.sinh(np.linspace(-26.0, 26.0, 60_001))
    rows = np.tile(row, (len(axis), 1))
    rows[:, 0] = axis
    density = np.exp(model.score_samples(rows) - model.score_samples(row))
    mass = np.diff(axis) * (density[1:] + density[:-1]) / 2
    below = np.interp(quantiles[:, 0, 0], axis[1:], np.cumsum(mass))
    np.testing.assert_allclose(below, levels, atol=1e-4)
    centre = np.sum(mass * (axis[1:] + axis[:-1]) / 2)
    assert mean[0, 0] == pytest.approx(centre, abs=1e-3 * X[:, 0].std())
    np.testing.assert_array_equal(quantiles[:, 0, known], row[[0, 0, 0]][:, known])


def test_a_field_that_was_never_observed_has_no_quantiles():
    rows = X[:200].copy()
    rows[:, 1] = np.nan
    mean, quantiles = OSLRAU().partial_fit(rows).conditional_quantiles(rows[:1], [0.5])
    assert np.isnan(mean[0, 1])
    assert np.isnan(quantiles[0, 0, 1])
