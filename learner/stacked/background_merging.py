"""One Gaussian over the records of several streams, from what is known of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .background import Background, Moments
from .factors import SWEEPS, Factors, product


def merge_backgrounds(backgrounds: Sequence[Background], first: int) -> Background:
    """Return the Gaussian of all records; its factors begin as those of the ``first`` one."""
    each = [_all_moments(background) for background in backgrounds]
    blocks, q = backgrounds[first].blocks, each[first].n_factors
    merged = Background(len(each[first].sums), q)
    for moments in each:
        merged.known.merge_values(moments)
    loadings = each[first].loadings
    for _ in range(SWEEPS if q > 0 else 0):
        factors = Factors(merged.known.mean, merged.known.variance, loadings)
        merged.known.clear_factors()
        for moments in each:
            _add_expected(merged.known, moments, blocks, factors)
        merged.known.standardise_factors()
        loadings = merged.known.loadings
    merged.update()
    return merged


def _all_moments(background: Background) -> Moments:
    """Return the moments of all records, of those since the Gaussians last changed, too."""
    moments = Moments(background.blocks, background.known.n_factors)
    moments.merge(background.known)
    moments.fade(background.kept)
    moments.merge(background.fresh)
    moments.standardise_factors()
    return moments


def _add_expected(merged: Moments, moments: Moments, blocks: list[slice], factors: Factors) -> None:
    """Add what is expected of factors by records of which only the moments are known.

    These give the covariances within a block, and their own loadings those between blocks.
    """
    n, mean, loadings, projection = (
        moments.count, moments.mean, moments.loadings, factors.projection
    )  # fmt: skip
    cross = product(loadings, product(loadings.T, projection.T))
    for own, squares in zip(blocks, moments.squares, strict=True):
        covariance = (squares + np.tril(squares, -1).T) / n - np.outer(mean[own], mean[own])
        covariance -= product(loadings[own], loadings[own].T)
        cross[own] += product(covariance, projection[:, own].T)
    centre = product(projection, (mean - factors.mean)[:, None])[:, 0]
    merged.factor_sums += n * centre
    merged.factor_products += n * (cross + np.outer(mean, centre))
    squares = product(projection, cross) + np.outer(centre, centre) + factors.covariance
    merged.factor_squares += n * squares
