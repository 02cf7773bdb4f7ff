"""Fields that come late: the network is learned anew from rows that have them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.state_schema import Entry, flags
from faust_oslrau.learner.stored import Stored

EARLY = 512
"""Records of a stream after which a field that is new in it is late."""

ENOUGH = 4096
"""Rows from which the network is learned anew."""


class LateFields(Stored):
    """Which fields a stream has, and the rows learned since the last late one came.

    A field is there once half of a learning batch have it; in the first records, once one has.

    Attributes
    ----------
    rows
        The rows (n, columns) as the learner was given them, oldest first.
    """

    schema: ClassVar = {
        "_there": flags("d"),
        "_is_awaited": flags(1),
        "rows": Entry(("n", "columns"), nan=True),
    }
    prefix = "late_"

    def __init__(self) -> None:
        self._there = np.empty(0, np.bool_)
        self._is_awaited = False
        self.rows = np.empty((0, 0))

    def update(self, rows: FloatArray, n: int) -> None:
        """Look at a learning batch (m, d) that ends with the ``n``-th record of the stream."""
        m, d = rows.shape
        before = self._there if self._there.size else np.zeros(d, np.bool_)
        observed = np.count_nonzero(~np.isnan(rows), axis=0)
        self._there = before | (observed > (0 if n <= EARLY else m // 2))
        if n > EARLY and (self._there != before).any():
            self.forget_rows()
            self._is_awaited = True

    @property
    def are_kept(self) -> bool:
        """Whether rows are kept, as there has been a late field."""
        return self._is_awaited

    def keep(self, rows: FloatArray) -> None:
        """Keep rows (m, columns) that are learned, if there has been a late field."""
        if self._is_awaited and len(rows) > 0:
            self.rows = np.concatenate([self.rows.reshape(-1, rows.shape[1]), rows])

    @property
    def are_enough(self) -> bool:
        """Whether there are enough rows to learn the network anew."""
        return len(self.rows) >= ENOUGH

    def begin_anew(self) -> None:
        """Wait for nothing, as all is learned anew."""
        self._is_awaited = False
        self.forget_rows()

    def forget_rows(self) -> None:
        """Forget the rows so far, as units have changed."""
        self.rows = np.empty((0, 0))

    def restore(self, arrays: Arrays, d: int | None, columns: int | None) -> None:
        """Restore a state of ``d`` fields; StateError if it cannot be one.

        The learner is given rows with so many ``columns``.
        """
        self.read_state(arrays, d=(0, d or 0), n=range(ENOUGH), columns=(0, columns or 0))


class LateCategories(LateFields):
    """Which categories a stream has, and the rows learned since the last late one came.

    Numbers do not depend on a late one until these are enough: their units would change at once,
    and those of all that was learned of them.

    Attributes
    ----------
    rows
        The fields of rows as the learner was given them, and rows as `Given` (n, d + given).
    of
        Categories (c,) on which numbers may depend.
    """

    schema: ClassVar = {**LateFields.schema, "of": flags("d")}
    prefix = "late_category_"

    def __init__(self) -> None:
        super().__init__()
        self.of = np.empty(0, np.bool_)

    def update(self, rows: FloatArray, n: int) -> None:
        """Look at the categories (m, c) of a learning batch: see `LateFields`."""
        before = self.of if self.of.size else np.zeros(rows.shape[1], np.bool_)
        super().update(rows, n)
        self.of = before if self._is_awaited else self._there

    def begin_anew(self) -> None:
        """Wait for nothing, as all is learned anew."""
        super().begin_anew()
        self.of = self._there
