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
    """The categories of k records given the other categories of each, (k, c) each.

    Attributes
    ----------
    nats
        -log p(category | the others), NaN where it is missing.
    usual
        The nats of the category that is most likely given the others.
    expected
        The value of that category, NaN for one that has no slot of its own.
    """

    nats: FloatArray
    usual: FloatArray
    expected: FloatArray

    @property
    def wrong(self) -> Mask:
        """The categories to blame."""
        return np.asarray(self.nats - self.usual > LEAST, np.bool_)

    @property
    def wrong_excess(self) -> FloatArray:
        """The nats (k,) beyond the usual of the categories to blame."""
        return np.where(self.wrong, self.nats - self.usual, 0.0).sum(axis=1)

    def beside(self, blame: Blame, is_usual: Mask) -> Blame:
        """Return the blame of numbers (k, d) beside that of categories.

        ``is_usual`` (k,) tells which records are usual but for the categories to blame: no number
        of these is to blame.
        """
        innocent = is_usual & self.wrong.any(axis=1)
        d = blame.nats.shape[1]
        wrong = np.column_stack([~np.isnan(blame.nats) & ~innocent[:, None], self.wrong])
        excess = np.column_stack([blame.excess, self.nats - self.usual])
        is_missing = np.column_stack([np.isnan(blame.value), np.isnan(self.nats)])
        nothing = np.full(self.nats.shape, np.nan)

        def joined(numbers: FloatArray, categories: FloatArray) -> FloatArray:
            return np.where(wrong, np.column_stack([numbers, categories]), np.nan)

        return Blame(
            np.lexsort([-np.where(wrong, excess, 0.0), is_missing, ~wrong], axis=1),
            wrong.sum(axis=1),
            np.column_stack([blame.value, nothing]),
            joined(blame.nats, self.nats),
            joined(blame.usual, self.usual),
            joined(blame.expected, self.expected),
            joined(blame.deviation, nothing),
            np.column_stack([blame.extrapolated, np.zeros(nothing.shape, np.bool_)]),
        )


def compare_categories(categories: Categories, slots: IntArray) -> ComparedCategories:
    """Compare each category of records with these slots (k, c) with their other categories."""
    k, c = slots.shape
    found = ComparedCategories(*np.full((3, k, c), np.nan))
    row = np.arange(k)
    for f in range(c):
        of, log_p = categories.slots_of(f), categories.given_others(slots, f)
        at = np.searchsorted(of, slots[:, f])
        likely = log_p.argmax(axis=1)
        known = slots[:, f] != MISSING
        found.nats[:, f] = np.where(known, -log_p[row, np.minimum(at, len(of) - 1)], np.nan)
        found.usual[:, f] = -log_p[row, likely]
        found.expected[:, f] = categories.values.codes[of[likely]]
    return found
