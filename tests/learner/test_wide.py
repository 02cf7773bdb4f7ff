"""Records of more fields than one covariance takes: blocks of fields.

A block has up to three fields here, so that every answer can be compared with plain numpy.
"""

import numpy as np
import pytest
from interpreter import INTERPRETED
from naive_stacked import gaussian
from scipy.stats import norm

from faust_oslrau.learner import StackedSPN
from faust_oslrau.learner.stacked import background as module

if INTERPRETED:
    pytest.skip("needs the compiler: long streams", allow_module_level=True)

D = 7


def rows_of(seed, n, d=D, factors=2, noise=0.3):
    """Draw rows that factors drive, with the same loadings for each seed."""
    loadings = np.random.default_rng(99).normal(size=(factors, d))
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, factors)) @ loadings + noise * rng.normal(size=(n, d))


ROWS = rows_of(1, 2000)


@pytest.fixture(autouse=True)
def _blocks_of_three(monkeypatch):
    monkeypatch.setattr(module, "WIDEST", 3)
    monkeypatch.setattr("faust_oslrau.learner.stacked.training.WIDEST_MIXTURE", 3)


def learned(rows):
    return StackedSPN().partial_fit(rows, batch_size=256)


def weighing_one_gaussian(model):
    """Let the network be the Gaussian over the whole stream, but for 1e-12."""
    weight = np.full(6, 1e-12)
    weight[2] = 1.0
    model._training.network.weight = weight / weight.sum()
    return model


def with_gaps(rows):
    """Leave out fields at random, a whole block, all fields but one, and all."""
    rows = rows.copy()
    rows[np.random.default_rng(0).random(rows.shape) < 0.3] = np.nan
    rows[0], rows[1, :2], rows[2, 1:], rows[3] = ROWS[0], np.nan, np.nan, np.nan
    return rows


def test_quantiles_of_missing_fields_are_those_of_the_conditional_gaussian():
    model = weighing_one_gaussian(learned(ROWS))
    background, scaling = model._training.network.background, model._training.scaling
    rows = with_gaps(rows_of(5, 30))
    mean, quantiles = model.conditional_quantiles(rows, [0.05, 0.5, 0.99])
    for r, row in enumerate((rows - scaling.location) / scaling.scale):
        missing = np.isnan(row)
        if not missing.any():
            continue
        _, centre, rest = gaussian(background.mean, background.covariance, 0.0, row)
        centre = (centre * scaling.scale + scaling.location)[missing]
        spread = (np.sqrt(np.diag(rest)) * scaling.scale)[missing]
        np.testing.assert_allclose(mean[r, missing], centre, atol=1e-6)
        for i, level in enumerate([0.05, 0.5, 0.99]):
            expected = norm(centre, spread).ppf(level)
            np.testing.assert_allclose(quantiles[i, r, missing], expected, atol=2e-3)


def test_samples_have_the_conditional_moments():
    model, row = weighing_one_gaussian(learned(ROWS)), ROWS[7].copy()
    row[[0, 2, 5]] = np.nan
    for known in (row, np.full(D, np.nan)):
        mean, covariance = model.conditional_moments(known)
        drawn = model.sample(20_000, random_state=1, given=known)
        np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.05)
        np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.1)


def test_the_gaussian_is_one_leaf_over_all_fields():
    model = learned(ROWS)
    graph = model.to_networkx([f"f{v}" for v in range(D)])
    leaves = [node for _, node in graph.nodes(data=True) if node["kind"] == "multivariate_leaf"]
    assert len(graph) == model.n_nodes_ and len(leaves) == 4
    assert all(len(leaf["scope"]) == D for leaf in leaves)


def test_an_outline_has_the_correlations_of_few_fields_only(monkeypatch):
    model = learned(ROWS)
    assert any(model.outline()["correlation"])
    monkeypatch.setattr("faust_oslrau.learner.queries.drawing.WIDEST_MATRIX", 3)
    outline = model.outline()
    assert not any(outline["correlation"]) and outline["mean"][-1] is not None
