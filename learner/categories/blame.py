"""Which categories make a record unlikely, given its other categories."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.scoring.blame import LEAST, Blame

from .layer import Categories
from .values import MISSING


class ComparedCategories(NamedTuple):
    """The categories of k records given those of each that are not to blame, (k, c) each.

    Attributes
    ----------
    wrong
        The categories to blame.
    nats
        -log p(category | the others), NaN for one that is not to blame.
    usual
        The nats of the category that is most likely given the others, of those told apart.
    expected
        The value of that category, NaN if none is told apart.
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


def compare_categories(
    categories: Categories, slots: IntArray, X: FloatArray
) -> ComparedCategories:
    """Blame the categories of records with these slots that the others make unlikely.

    One after the other, so that nothing is expected because of a wrong category: each time the one
    without which the record is most likely, with its numbers (k, d).
    """
    k, c = len(slots), categories.c
    nothing = np.full((3, k, c), np.nan)
    rest, found = slots.copy(), ComparedCategories(np.zeros((k, c), np.bool_), *nothing)
    for _ in range(c):
        unlikely, nats, usual, expected = _compare(categories, rest, X)
        excess = np.where(unlikely, nats - usual, -np.inf)
        worst = excess.argmax(axis=1)
        row = np.flatnonzero(unlikely.any(axis=1))
        if len(row) == 0:
            break
        at = row, worst[row]
        found.wrong[at] = True
        found.nats[at], found.usual[at], found.expected[at] = nats[at], usual[at], expected[at]
        rest[at] = MISSING
    return found


def _compare(
    categories: Categories, slots: IntArray, X: FloatArray
) -> tuple[Mask, FloatArray, FloatArray, FloatArray]:
    """Return which categories (k, c) the others make unlikely.

    And nats, nats of the most likely value, and that value, given the other categories and X.
    """
    shape = len(slots), categories.c
    nats, usual, expected = np.full((3, *shape), np.nan)
    unlikely, row = np.zeros(shape, np.bool_), np.arange(len(slots))
    for f, (of, alone, log_p) in enumerate(categories.given_others(slots, X)):
        at = np.minimum(np.searchsorted(of, slots[:, f]), len(of) - 1)
        unlikely[:, f] = (alone.max(axis=1) - alone[row, at] > LEAST) & (slots[:, f] != MISSING)
        likely = log_p[:, 1:].argmax(axis=1) + 1 if len(of) > 1 else np.zeros(len(slots), np.int64)
        nats[:, f], usual[:, f] = -log_p[row, at], -log_p[row, likely]
        expected[:, f] = categories.counts.values.codes[of[likely]]
    return unlikely, nats, usual, expected
