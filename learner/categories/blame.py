"""Which categories make a record unlikely, given its other categories."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.scoring.blame import LEAST, Blame

from .layer import Categories
from .values import MISSING

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]


class ComparedCategories(NamedTuple):
    """The categories of k records given those of each that are not to blame, (k, c) each.

    Attributes
    ----------
    wrong
        The categories to blame.
    nats
        -log p(category | the others), NaN for one that is not to blame.
    usual
        The nats of the category that is most likely given the others.
    expected
        The value of that category, NaN for one that has no slot of its own.
    """

    wrong: Mask
    nats: FloatArray
    usual: FloatArray
    expected: FloatArray

    @property
    def excess(self) -> FloatArray:
        """The nats (k,) beyond the usual of all categories to blame."""
        total: FloatArray = np.where(self.wrong, self.nats - self.usual, 0.0).sum(axis=1)
        return total

    def beside(self, blame: Blame, is_usual: Mask) -> Blame:
        """Return the blame of numbers (k, d) beside that of categories.

        ``is_usual`` (k,) tells which records are usual but for the categories to blame: no number
        of these is to blame.
        """
        innocent = is_usual & self.wrong.any(axis=1)
        wrong = np.column_stack([~np.isnan(blame.nats) & ~innocent[:, None], self.wrong])
        nothing = np.full(self.nats.shape, np.nan)

        def joined(numbers: FloatArray, categories: FloatArray) -> FloatArray:
            return np.where(wrong, np.column_stack([numbers, categories]), np.nan)

        nats, usual = joined(blame.nats, self.nats), joined(blame.usual, self.usual)
        return Blame(
            np.lexsort([-np.where(wrong, nats - usual, 0.0), ~wrong], axis=1),
            wrong.sum(axis=1),
            np.column_stack([blame.value, nothing]),
            nats,
            usual,
            joined(blame.expected, self.expected),
            joined(blame.deviation, nothing),
            np.column_stack([blame.extrapolated, np.zeros(nothing.shape, np.bool_)]),
        )


def compare_categories(categories: Categories, slots: IntArray) -> ComparedCategories:
    """Blame the categories of records with these slots (k, c) that the others make unlikely.

    One after the other, the most unlikely first, so that nothing is expected because of a wrong
    category.
    """
    k, c = slots.shape
    rest, found = (
        slots.copy(),
        ComparedCategories(np.zeros((k, c), np.bool_), *np.full((3, k, c), np.nan)),
    )
    for _ in range(c):
        nats, usual, expected = _compare(categories, rest)
        excess = np.where(rest == MISSING, -np.inf, nats - usual)
        worst = excess.argmax(axis=1)
        row = np.flatnonzero(excess[np.arange(k), worst] > LEAST)
        if len(row) == 0:
            break
        at = row, worst[row]
        found.wrong[at] = True
        found.nats[at], found.usual[at], found.expected[at] = nats[at], usual[at], expected[at]
        rest[at] = MISSING
    return found


def _compare(categories: Categories, slots: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return nats, nats of the most likely value, and that value (k, c) given the other fields."""
    nats, usual, expected = np.full((3, *slots.shape), np.nan)
    row = np.arange(len(slots))
    for f in range(slots.shape[1]):
        of, log_p = categories.slots_of(f), categories.given_others(slots, f)
        at = np.minimum(np.searchsorted(of, slots[:, f]), len(of) - 1)
        likely = log_p.argmax(axis=1)
        nats[:, f], usual[:, f] = -log_p[row, at], -log_p[row, likely]
        expected[:, f] = categories.values.codes[of[likely]]
    return nats, usual, expected
