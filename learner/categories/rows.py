"""Rows with categories: as they were given, and as the layers after the categories have them."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.state import MOST_RECORDS
from faust_oslrau.learner.state_schema import expect

from .values import MISSING

BESIDE = 3
"""Columns beside those of a row that waits to be learned: see `Given`."""


class CategoricalRows(NamedTuple):
    """Rows of m records, their numbers as they would be with average categories.

    Attributes
    ----------
    rows
        The numbers (m, d).
    of_categories
        The log-probability of the categories, what it is on average, and that of one as rare as the
        rarest (m, 3). Where one is missing on which numbers depend, the log-weight of `likeliest`
        for the first.
    log_jacobian
        Sum (m,) of the logarithms of the observed numbers' slopes.
    units
        Shift, ratio and its logarithm of each number (m, d, 3): a value is the shift plus the ratio
        times the one here.
    slots
        The slots of the categories, and the entity (m, c + 1); units are those of the likeliest
        where one is missing.
    """

    rows: FloatArray
    of_categories: FloatArray
    log_jacobian: FloatArray
    units: FloatArray
    slots: IntArray

    @property
    def log_probability(self) -> FloatArray:
        """The log-probability (m,) of the categories, or their log-weight."""
        return self.of_categories[:, 0]


class Given(NamedTuple):
    """Rows (m, d + c) as they were given, and of what they are.

    Attributes
    ----------
    slots, fresh
        The slots (m,) of their entities, `MISSING` for none, and which are new there (m,).
    times
        Their time stamps (m,) in milliseconds, negative for none.
    """

    rows: FloatArray
    slots: IntArray
    fresh: Mask
    times: IntArray

    @classmethod
    def of(cls, columns: FloatArray) -> Self:
        """Return the rows of such columns (m, d + c + `BESIDE`)."""
        slots, fresh, times = columns[:, -BESIDE:].T.astype(np.int64)
        return cls(columns[:, :-BESIDE], slots, fresh > 0, times)


def check_given(columns: FloatArray, held: int = MOST_RECORDS) -> None:
    """Raise StateError if columns (m, d + c + `BESIDE`) are not those of rows as given.

    Of so many entities that are ``held``.
    """
    slots, _, times = columns[:, -BESIDE:].T
    is_slot = (slots >= MISSING) & (slots < held)
    expect((is_slot & (np.abs(times) < MOST_RECORDS)).all(), "the entities and times of rows")


def nobody(m: int) -> tuple[IntArray, Mask]:
    """Return the slots (m,) of records of no entity, and which are new there."""
    return np.full(m, MISSING), np.zeros(m, np.bool_)
