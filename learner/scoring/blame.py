"""Which fields make a record unlikely, the most to blame first."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, Self

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.protocol import Comparable, of_rows

from .wrong_fields import FAR, Comparison, IsUsual, compare, compare_without, several_wrong_fields

LEAST = 3.0
"""Nats beyond the usual, 2.6 standard deviations, from which on a field is blamed beside another.
Next to a value that is off by 1e9 deviations, a log-density has no digits left for other fields."""


class Blame(NamedTuple):
    """The fields of k records and which are to blame, (k, d) each.

    A field to blame is compared with the fields that are not to blame, so that nothing is expected
    because of a wrong value. ``nats``, ``usual``, ``expected`` and ``deviation`` are NaN for fields
    that are not to blame.

    Attributes
    ----------
    order
        Column numbers: first the fields to blame, the most unusual first, missing fields last.
    n_blamed
        Number of fields to blame (k,).
    value
        The record's values.
    nats
        -log p(x_i | the fields that are not to blame); of a stuck field, with the evidence for it.
    usual
        The mean of ``nats`` if x_i agrees with these fields: the entropy of a Gaussian with the
        standard deviation ``deviation``.
    expected, deviation
        Mean and standard deviation of the field given these fields.
    extrapolated
        Whether ``expected`` is outside the range of the field's values so far.
    """

    order: IntArray
    n_blamed: IntArray
    value: FloatArray
    nats: FloatArray
    usual: FloatArray
    expected: FloatArray
    deviation: FloatArray
    extrapolated: Mask

    @property
    def excess(self) -> FloatArray:
        """Nats (k, d) beyond the usual."""
        return self.nats - self.usual

    def of(self, which: Mask | IntArray) -> Self:
        """Return the blame of some of the records."""
        return type(self)._make(column[which] for column in self)

    def without_fields(self) -> Self:
        """Return the blame of records that have no fields."""
        none = type(self)._make(part[:, :0] if part.ndim == 2 else part for part in self)
        return none._replace(n_blamed=np.zeros_like(self.n_blamed))

    @classmethod
    @cache
    def none(cls, d: int) -> Self:
        """Return the blame of no records."""
        numbers, order = np.empty((0, d)), np.empty((0, d), np.int64)
        return cls(
            order, order.sum(axis=1), numbers, numbers, numbers, numbers, numbers, numbers > 0.0
        )

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Join the blame of several calls."""
        if len(parts) == 1:  # most blocks have no anomaly
            return parts[0]
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def blame(
    learner: Comparable,
    rows: FloatArray,
    score: FloatArray,
    alone: FloatArray,
    is_usual: IsUsual,
    stuck: FloatArray | None = None,
) -> Blame:
    """Blame the fewest fields of each row (k, d) without which the rest of it is usual.

    ``score`` (k,) is the log-density of the rows. ``alone`` (k, d) are the nats by which each value
    exceeds the usual if nothing else is known. ``stuck`` (k, d) is the evidence, in nats, of fields
    that are stuck, 0 for others: where there are any, these are blamed whatever their density.
    Else at least one field of each row is blamed, the one that exceeds the usual by most. Fields
    ``FAR`` from their mean are blamed as well if they are far from what the rest says: in heavy
    tails, the log-density does not show each of them.
    ``extrapolated`` is False everywhere: the learner does not know the range of values.
    """
    found = compare(learner, rows)
    wrong, highest = _worst(found.excess)
    stuck = np.zeros(rows.shape) if stuck is None else stuck
    is_stuck = stuck > 0.0
    known = is_stuck.any(axis=1)
    wrong[known] = is_stuck[known]
    several = ~known & ~is_usual(score + highest) & (~np.isnan(rows) & ~wrong).any(axis=1)
    if several.any():
        wrong[several] = several_wrong_fields(
            of_rows(learner, several), rows[several], score[several], found.excess[several],
            alone[several], is_usual,
        )  # fmt: skip
    far = alone > FAR
    again = known | several | (far & ~wrong).any(axis=1)
    _compare_again(learner, rows, wrong, again, found)
    added = again[:, None] & far & ~wrong & (found.excess > FAR)
    wrong |= added
    _compare_again(learner, rows, wrong, np.asarray(added.any(axis=1)), found)
    excess = found.excess + stuck
    worst, _ = _worst(np.where(wrong, excess, np.nan))
    cleared = wrong & ~(is_stuck | worst | (excess > LEAST))
    wrong &= ~cleared
    _compare_again(learner, rows, wrong, np.asarray(cleared.any(axis=1)), found)
    found = found._replace(nats=found.nats + stuck)
    order = np.lexsort([-found.excess, np.isnan(rows), ~wrong], axis=1)
    nats, usual, expected, deviation = (np.where(wrong, column, np.nan) for column in found)
    return Blame(
        order,
        wrong.sum(axis=1),
        rows.copy(),
        nats,
        usual,
        expected,
        deviation,
        np.zeros_like(wrong),
    )


def undo_blame(blame: Blame, units: FloatArray) -> Blame:
    """Return the blame of rows in other units in those of the fields.

    ``units`` (k, d, .) begin with shift and ratio: a value is the shift plus the ratio times the
    one here.
    """
    shift, ratio = units[..., 0], units[..., 1]
    slope = -np.log(ratio)
    return blame._replace(
        value=shift + blame.value * ratio,
        nats=blame.nats - slope,
        usual=blame.usual - slope,
        expected=shift + blame.expected * ratio,
        deviation=blame.deviation * ratio,
    )


def expectation(
    learner: Comparable, rows: FloatArray, score: FloatArray, alone: FloatArray, is_usual: IsUsual
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation (k, d) of each field given others of its row.

    The others are those that are not to blame, if a row (k, d) with this log-density ``score`` (k,)
    is not usual. ``alone`` (k, d) are the nats by which each value exceeds the usual if nothing
    else is known.
    """
    rest, unusual = rows.copy(), ~is_usual(score)
    if unusual.any():
        some = of_rows(learner, unusual)
        found = blame(some, rows[unusual], score[unusual], alone[unusual], is_usual)
        rest[unusual] = np.where(np.isnan(found.nats), rows[unusual], np.nan)
    compared = compare(learner, rest)
    return compared.expected, compared.deviation


def _compare_again(
    learner: Comparable, rows: FloatArray, wrong: Mask, again: Mask, found: Comparison
) -> None:
    """Replace what was ``found`` for some of the rows, without their wrong fields."""
    if again.any():
        new = compare_without(of_rows(learner, again), rows[again], wrong[again])
        for column, replacement in zip(found, new, strict=True):
            column[again] = replacement


def _worst(excess: FloatArray) -> tuple[Mask, FloatArray]:
    """Return the field (k, d) that exceeds the usual by most, and by how much (k,)."""
    ranked = np.where(np.isnan(excess), -np.inf, excess)
    worst = np.zeros(excess.shape, np.bool_)
    worst[np.arange(len(excess)), ranked.argmax(axis=1)] = True
    return worst & ~np.isnan(excess), ranked.max(axis=1)
