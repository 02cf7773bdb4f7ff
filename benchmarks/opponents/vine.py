"""A vine copula on kernel densities of the single variables, by pyvinecopulib."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from pyvinecopulib import Vinedist, core

from benchmarks.datasets import Array, Setting

from .sizes import Opaque

MOST_RECORDS = 10_000
"""Random ones that are fitted, as many as the kernel density has."""

TREES = 5
"""Trees of the vine that have pair copulas; the others stand for independence."""


def vine_copula(folds: Iterable[Array], setting: Setting) -> Opaque:
    """Fit nonparametric margins, then parametric pair copulas chosen by AIC."""
    X = np.random.default_rng(0).permutation(np.concatenate(list(folds)))[:MOST_RECORDS]
    controls = core.FitControlsVinecop(parametric_method="itau", trunc_lvl=TREES)
    model = Vinedist.from_data(X, controls)
    return Opaque(lambda rows: np.asarray(model.logpdf(rows)), round(model.npars))
