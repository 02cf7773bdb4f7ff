"""Where univariate leaves begin, given the values of a variable."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray

from .gaussian_kernels import LEAST_VARIANCE


def atoms_and_quantiles(
    values: FloatArray, counts: IntArray, most: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give frequent values narrow leaves, and the rest leaves over as many values each.

    ``values`` of one variable come with their ``counts``. Returns means, variances and weights of
    at most ``most`` leaves.
    """
    is_atom = counts > max(2.0, counts.sum() / most)
    rest = np.repeat(values[~is_atom], counts[~is_atom])
    n_parts = min(max(1, most - int(is_atom.sum())), len(rest))
    sizes = len(rest) // n_parts + (np.arange(n_parts) < len(rest) % n_parts)
    starts = np.cumsum(sizes) - sizes
    means = np.add.reduceat(rest, starts) / sizes
    variances = np.add.reduceat((rest - np.repeat(means, sizes)) ** 2, starts) / sizes
    mean = np.concatenate([values[is_atom], means])
    variance = np.concatenate([np.zeros(is_atom.sum()), variances])
    weight = np.concatenate([counts[is_atom], sizes]).astype(np.float64)
    narrow = np.arange(len(mean)) < is_atom.sum()
    order = np.argsort(mean, kind="stable")
    mean, variance, weight, narrow = mean[order], variance[order], weight[order], narrow[order]
    gap = np.gradient(mean) if len(mean) > 1 else np.ones(1)
    variance = np.where(narrow, 0.0, np.maximum(variance, gap**2))
    return mean, np.maximum(variance, LEAST_VARIANCE), weight
