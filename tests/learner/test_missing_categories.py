"""Records that lack a category: sums over its values, by brute force."""

import functools
import math

import numpy as np
import pytest
from interpreter import needs_compiler
from scipy import integrate
from test_effects import records

from faust_oslrau.learner import OSLRAU, CategoricalDensity, StreamScorer
from faust_oslrau.learner.categories.layer import Categories
from faust_oslrau.learner.categories.missing import MOST

VALUES = [0, 1, 2, 3, 99], [0, 1, 99], [0, 1, 2, 99]
"""Those of a service, a cache and a region; 99 was never seen."""

LACKS = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)]
"""The categories that a record lacks."""


def losing(rows, share, column=1, seed=9):
    """Return rows of which a share lacks a category."""
    gone = rows.copy()
    gone[np.random.default_rng(seed).random(len(rows)) < share, column] = np.nan
    return gone


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
    rows[5:8, 1] = np.nan
    expected = [summed(density.score_samples, row, lacks) for row in rows.tolist()]
    np.testing.assert_allclose(density.score_samples(rows), expected, rtol=1e-9)


@needs_compiler("a quarter of a million records")
def test_densities_without_a_category_integrate_to_one():
    density = CategoricalDensity(n_categories=3)
    density.partial_fit(losing(records(0, 4.0, 1000), 0.3), batch_size=128)
    at, total = np.linspace(-80.0, 80.0, 8001), 0.0
    for cached in VALUES[1]:
        for region in VALUES[2]:
            of = np.tile([np.nan, cached, region], (len(at), 1))
            p = np.exp(density.score_samples(np.column_stack([at, of])))
            total += integrate.trapezoid(p, at)
    assert total == pytest.approx(1.0, abs=1e-3)


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


@pytest.mark.parametrize("together", [0.0, 4.0])
def test_contributions_are_conditional_densities_without_a_category(together):
    density, rows = taught(together)
    rows = rows[:6].copy()
    rows[:, 2] = np.nan
    rows[0, 1] = np.nan
    found = density.contributions(rows)
    for column in (0, 1, 3):
        without = rows.copy()
        without[:, column] = np.nan
        expected = density.score_samples(without) - density.score_samples(rows)
        expected[np.isnan(rows[:, column])] = np.nan
        np.testing.assert_allclose(found[:, column], expected, atol=1e-6)
    assert np.isnan(found[:, 2]).all()


def test_a_row_has_the_same_bits_alone_and_in_a_block():
    density, rows = taught(4.0, 0.3)
    rows = losing(losing(rows[:300], 0.3, 2), 0.3, 3)
    alone = [density.score_samples(row[None])[0] for row in rows]
    np.testing.assert_array_equal(density.score_samples(rows), alone)
    block = StreamScorer(OSLRAU(), n_categories=3).process(rows)
    scorer = StreamScorer(OSLRAU(), n_categories=3)
    pieces = [scorer.process(rows[start : start + 7]) for start in range(0, 300, 7)]
    for name in ("log_likelihood", "p_value"):
        found = np.concatenate([getattr(piece, name) for piece in pieces])
        np.testing.assert_array_equal(found, getattr(block, name))


def test_a_stream_scorer_has_the_same_density():
    rows = losing(records(0), 0.3)[:752]
    scorer, density = StreamScorer(OSLRAU(), n_categories=3), CategoricalDensity(n_categories=3)
    for start, stop in [(0, 16), (16, 48), (48, 112), (112, 240), (240, 496), (496, 752)]:
        block = scorer.process(rows[start:stop])
        assert block.held_back == 0, "the guard must let all records pass"
        if start > 0:
            found = density.score_samples(rows[start:stop])
            np.testing.assert_allclose(found, block.log_likelihood, rtol=1e-12)
        density.partial_fit(rows[start:stop])


def test_what_is_missing_does_not_blur_what_other_categories_do():
    layers = [Categories(3), Categories(3)]
    for layer, rows in zip(layers, [records(0), losing(records(0), 0.4)], strict=True):
        for start in range(0, len(rows), 250):
            layer.take(rows[start : start + 250])
            layer.end_batch(None, learning=True)
    rows = records(1, n=200)
    whole, lost = (layer.average(rows).units for layer in layers)
    np.testing.assert_allclose(lost, whole, atol=0.3)


def test_values_that_are_not_sure_stay_missing_where_the_network_cannot_be_asked():
    rng = np.random.default_rng(0)
    of = rng.integers(2, size=(4000, 2))
    rows = np.column_stack([3.0 * of[:, 0] + rng.normal(size=4000), of])
    layer = Categories(2)
    for start in range(0, 4000, 250):
        layer.take(rows[start : start + 250])
        layer.end_batch(None, learning=True)
    found = layer.average(np.array([[1.5, np.nan, 1], [6.0, np.nan, 1], [np.nan, np.nan, 1]]))
    whole = layer.average(np.array([[6.0, 1, 1]]))
    assert found.units[0].tolist() == found.units[2].tolist() != found.units[1].tolist()
    assert found.log_probability[0] == found.log_probability[2]
    assert found.units[1].tolist() == whole.units[0].tolist()
    assert found.log_probability[1] == pytest.approx(whole.log_probability[0], abs=0.1)


def test_a_scorer_with_seasons_goes_on_from_its_bytes():
    rows = np.column_stack([np.arange(600) % 3 + np.random.default_rng(0).normal(size=600) / 9,
                            np.arange(600) % 3])  # fmt: skip
    rows[::2, 1] = np.nan
    places = np.column_stack([np.arange(600), 60_000 * np.arange(600)])
    scorer = StreamScorer(OSLRAU(), n_categories=1, seasons="UTC")
    scorer.process(rows[:500], places=places[:500])
    again = StreamScorer.from_bytes(scorer.to_bytes())
    found = [of.process(rows[500:], places=places[500:]) for of in (scorer, again)]
    np.testing.assert_array_equal(found[0].p_value, found[1].p_value)


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
