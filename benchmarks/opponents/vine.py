"""A vine copula on kernel densities of the single variables, by pyvinecopulib."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from pyvinecopulib import Vinedist, core

from benchmarks.datasets import Array, Setting
from benchmarks.mixtures import single_gaussian

from .sizes import Opaque

MOST_RECORDS = 10_000
"""Random ones that are fitted, as many as the kernel density has."""

TREES = 5
"""Trees of the vine that have pair copulas; the others stand for independence."""


def vine_copula(folds: Iterable[Array], setting: Setting) -> Opaque:
    """Fit nonparametric margins, then pair copulas chosen by AIC.

    The margins end a little beyond the records. One record's share of the density is that of a
    single Gaussian, so that no record has a density of zero.
    """
    X = np.random.default_rng(0).permutation(np.concatenate(list(folds)))[:MOST_RECORDS]
    controls = core.FitControlsVinecop(parametric_method="itau", trunc_lvl=TREES)
    vine, gaussian, share = (
        Vinedist.from_data(X, controls),
        single_gaussian([X], setting),
        1 / len(X),
    )

    def log_density(rows: Array) -> Array:
        with np.errstate(divide="ignore"):
            own = np.log1p(-share) + np.asarray(vine.logpdf(rows))
        return np.logaddexp(own, np.log(share) + gaussian.score_samples(rows))

    return Opaque(log_density, round(vine.npars) + gaussian.n_parameters_)


METHODS = {"vine copula": lambda size: vine_copula}
