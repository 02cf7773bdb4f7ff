"""Measures of records with missing fields, made comparable with those of complete records.

A record that lacks fields has fewer terms in its log-density, and in every other sum over fields.
So its measures have another level and a smaller spread. The difference of levels is measured:
recent rows are measured as they are and with the same fields left out. The spread is that of
Gaussians, whose log-density over k fields has a standard deviation proportional to sqrt(k).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError

FloatArray = NDArray[np.float64]
Measure = Callable[[FloatArray], FloatArray]
"""Takes rows (m, d), gives k measures of each (m, k)."""

MEASURED_ROWS = 64
"""Rows that a loss is measured on: its error is then at most an eighth of a measure's spread."""

LOSSES_PER_BATCH = 8
"""Most losses measured in one learning batch: 512 rows, twice the usual batch. Others are estimated
from those measured before."""

LONGEST = 16_384
"""Records after which a loss is measured again and averaged with the old one. Near the start of a
stream it is measured again once the number of records has doubled."""

STEP = 0.5
"""Share of the error of an estimated loss by which its fields' worth is corrected."""

WIDEST = 2.0
"""Largest factor by which measures are spread, however few fields a record has."""


class Missing:
    """What each pattern of missing fields takes from each measure.

    The loss of a log-density is log p(all fields) - log p(observed fields), on average. A loss is
    measured when a pattern of missing fields first occurs; nothing is measured while records are
    complete. Which losses are measured depends on the order of the records alone.

    Attributes
    ----------
    rows
        The most complete recent records (k, d), k <= MEASURED_ROWS, oldest first.
    masks
        Patterns whose loss was measured (p, d), 1 = missing, in the order of measuring.
    losses, born
        Their losses (p, k), and the records at the boundary before each was measured (p,).
    worth
        What each field adds to the losses (d, k), for patterns that were not measured.
    left
        Losses that may still be measured before the next boundary.
    """

    def __init__(self) -> None:
        self.rows = np.empty((0, 0))
        self.masks = np.empty((0, 0), np.uint8)
        self.losses = np.empty((0, 0))
        self.born = np.empty(0, np.int64)
        self.worth = np.empty((0, 0))
        self.left = LOSSES_PER_BATCH
        self.boundary = 0
        self._known: dict[bytes, int] = {}

    def complete(self, rows: FloatArray, measures: FloatArray, measure: Measure) -> FloatArray:
        """Return what the ``measures`` (m, k) of ``rows`` (m, d) would be with all fields.

        ``measure`` measures any rows.
        """
        missing = np.isnan(rows)
        if not missing.any() or len(self.rows) == 0:
            return measures
        result = measures.copy()
        for i in np.flatnonzero(missing.any(axis=1)).tolist():
            result[i] += self._loss(missing[i], measure)
        return result

    def update(self, rows: FloatArray, boundary: int) -> None:
        """Add the usual rows of a learning batch that ends after ``boundary`` records."""
        if len(self.rows) == 0:
            self.rows, self.masks = rows[:0], np.empty((0, rows.shape[1]), np.uint8)
        self.rows = most_complete(np.concatenate([self.rows, rows]))
        for measured in np.flatnonzero(self.born == self.boundary).tolist():
            self._correct(self.masks[measured], self.losses[measured])
        self.left, self.boundary = LOSSES_PER_BATCH, boundary
        if len(self.born) == 0:
            return
        latest = np.zeros(len(self.born), np.bool_)
        latest[list(self._known.values())] = True
        young = boundary - self.born <= 2 * np.minimum(self.born, LONGEST)
        self._select(latest & young)

    def restore(
        self,
        rows: FloatArray,
        masks: NDArray[np.uint8],
        losses: FloatArray,
        born: NDArray[np.int64],
        worth: FloatArray,
        left: int,
        boundary: int,
    ) -> None:
        """Restore a state; StateError if it cannot be one."""
        if rows.ndim != 2 or masks.shape[1:] != rows.shape[1:]:
            raise StateError("state: expected patterns of as many fields as there are")
        if masks.shape[:1] != losses.shape[:1] or losses.shape[:1] != born.shape:
            raise StateError("state: expected losses for each pattern of missing fields")
        if losses.ndim != 2 or len(worth) not in (0, rows.shape[1]) or worth.ndim != 2:
            raise StateError("state: expected what each field is worth to each measure")
        if len(losses) > 0 and (len(worth) == 0 or len(rows) == 0):
            raise StateError("state: expected the records that losses were measured with")
        if np.isinf(rows).any() or any(
            np.isinf(each).any() or np.isnan(each[:, :1]).any() for each in (losses, worth)
        ):
            raise StateError("state: expected finite losses, of finite records")
        self.rows, self.masks, self.losses, self.born = rows, masks, losses, born
        self.worth, self.left, self.boundary = worth, left, boundary
        self._select(np.ones(len(born), np.bool_))

    def _select(self, which: NDArray[np.bool_]) -> None:
        self.masks, self.losses = self.masks[which], self.losses[which]
        self.born = self.born[which]
        self._known = {mask.tobytes(): i for i, mask in enumerate(self.masks)}

    def _loss(self, missing: NDArray[np.bool_], measure: Measure) -> FloatArray:
        mask = missing.astype(np.uint8)
        at = self._known.get(mask.tobytes())
        if at is not None and self.boundary - self.born[at] <= min(self.born[at], LONGEST):
            return np.asarray(self.losses[at], np.float64)
        if self.left > 0:
            return self._note(mask, self._measure(missing, measure), at)
        return np.asarray(
            self.worth[missing].sum(axis=0) if at is None else self.losses[at], np.float64
        )

    def _measure(self, missing: NDArray[np.bool_], measure: Measure) -> FloatArray:
        """Return the loss of fields; those that rows lack already are assumed to lose as much."""
        left_out = self.rows.copy()
        left_out[:, missing] = np.nan
        taken = np.count_nonzero(np.isnan(left_out) & ~np.isnan(self.rows))
        total = (measure(self.rows) - measure(left_out)).sum(axis=0)
        return np.asarray(total * int(np.count_nonzero(missing)) / max(taken, 1), np.float64)

    def _note(self, mask: NDArray[np.uint8], loss: FloatArray, old: int | None) -> FloatArray:
        if old is not None:
            loss = (loss + self.losses[old]) / 2.0
        if len(self.worth) == 0:
            self.worth = np.zeros((len(mask), len(loss)))
        self.left -= 1
        self._known[mask.tobytes()] = len(self.losses)
        self.masks = np.concatenate([self.masks, mask[None]])
        self.losses = np.concatenate([self.losses.reshape(-1, len(loss)), loss[None]])
        self.born = np.append(self.born, self.boundary)
        return loss

    def _correct(self, mask: NDArray[np.uint8], loss: FloatArray) -> None:
        """Correct the worth of a pattern's fields by normalised least mean squares."""
        missing = mask.astype(bool)
        error = loss - self.worth[missing].sum(axis=0)
        self.worth[missing] += STEP * error / int(np.count_nonzero(missing))


def stretch(rows: FloatArray) -> FloatArray | None:
    """Return how much further (m,) measures of rows (m, d) would spread with all fields.

    None where no field is missing.
    """
    missing = np.isnan(rows)
    if not missing.any():
        return None
    d = rows.shape[1]
    observed = d - np.count_nonzero(missing, axis=1)
    factor = np.minimum(np.sqrt(d / np.maximum(observed, 1)), WIDEST)
    return np.where(observed > 0, factor, 1.0)


def most_complete(rows: FloatArray) -> FloatArray:
    """Return the last ``MEASURED_ROWS`` of the rows with the fewest missing fields, in order."""
    if not np.isnan(rows[-MEASURED_ROWS:]).any():
        return rows[-MEASURED_ROWS:]
    lacking = np.isnan(rows).sum(axis=1)[::-1]
    chosen = len(rows) - 1 - np.argsort(lacking, kind="stable")[:MEASURED_ROWS]
    return rows[np.sort(chosen)]
