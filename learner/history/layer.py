"""History: rows beside the running means of their fields, so that a network learns both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.protocol import Comparable, RowDensities, Which, of_rows
from faust_oslrau.learner.scoring.blame import Blame
from faust_oslrau.learner.scoring.clock import DAY
from faust_oslrau.learner.scoring.ranking import share_of_batch
from faust_oslrau.learner.state_schema import LARGEST, POSITIVE, Entry, counts, expect
from faust_oslrau.learner.stored import SLOTS, Stored, doubled
from faust_oslrau.learner.typical import typical_distances

from .running_means import MEAN, WEIGHT, read_spans, take_means


class History(Stored):
    """Widens rows by running means, and takes the means out of what is said of the rows.

    A widened row (d + s d columns) is the row x, then for each of s spans the means h of its fields
    before it. The network learns p(x, h); as h is known before x, the density of a record given the
    past is p(x, h) / p(h). The means are context: they change with each record, after it was
    widened, whether it is learned or not. How far values may move them changes in ``update`` alone,
    which the scorer calls at learning boundaries.

    Parameters
    ----------
    spans
        How long the means remember, as `read_spans` takes them.
    centred
        Whether values lie around 0, as those in units of entities do.
    """

    schema: ClassVar = {
        "_means": Entry((SLOTS, "s", "d", 2), [-LARGEST, 0.0]),  # mean and weight
        "_last": Entry((SLOTS,), dtype="<i8", new=-1),
        "_spread": Entry(("s", "w"), POSITIVE, np.inf, field=np.inf),
        "_records": counts(1),
    }
    prefix = "history_"

    def __init__(self, spans: Sequence[str], *, centred: bool = False) -> None:
        self.names = tuple(spans)
        self._spans = read_spans(self.names)
        self._centred = centred
        self._means = np.empty((0, len(spans), 0, 2))
        self._last = np.empty(0, np.int64)
        self._spread = np.empty((len(spans), 0))
        self._records = 0

    @property
    def is_timed(self) -> bool:
        """Whether the means depend on the records' time stamps."""
        return any(span.timed for span in self._spans)

    def n_columns(self, d: int) -> int:
        """Return the number of columns of widened rows of ``d`` fields."""
        return d * (1 + len(self._spans))

    def n_fields(self, n_columns: int) -> int:
        """Return the number of fields of widened rows with so many columns; StateError for none."""
        d, left = divmod(n_columns, 1 + len(self._spans))
        expect(not left, "running means of each field in each record")
        return d

    def take(self, rows: FloatArray, slots: IntArray, fresh: Mask, times: IntArray) -> FloatArray:
        """Return the next rows (m, d) widened, and add them to the means of their ``slots`` (m,).

        ``fresh`` (m,) says which rows begin anew in their slot, ``times`` (m,) are time stamps in
        milliseconds, negative for none.
        """
        m, d = rows.shape
        if self._spread.shape[1] == 0:
            self._spread = np.full((len(self._spans), d), np.inf)
        room = doubled(len(self._last), int(slots.max(initial=-1)) + 1)
        self.reserve(room, s=len(self._spans), d=d)
        result = np.empty((m, self.n_columns(d)))
        result[:, :d] = rows
        take_means(
            rows, slots, fresh, np.ascontiguousarray(times),
            np.array([span.length for span in self._spans]),
            np.array([span.timed for span in self._spans]),
            self._spread, self._centred, self._means, self._last, result,
        )  # fmt: skip
        return result

    def foresee(self, slots: IntArray, d: int) -> FloatArray:
        """Return the next row of each slot (k,) widened, its ``d`` own fields missing.

        A slot of -1 is one that nothing is known of.
        """
        result = np.full((len(slots), self.n_columns(d)), np.nan)
        if self._centred and self._spread.size > 0:
            result[:, d:] = np.where(self._spread.ravel() < np.inf, 0.0, np.nan)
        for row, slot in enumerate(slots.tolist()):
            if 0 <= slot < len(self._means):
                known = self._means[slot, :, :, WEIGHT].ravel() > 0.0
                result[row, d:][known] = self._means[slot, :, :, MEAN].ravel()[known]
        return result

    def past(self, widened: FloatArray) -> FloatArray:
        """Return widened rows without their own values: what is known before each record."""
        result = widened.copy()
        result[:, : self.n_fields(widened.shape[1])] = np.nan
        return result

    def own_fields(self, widened: FloatArray) -> FloatArray:
        """Return the rows (m, d) of widened ones."""
        own = widened[:, : self.n_fields(widened.shape[1])]
        return np.ascontiguousarray(own)  # kernels are compiled for no other layout

    def update(self, widened: FloatArray, now: int) -> None:
        """Learn from the widened rows of a learning batch how far values lie from their means.

        ``now`` is the partition's time: where its clock was set back, the times before count no
        more.
        """
        self._last[self._last > now + DAY] = -1
        d = self.n_fields(widened.shape[1])
        self._records += len(widened)
        share = share_of_batch(len(widened), self._records)
        for s in range(len(self._spans)):
            found = typical_distances(widened[:, :d] - widened[:, (s + 1) * d : (s + 2) * d])
            before = np.where(self._spread[s] < np.inf, self._spread[s], found)
            moved = before + share * (found - before)
            self._spread[s] = np.where(found > 0.0, moved, self._spread[s])

    def without_means(self, columns: FloatArray) -> FloatArray:
        """Return numbers of each column of widened rows, NaN for the means."""
        result = columns.copy()
        result[:, self.n_fields(columns.shape[1]) :] = np.nan
        return result

    def beside_unknown_means(self, fields: FloatArray) -> FloatArray:
        """Return numbers of each field (m, d) as those of widened rows, NaN for the means."""
        m, d = fields.shape
        result = np.full((m, self.n_columns(d)), np.nan)
        result[:, :d] = fields
        return result

    def undo_blame(self, blame: Blame) -> Blame:
        """Return the blame of widened rows as that of their own fields."""
        k, width = blame.order.shape
        d = self.n_fields(width)
        order = blame.order[blame.order < d].reshape(k, d)
        return Blame._make([order, blame.n_blamed, *(part[:, :d] for part in blame[2:])])

    def restore(self, arrays: Arrays, d: int | None) -> None:
        """Restore a state of ``d`` fields; StateError if it cannot be one."""
        # nothing was widened before units are known
        n_fields = 0 if len(arrays["history_last"]) == 0 else d or 0
        self.read_state(arrays, s=len(self._spans), d=n_fields, w=(0, d or 0))


class GivenMeans(RowDensities):
    """The density of the fields of widened rows given their means, for finding fields to blame."""

    def __init__(self, model: Comparable, history: History) -> None:
        self._model = model
        self._history = history

    def of(self, which: Which) -> Self:
        """Return the density of some of the rows."""
        return type(self)(of_rows(self._model, which), self._history)

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density (m,) of each widened row in nats."""
        return self._model.score_samples(X)

    def given_others(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compare each field with all other columns; the means have no nats."""
        nats, expected, deviation = self._model.given_others(X)
        return self._history.without_means(nats), expected, deviation
