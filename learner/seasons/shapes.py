"""How fields change with the hour, and whether that is sure: from the hours of the last days.

A shape is the mean of each hour over the days, drawn to 0 by what chance explains. It counts for a
field only if it predicts days: each day is compared with the shape of the others. Where there is no
season, that makes predictions worse, however slowly the field changes from one hour to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.typical import FARTHEST, typical_distances

CHANCE = 1e-3
"""Probability at most that a shape predicts days so much better than none by chance, for it to
begin to count: fields and days are many."""

DOUBTFUL = 1.0
"""Standard errors by which it must predict days better to go on."""

GAIN = 0.02
"""Share of the variance that a shape must explain, at least, to begin to count; a quarter of it to
go on. Less is not worth learning anew."""


class Shape(NamedTuple):
    """Differences between hours: ``values`` (groups, 24, d), 0 where the shape does not count.

    ``counts`` (d,) says for which fields it does.
    """

    values: FloatArray
    counts: Mask


def find_shape(
    hours: FloatArray,
    group: IntArray,
    block: IntArray,
    unit: FloatArray,
    fewest: int,
    before: Mask,
    least: FloatArray,
) -> Shape:
    """Find the shape of each group of days in ``hours`` (j, 24, d), NaN = missing.

    ``group`` (j,) are numbers from 0 on. Days of a ``block`` (j,) are judged together, and at least
    ``fewest`` blocks must be predicted. ``unit`` (d,) is what a squared gain is compared with;
    ``before`` (d,) says for which fields the shape counted before. Nothing nearer to the median
    than ``least`` (d,) is far.
    """
    n_groups, d = int(group.max()) + 1, hours.shape[2]
    if len(np.unique(block)) < fewest or np.isinf(unit).all():
        return Shape(np.zeros((n_groups, *hours.shape[1:])), np.zeros(d, np.bool_))
    hours = hours - middle(hours.reshape(-1, d))  # a constant is no shape
    bounded = clipped(hours, np.zeros(d), least)
    predicted = _gains(bounded, group, block, *_means(bounded, group, n_groups))
    centre = np.nan_to_num([median(hours[group == g]) for g in range(n_groups)])
    usual = clipped(hours, centre[group], least)
    mean, share = _means(usual, group, n_groups)[1:]
    return Shape(share * mean, _is_sure(predicted, unit, fewest, before))


def clipped(hours: FloatArray, centre: FloatArray, least: FloatArray) -> FloatArray:
    """Return hours (j, 24, d) not further from a ``centre`` of that shape than usual ones."""
    rest = (hours - centre).reshape(-1, hours.shape[2])
    far = np.maximum(FARTHEST * typical_distances(rest), least)
    return np.clip(hours, centre - far, centre + far)


def _means(
    hours: FloatArray, group: IntArray, n_groups: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return number, mean and share of it that is not noise (groups, 24, d) of each hour."""
    known, values = ~np.isnan(hours), np.nan_to_num(hours)
    n, total = np.empty((2, n_groups, *hours.shape[1:]))
    for g in range(n_groups):
        n[g], total[g] = known[group == g].sum(axis=0), values[group == g].sum(axis=0)
    mean = total / np.maximum(n, 1.0)
    return n, mean, shrinkage(hours, mean, n, group)


def _gains(
    hours: FloatArray,
    group: IntArray,
    block: IntArray,
    n: FloatArray,
    mean: FloatArray,
    share: FloatArray,
) -> FloatArray:
    """Return how much less the squares are, for each block (k, d), if other days predict them."""
    others = (n * mean)[group] - np.nan_to_num(hours)
    others /= np.maximum(n[group] - 1.0, 1.0)
    judged = ~np.isnan(hours) & (n[group] > 1.0)
    gain = np.where(judged, hours**2 - (hours - share[group] * others) ** 2, 0.0)
    blocks = np.unique(block[judged.any(axis=(1, 2))])
    gains = np.empty((len(blocks), hours.shape[2]))
    for k, b in enumerate(blocks):
        of_block = judged[block == b].sum(axis=(0, 1))
        gains[k] = gain[block == b].sum(axis=(0, 1)) / np.maximum(of_block, 1)
    return gains


def shrinkage(hours: FloatArray, mean: FloatArray, n: FloatArray, group: IntArray) -> FloatArray:
    """Return the share (groups, 24, d) of each hour's ``mean`` that is not noise.

    Hours are random effects: the variance of their true levels is that of the means less that of
    the noise in them.
    """
    seen = n > 0.0
    free = np.maximum(np.maximum(n - 1.0, 0.0).sum(axis=(0, 1)), 1.0)
    variance = np.nansum((hours - mean[group]) ** 2, axis=(0, 1)) / free
    noise = variance / np.maximum(n, 1.0)
    excess = np.where(seen, mean**2 - noise, 0.0).sum(axis=(0, 1))
    between = np.maximum(excess / np.maximum(seen.sum(axis=(0, 1)), 1), 0.0)
    return np.where(seen & (between > 0.0), between / np.maximum(between + noise, 1e-300), 0.0)


def _is_sure(gains: FloatArray, unit: FloatArray, fewest: int, before: Mask) -> Mask:
    """Return for which fields (d,) the ``gains`` of predicted blocks (k, d) are sure and large."""
    k = len(gains)
    if k < fewest:
        return np.zeros(gains.shape[1], np.bool_)
    mean = gains.mean(axis=0)
    error = gains.std(axis=0, ddof=1) / np.sqrt(k)
    least = GAIN * unit * np.where(before, 0.25, 1.0)
    errors = np.where(before, DOUBTFUL, stdtrit(k - 1, 1.0 - CHANCE))  # Student's t
    sure: Mask = (mean > least) & (mean > errors * error)
    return sure


def without_days(hours: FloatArray) -> FloatArray:
    """Return hours (j, 24, d) less the level of each day, which may have missing hours."""
    of_hours = median(hours)
    of_days = median(np.moveaxis(hours - (of_hours - middle(of_hours)), 1, 0))
    return hours - of_days[:, None]


def middle(values: FloatArray) -> FloatArray:
    """Return the mean over the first axis of the values that are not NaN, 0 without any."""
    n = np.count_nonzero(~np.isnan(values), axis=0)
    return np.asarray(np.nansum(values, axis=0) / np.maximum(n, 1))


def median(values: FloatArray) -> FloatArray:
    """Return the median over the first axis of the values that are not NaN, NaN without any."""
    if len(values) == 0:
        return np.full(values.shape[1:], np.nan)
    k = np.count_nonzero(~np.isnan(values), axis=0)[None]
    ordered = np.sort(values, axis=0)
    lower = np.take_along_axis(ordered, np.maximum(k - 1, 0) // 2, axis=0)
    upper = np.take_along_axis(ordered, np.minimum(k // 2, len(values) - 1), axis=0)
    return np.asarray((lower + upper)[0] / 2.0)
