"""Records that lack a category: sums over its values, by brute force."""

import functools
import math

import numpy as np
import pytest
from interpreter import needs_compiler
from streams import learned_by, losing
from test_effects import records

from faust_oslrau.learner import OSLRAU, CategoricalDensity, StreamScorer
from faust_oslrau.learner.categories.layer import Categories
from faust_oslrau.learner.categories.missing import MOST

VALUES = [0, 1, 2, 3, 99], [0, 1, 99], [0, 1, 2, 99]
"""Those of a service, a cache and a region; 99 was never seen."""

LACKS = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)]
"""The categories that a record lacks."""


@functools.cache
def taught(together=0.0, share=0.0):
    rows = losing(records(0, together, 2000), share)
    rows = np.insert(rows, 1, 0.5 * rows[:, 0] + np.random.default_rng(1).normal(size=2000), axis=1)
    return CategoricalDensity(n_categories=3).partial_fit(rows, batch_size=128), rows


def summed(score, row, fields):
    """Return the log-density of one row by a sum over all values of some fields."""
    rows = [list(row)]
    for f in fields:
        rows = [[*of[: 2 + f], value, *of[3 + f :]] for of in rows for value in VALUES[f]]
    return math.log(math.fsum(math.exp(log_p) for log_p in score(rows).tolist()))


@pytest.mark.parametrize("lacks", LACKS)
@pytest.mark.parametrize("together", [0.0, 4.0])
def test_the_density_is_the_sum_over_all_values(together, lacks):
    density, rows = taught(together)
    rows = rows[:25].copy()
    rows[:, [2 + f for f in lacks]] = np.nan
    rows[:5, 0] = np.nan
    rows[3:8, 1] = np.nan  # of two records no number is left
    expected = [summed(density.score_samples, row, lacks) for row in rows.tolist()]
    np.testing.assert_allclose(density.score_samples(rows), expected, rtol=1e-9)


def test_of_more_combinations_than_are_added_up_exactly_the_sum_is_near():
    rng, n = np.random.default_rng(0), 8000
    of = rng.integers([40, 12], size=(n, 2))
    level = [rng.normal(0.0, spread, size) for spread, size in ((2.0, 40), (6.0, 12))]
    number = level[0][of[:, 0]] + level[1][of[:, 1]] + rng.normal(size=n)
    density = CategoricalDensity(n_categories=2)
    density.partial_fit(np.column_stack([number, of]), batch_size=256)
    every = np.stack(np.meshgrid([*range(40), 99], [*range(12), 99]), axis=-1).reshape(-1, 2)
    assert len(every) > MOST
    each = [np.column_stack([np.full(len(every), x), every]) for x in number[:30]]
    expected = [np.logaddexp.reduce(density.score_samples(rows)) for rows in each]
    lost = np.column_stack([number[:30], np.full((30, 2), np.nan)])
    np.testing.assert_allclose(density.score_samples(lost), expected, atol=0.1)


def test_what_is_missing_does_not_blur_what_other_categories_do():
    layers = [learned_by(Categories(3), losing(records(0), share), 250) for share in (0.0, 0.4)]
    whole, lost = (layer.average(records(1, n=200)).units for layer in layers)
    np.testing.assert_allclose(lost, whole, atol=0.3)


def test_values_that_are_not_sure_stay_missing_where_the_network_cannot_be_asked():
    rng = np.random.default_rng(0)
    of = rng.integers(2, size=(4000, 2))
    rows = np.column_stack([3.0 * of[:, 0] + rng.normal(size=4000), of])
    layer = learned_by(Categories(2), rows, 250)
    found = layer.average(np.array([[1.5, np.nan, 1], [6.0, np.nan, 1], [np.nan, np.nan, 1]]))
    whole = layer.average(np.array([[6.0, 1, 1]]))
    assert found.units[0].tolist() == found.units[2].tolist() != found.units[1].tolist()
    assert found.log_probability[0] == found.log_probability[2]
    assert found.units[1].tolist() == whole.units[0].tolist()
    assert found.log_probability[1] == pytest.approx(whole.log_probability[0], abs=0.1)


@needs_compiler("whole streams")
def test_records_without_the_field_are_scored_no_worse_than_if_none_had_it():
    rows = records(0, n=8000)
    gone = losing(rows, 0.3)
    late = np.isnan(gone[:, 1]) & (np.arange(8000) > 2000)
    some, none = (
        StreamScorer(OSLRAU(), n_categories=c).process(X).log_likelihood[late].mean()
        for X, c in [(gone, 3), (np.delete(rows, 1, axis=1), 2)]
    )
    assert some > none
