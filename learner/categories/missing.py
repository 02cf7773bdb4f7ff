"""Records that lack a category on which their numbers depend: the sum over its values.

Such a record is that of its likeliest values, and what the others add is a weight beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.vector.blocks import row_sums

from .values import MOST_VALUES

if TYPE_CHECKING:
    from .layer import Categories

LogDensity = Callable[[FloatArray], FloatArray]
"""Returns the log-density (m,) of numbers (m, d) as they would be with average categories."""

MOST = MOST_VALUES + 1
"""Combinations of values whose densities are added up exactly, all values of one field among them.
What all others add is told by levels and spreads alone."""

SURE = np.log(0.9)
"""Without a density, where each entity has levels of its own, the logarithm of how likely the
likeliest value has to be: a wrong one would make a usual record an anomaly."""

VALUES_AT_ONCE = 1 << 20
"""Values in the combinations of records that are summed together: some megabytes."""


class Combined(NamedTuple):
    """Records with each of the likely values of some fields that they lack.

    Attributes
    ----------
    slots
        Those of the values (k, b, c).
    joint, log_density
        Log-density (k, b) of numbers and categories, and of numbers given these.
    beside
        The logarithm (k,) by which the sum over all values is above that over these.
    """

    slots: IntArray
    joint: FloatArray
    log_density: FloatArray
    beside: FloatArray

    @property
    def total(self) -> FloatArray:
        """The log-density (k,) of the numbers and the known categories."""
        return self.beside + _log_sum(self.joint)


def combined(
    of: Categories, slots: IntArray, X: FloatArray, fields: list[int], density: LogDensity | None
) -> Combined:
    """Return records of numbers (k, d) and slots (k, c) with the likely values of some ``fields``.

    Of several fields, those that tell most come first: their likely values are combined with all of
    the next. Without a ``density``, numbers are taken for independent Gaussians.
    """
    k, c = slots.shape
    beside, each = np.zeros(k), of.counts.with_each(slots, fields[0]).reshape(k, -1, c)
    for f in fields[1:]:
        joint, _ = _joint(of, each, X, None)
        best = np.argsort(-joint, axis=1, kind="stable")[:, : MOST // len(of.counts.slots_of(f))]
        beside += _log_sum(joint) - _log_sum(np.take_along_axis(joint, best, axis=1))
        likely = np.take_along_axis(each, best[..., None], axis=1).reshape(-1, c)
        each = of.counts.with_each(likely, f).reshape(k, -1, c)
    return Combined(each, *_joint(of, each, X, density), beside)


def likeliest(
    of: Categories, slots: IntArray, X: FloatArray, fields: list[int], density: LogDensity | None
) -> tuple[IntArray, FloatArray]:
    """Return slots (k, c) with the likeliest values of some ``fields``, and their log-weight (k,).

    The weight times the density of the numbers (k, d) given these slots is that of the records:
    numbers and known categories, summed over all values. Without a ``density``, values that are not
    `SURE` stay missing.
    """
    found = combined(of, slots, X, fields, density)
    first, total = (np.arange(len(slots)), found.joint.argmax(axis=1)), found.total
    filled, weight = found.slots[first], total - found.log_density[first]
    if density is None:
        unsure = found.beside + found.joint[first] - total < SURE
        filled[unsure] = slots[unsure]
        weight[unsure] = of.counts.log_probability(slots[unsure])
        weight = np.minimum(weight, 0.0)  # as what is kept with rows, probabilities
    return filled, weight


def _joint(
    of: Categories, each: IntArray, X: FloatArray, density: LogDensity | None
) -> tuple[FloatArray, FloatArray]:
    """Return the log-density (k, b) of numbers (k, d) and slots (k, b, c), and given slots."""
    k, b, c = each.shape
    slots, numbers = each.reshape(-1, c), np.repeat(X, b, axis=0)
    if density is None:
        log_density = of.gaussian(slots, numbers)
    else:
        own = of.in_units(numbers, slots)
        log_density = density(own.rows) + own.log_jacobian
    joint = of.counts.log_probability(slots) + log_density
    return joint.reshape(k, b), log_density.reshape(k, b)


def _log_sum(terms: FloatArray) -> FloatArray:
    """Return the logarithm (k,) of the sum of numbers whose logarithms are ``terms`` (k, b)."""
    top = terms.max(axis=1)
    return np.asarray(top + np.log(row_sums(np.exp(terms - top[:, None]))))
