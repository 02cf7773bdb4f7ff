"""Univariate leaves that all products share: where they begin, given a sample of the stream."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.density.gaussian_kernels import LEAST_VARIANCE

WIDE = np.array([3.0, 15.0, 150.0, 1e8])
"""Deviations of each variable's fixed wide leaves: between and beyond all others, out to where a
single value costs some nats instead of all of them."""

WIDE_SHARE = 0.01 * np.array([0.8, 0.15, 0.04, 0.01])
"""Weights that the wide leaves begin with."""

YOUNG, YOUNG_VARIANCE = 48, 0.05
"""Values of a variable below which a value that came once is no sign of a discrete variable, and
the variance that its leaf gets instead of the least one."""

MOST_LEAVES = 90
"""Of a variable, besides the wide ones."""


@dataclass(frozen=True)
class Leaves:
    """Leaves of all variables, side by side; the first four of each variable are the wide ones.

    Attributes
    ----------
    first
        Where the leaves of each variable begin, and the end (d + 1,).
    mean, variance
        Parameters (n,), in standardised units.
    prior_mean, prior_variance, prior_weight
        What they began with (n,); counts as one record.
    """

    first: IntArray
    mean: FloatArray
    variance: FloatArray
    prior_mean: FloatArray
    prior_variance: FloatArray
    prior_weight: FloatArray

    @classmethod
    def of_sample(cls, Z: FloatArray, per_variable: int, most: int, most_quantiles: int) -> Leaves:
        """Place leaves at the atoms and quantiles of the columns of ``Z`` (m, d).

        At most ``per_variable`` on the average besides the wide ones, and ``most`` of a variable,
        of which ``most_quantiles`` are at quantiles.
        """
        columns = [column[~np.isnan(column)] for column in Z.T]
        allowed = np.minimum(share_out([len(np.unique(c)) for c in columns], per_variable), most)
        grids = [_grid(c, int(n), most_quantiles) for c, n in zip(columns, allowed, strict=True)]
        sizes = [len(mean) for mean, _, _ in grids]
        mean, variance, weight = (np.concatenate(parts) for parts in zip(*grids, strict=True))
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(first, mean.copy(), variance.copy(), mean, variance, weight)

    @property
    def variable(self) -> IntArray:
        """Variable of each leaf (n,)."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @property
    def is_wide(self) -> Mask:
        """Which leaves stay as they are (n,)."""
        return np.arange(len(self.mean)) - self.first[self.variable] < len(WIDE)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum of ``values`` (n, ...) over each leaf's variable, repeated for all of its leaves."""
        return np.asarray(np.add.reduceat(values, self.first[:-1])[self.variable], np.float64)

    def coefficients(self, floor: FloatArray | float) -> FloatArray:
        """Means, precisions and log-densities at the mean (3, n) with variances at least floor.

        ``floor`` is a number or one for each variable (d,).
        """
        if np.ndim(floor) > 0:
            return self._coefficients(np.asarray(floor)[self.variable])
        least = float(floor)
        return self._coefficients(least) if least > 0.0 else self.own_coefficients

    @cached_property
    def own_coefficients(self) -> FloatArray:
        """The same with the variances as they are."""
        return self._coefficients(0.0)

    def _coefficients(self, floor: FloatArray | float) -> FloatArray:
        variance = np.maximum(self.variance, floor)
        return np.stack([self.mean, 1.0 / variance, -0.5 * np.log(2.0 * np.pi * variance)])


def share_out(distinct: list[int], per_variable: int) -> IntArray:
    """Leaves of each variable (d,), at most ``per_variable`` on the average.

    A variable with fewer distinct values needs no more leaves and leaves its share to the others.
    """
    values = np.maximum(distinct, 1)
    level = 1
    while level < MOST_LEAVES and np.minimum(values, level + 1).sum() <= len(values) * per_variable:
        level += 1
    return np.minimum(values, level)


def _grid(
    z: FloatArray, most: int, most_quantiles: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means, variances and weights of a variable's leaves, the wide ones first."""
    centre = z.mean() if len(z) else 0.0
    wide = np.full(len(WIDE), centre), WIDE**2, WIDE_SHARE
    if len(z) == 0:
        return wide[0], wide[1], np.append(1.0 - WIDE_SHARE[1:].sum(), WIDE_SHARE[1:])
    values, counts = np.unique(z, return_counts=True)
    if len(values) <= most:
        young = len(z) < YOUNG and len(values) > 1
        variance = np.full(len(values), YOUNG_VARIANCE if young else LEAST_VARIANCE)
        own = values, variance, counts.astype(np.float64)
    else:
        own = _atoms_and_quantiles(values, counts, most, most_quantiles)
    share = own[2] / own[2].sum() * (1.0 - WIDE_SHARE.sum())
    mean, variance = (np.concatenate(pair) for pair in zip(wide[:2], own[:2], strict=True))
    return mean, variance, np.concatenate([wide[2], share])


def _atoms_and_quantiles(
    values: FloatArray, counts: IntArray, most: int, most_quantiles: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give frequent values narrow leaves, and the rest leaves over as many values each."""
    is_atom = counts > max(2.0, counts.sum() / most)
    rest = np.repeat(values[~is_atom], counts[~is_atom])
    n_parts = min(max(1, most - int(is_atom.sum())), len(rest), most_quantiles)
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
