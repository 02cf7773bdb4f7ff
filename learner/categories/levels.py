"""What numbers are like given a category: the level and the spread of each field for each value.

A category is one field, or two fields as one (`effects`). Levels and spreads of values with few
records are drawn to what values are like, by the variances within and between them, as in a model
with random effects.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.state import MOST_RECORDS
from faust_oslrau.learner.state_schema import LARGEST, LARGEST_LEARNED, Entry, read
from faust_oslrau.learner.stored import Places
from faust_oslrau.learner.vector.compiler import Array, kernel

from .tree import NONE
from .values import MOST_SLOTS

PRIOR_RECORDS = 4.0
"""Records that the variance within all values counts for in that of one value."""

LEAST_RATIO = 1e-3
"""Least ratio of the spreads of two values, so that densities of one that never varied are
bounded."""

TINY = 1e-300

ALL = 0
"""Row of all records, above those of the slots."""

_COUNT, _MEAN, _SQUARES = range(3)

_LEVELS = {
    "moments": Entry(
        (3, "r", "d"),
        np.reshape([0.0, -LARGEST_LEARNED, 0.0], (3, 1, 1)),
        np.reshape([MOST_RECORDS, LARGEST_LEARNED, LARGEST], (3, 1, 1)),
    ),
    "parents": Entry(("d",), NONE, MOST_SLOTS, "<i8"),
}


class Units(NamedTuple):
    """What each slot does to each number: shift, ratio and its logarithm (s + 1, d, 3).

    A number is the shift plus the ratio times what it would be if its category were an average one.
    The last row is that where the category is missing. The ``spread`` (d,) is the deviation from
    the ``centre`` (d,) with an average category.
    """

    table: FloatArray
    centre: FloatArray
    spread: FloatArray


class Levels:
    """Number, mean and sum of squares of each field, of all records and of those of each slot.

    Attributes
    ----------
    parent
        The category (d,) that tells most of each field, `NONE` for none.
    """

    def __init__(self, s: int, d: int) -> None:
        self._moments = np.zeros((3, 1 + s, d))
        self.parent = np.full(d, NONE)

    @property
    def n_fields(self) -> int:
        """Number of the fields."""
        return self._moments.shape[2]

    def resize(self, s: int) -> None:
        """Make room for ``s`` slots."""
        more = 1 + s - self._moments.shape[1]
        if more > 0:
            self._moments = np.pad(self._moments, ((0, 0), (0, more), (0, 0)))

    def clear(self, slots: IntArray) -> None:
        """Forget what is known of slots that have another value now."""
        self._moments[:, 1 + slots] = 0.0

    def add_fields(self, places: Places) -> None:
        """Make room for more fields, of which no category tells."""
        self._moments = places.widened(self._moments, 2, 0.0)
        self.parent = places.widened(self.parent, 0, NONE)

    def leave_out(self, which: Mask) -> None:
        """Forget some slots (s,)."""
        self._moments = np.delete(self._moments, 1 + np.flatnonzero(which), axis=1)

    def add_slots(self, slots: Places) -> None:
        """Make room for the slots of more categories."""
        rows = Places(np.append(ALL, 1 + slots.old), 1 + slots.n)
        self._moments = rows.widened(self._moments, 1, 0.0)

    def clear_fields(self, which: Mask) -> None:
        """Forget all that is known of some of the fields (d,); no category tells of them."""
        self._moments[..., which] = 0.0
        self.parent[which] = NONE

    def take_over(self, other: Levels, which: Mask) -> None:
        """Let some of the fields (d,) be what they are in another one of as many slots."""
        self._moments[..., which] = other._moments[..., which]
        self.parent[which] = other.parent[which]

    def forget(self, share: float) -> None:
        """Reduce all weights to a share of themselves."""
        self._moments[[_COUNT, _SQUARES]] *= share

    def learn(self, X: FloatArray, slots: IntArray) -> None:
        """Learn the numbers (m, d) of rows with these slots (m, c)."""
        add_moments(X, slots, self._moments)

    def choose_parent(self, field: IntArray, of: Mask, taken: IntArray) -> Mask:
        """Choose the category whose values tell most of each field; return which (d,) changed.

        That raises the likelihood of the log most, by more than its two parameters for each value
        cost. It is one ``of`` some (c,), not one of those ``taken`` (r, d).
        """
        gain = np.zeros((len(of), self.n_fields))
        fill_gains(self._moments, field, gain)
        gain[~of] = 0.0
        for others in taken:
            gain[others, np.arange(self.n_fields)] *= others == NONE
        before, best = self.parent, gain.argmax(axis=0)
        self.parent = np.where(gain.max(axis=0) > 0.0, best, NONE)
        return np.asarray(self.parent != before)

    def units(self, field: IntArray) -> Units:
        """Return the units of each number given the slots of its parent; others change nothing."""
        count, centre, squares = self._moments[:, ALL]
        within, between = variances(self._moments, field, self.parent)
        spread = np.sqrt(np.where(self.parent == NONE, squares / np.maximum(count, 1.0), within))
        table = np.empty((len(field) + 1, self.n_fields, 3))
        fill_units(self._moments, field, self.parent, within, between, table)
        return Units(table, centre, spread)

    def state(self, prefix: str) -> Arrays:
        """Return the arrays that ``restore`` needs."""
        return {prefix + "moments": self._moments, prefix + "parents": self.parent}

    def restore(self, arrays: Arrays, prefix: str, s: int, c: int) -> None:
        """Restore a state of ``s`` slots of ``c`` categories; StateError if it cannot be one."""
        d = self.n_fields
        self._moments, self.parent = read(arrays, _LEVELS, prefix, r=1 + s, d=d)
        if (self.parent >= c).any():
            raise StateError("state: expected the parents of fields")


@kernel
def variances(moments: Array, field: Array, of: Array) -> Array:
    """Return the variances (2, d) of numbers within and between the values of a category.

    That is the field ``of`` (d,) for each number; none has no values. Slots are of a ``field``
    (s,), ``moments`` (3, 1 + s, d) those of all records and of each slot.
    """
    result = np.zeros((2, len(of)))
    for j in range(len(of)):
        total, centre, within, between, values = 0.0, 0.0, 0.0, 0.0, 0
        for slot in range(len(field)):
            if field[slot] == of[j]:
                n, mean, squares = moments[:, 1 + slot, j]
                total += n
                centre += n * mean
                within += squares
                values += n >= 1.0
        total = max(total, TINY)
        centre /= total
        within /= total
        for slot in range(len(field)):
            if field[slot] == of[j]:
                n, mean, _ = moments[:, 1 + slot, j]
                between += n * (mean - centre) ** 2
        result[0, j] = within
        result[1, j] = max(between / total - within * max(values - 1, 0) / total, 0.0)
    return result


@kernel
def fill_gains(moments: Array, field: Array, gain: Array) -> None:
    """Fill in by how much each category raises the log-likelihood of each number (c, d).

    Less two parameters for each value.
    """
    for f in range(gain.shape[0]):
        within, between = variances(moments, field, np.full(gain.shape[1], f))
        for j in range(gain.shape[1]):
            records, values, nats = 0.0, 0, 0.0
            for slot in range(len(field)):
                if field[slot] == f:
                    n, _, squares = moments[:, 1 + slot, j]
                    records += n
                    values += n >= 1.0
                    variance = (squares + PRIOR_RECORDS * within[j]) / (n + PRIOR_RECORDS)
                    if variance > 0.0:
                        nats += 0.5 * n * math.log((within[j] + between[j]) / variance)
            if values > 1:
                gain[f, j] = nats - (values - 1) * math.log(max(records, 2.0))


@kernel
def fill_units(
    moments: Array, field: Array, parent: Array, within: Array, between: Array, table: Array
) -> None:
    """Fill the ``table`` (s + 1, d, 3) of `Units`.

    ``within`` and ``between`` (d,) are the `variances` of the number's ``parent``.
    """
    for slot in range(len(table)):
        for j in range(len(parent)):
            n, mean, squares = 0.0, 0.0, 0.0  # a category that is missing, as one never seen
            if slot < len(field) and field[slot] == parent[j]:
                n, mean, squares = moments[:, 1 + slot, j]
            share = n * between[j] / max(n * between[j] + within[j], TINY)
            variance = (squares + PRIOR_RECORDS * within[j]) / (n + PRIOR_RECORDS)
            ratio = math.sqrt((variance + (1.0 - share) * between[j]) / max(within[j], TINY))
            ratio = min(max(ratio, LEAST_RATIO), 1.0 / LEAST_RATIO) if within[j] > 0.0 else 1.0
            centre = moments[_MEAN, ALL, j]
            table[slot, j, 0] = centre + share * (mean - centre) - ratio * centre
            table[slot, j, 1] = ratio
            table[slot, j, 2] = math.log(ratio)


@kernel
def add_moments(X: Array, slots: Array, moments: Array) -> None:
    """Add rows (m, d) to the ``moments`` (3, 1 + s, d) of all records and of their slots (m, c).

    One after the other, as Welford (1962) does.
    """
    for i in range(X.shape[0]):
        for f in range(-1, slots.shape[1]):
            row = ALL if f < 0 else 1 + slots[i, f]  # that of all records where it is missing
            if f >= 0 and row == ALL:
                continue
            for j in range(X.shape[1]):
                if X[i, j] == X[i, j]:
                    moments[_COUNT, row, j] += 1.0
                    shift = X[i, j] - moments[_MEAN, row, j]
                    moments[_MEAN, row, j] += shift / moments[_COUNT, row, j]
                    moments[_SQUARES, row, j] += shift * (X[i, j] - moments[_MEAN, row, j])


@kernel
def add_units(slots: Array, parent: Array, table: Array, units: Array) -> None:
    """Put shift and ratio of the ``table`` (s + 1, d, 3) inside ``units`` (m, d, 3).

    Those of each record's slot (m, c) of the ``parent`` (d,) of each number; the last where it is
    missing.
    """
    for i in range(slots.shape[0]):
        for j in range(len(parent)):
            if parent[j] >= 0:
                shift, ratio, log_ratio = table[slots[i, parent[j]], j]
                units[i, j, 0] += units[i, j, 1] * shift
                units[i, j, 1] *= ratio
                units[i, j, 2] += log_ratio


@kernel
def in_units(X: Array, units: Array) -> tuple[Array, Array]:
    """Return numbers (m, d) in ``units`` (m, d, 3), and the sums (m,) of their log-slopes."""
    rows, log_jacobian = np.empty(X.shape), np.zeros(len(X))
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            rows[i, j] = (X[i, j] - units[i, j, 0]) / units[i, j, 1]
            if X[i, j] == X[i, j]:
                log_jacobian[i] -= units[i, j, 2]
    return rows, log_jacobian


@kernel
def remainder(X: Array, known: Array, slots: Array, parent: Array, table: Array) -> Array:
    """Return what an effect leaves of numbers (m, d), as the ``table`` (s + 1, d, 3) has it.

    What is left where the ``parent`` (d,) is missing in ``slots`` (m, c) tells nothing of the next
    effect: NaN. Those of ``known`` (m, c) are missing also where they are new.
    """
    rows = X.copy()
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if parent[j] >= 0:
                shift, ratio, _ = table[known[i, parent[j]], j]
                is_known = slots[i, parent[j]] >= 0
                rows[i, j] = (X[i, j] - shift) / ratio if is_known else np.nan
    return rows
