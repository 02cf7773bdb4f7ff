"""A vine copula on kernel densities of the single variables, by pyvinecopulib."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from pyvinecopulib import Vinedist, core

from benchmarks.datasets import Array, Setting
from benchmarks.mixtures import single_gaussian

MOST_RECORDS = 5_000
"""Random ones that are fitted."""

TREES = 5
"""Trees of the vine that have pair copulas; the others stand for independence."""


class Vine:
    """A vine of records (n, d); with a least variance, of the same records with such noise.

    The margins end a little beyond the records. One record's share of the density is that of a
    single Gaussian, so that no record has a density of zero.
    """

    n_nodes_ = 0

    def __init__(self, X: Array) -> None:
        self._records = X
        self._gaussian = single_gaussian([X], Setting(1, 1, 0))
        self._vine = fitted(X)
        self.n_parameters_ = round(self._vine.npars) + self._gaussian.n_parameters_

    def score_samples(self, X: Array, *, variance_floor: float | None = None) -> Array:
        vine, share = self._vine, 1.0 / len(self._records)
        if variance_floor is not None:
            noise = np.random.default_rng(0).normal(size=self._records.shape)
            vine = fitted(self._records + np.sqrt(variance_floor) * noise)
        with np.errstate(divide="ignore"):
            own = np.log1p(-share) + np.asarray(vine.logpdf(X))
        other = self._gaussian.score_samples(X, variance_floor=variance_floor)
        return np.asarray(np.logaddexp(own, np.log(share) + other))


def fitted(X: Array) -> Vinedist:
    """Fit nonparametric margins, then pair copulas chosen by AIC."""
    controls = core.FitControlsVinecop(parametric_method="itau", trunc_lvl=TREES)
    return Vinedist.from_data(X, controls)


def vine_copula(folds: Iterable[Array], setting: Setting) -> Vine:
    return Vine(np.random.default_rng(0).permutation(np.concatenate(list(folds)))[:MOST_RECORDS])


METHODS = {"vine copula": lambda size: vine_copula}
