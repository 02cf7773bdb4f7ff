"""Evidence that subjects bring more or fewer records than usual: cumulative sums (Page 1954)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, Mask
from faust_oslrau.learner.state_schema import Entry, counts
from faust_oslrau.learner.stored import SLOTS, Stored

from .filters import LARGEST, Predicted

FACTORS = np.array([0.2, 0.5, 0.8, 1.25, 2.0, 5.0])
"""Changes that are looked for: so many times the usual number of records."""

FALSE_ALARM_RATE = 1e-5
"""Changes that begin by chance, for each window at the most (Lorden 1971)."""

ENOUGH = float(np.log(len(FACTORS) / FALSE_ALARM_RATE))
"""Nats for one of the factors from which on there is a change."""

OVER = 0.5 * ENOUGH
"""Nats against it from which on it is over."""

LONGEST_SECONDS, FEWEST_WINDOWS = 7680.0, 8
"""After so long, and so many windows, a change is what is usual from then on. Before, it is not
learned: were it longer, a night would be a change each day."""

_MOST, _LEAST = 1e9, 1e-15


class Found(NamedTuple):
    """A change of a subject that begins or ends with a window.

    Attributes
    ----------
    subject
        Its number.
    begins
        Whether the change begins, else it ends.
    stays
        Whether it ends as what is usual from now on.
    since
        The number of the first window that speaks for it.
    """

    subject: int
    begins: bool
    stays: bool
    since: int


class Evidence(Stored):
    """Nats for each factor since they last spoke against it, of each subject.

    Windows have a length in ``seconds``, at least 1. A change has ``longest`` of them at the most.

    Attributes
    ----------
    nats, since
        The evidence for each factor (n, factors), and the first window that speaks for it.
    changed
        Windows since a change began (n,), 0 for none.
    factor, against
        Which change it is, and the evidence against it (n,).
    brought, expected
        Records since it began, and how many were usual (n,).
    """

    schema: ClassVar = {
        "nats": Entry((SLOTS, len(FACTORS)), -_MOST, _MOST),
        "since": Entry((SLOTS, len(FACTORS)), -1, dtype="<i8", new=-1),
        "changed": counts(SLOTS, most=round(LONGEST_SECONDS)),
        "factor": counts(SLOTS, most=len(FACTORS) - 1),
        "against": Entry((SLOTS,), 0.0, _MOST),
        "brought": Entry((SLOTS,), 0.0, LARGEST),
        "expected": Entry((SLOTS,), _LEAST, LARGEST, new=_LEAST),
    }
    prefix = "rate_"

    def __init__(self, seconds: float) -> None:
        self.longest = max(round(LONGEST_SECONDS / seconds), FEWEST_WINDOWS)
        self.nats = np.empty((0, len(FACTORS)))
        self.against, self.brought, self.expected = np.empty((3, 0))
        self.since = np.empty((0, len(FACTORS)), np.int64)
        self.changed, self.factor = np.empty((2, 0), np.int64)

    def change(self, subject: int, length: int) -> tuple[int, float]:
        """Return when a change began, and which; ``length`` is that of a window."""
        factor = self.factor[subject]
        return max(int(self.since[subject, factor]), 0) * length, float(FACTORS[factor])

    def add(
        self, records: FloatArray, predicted: Predicted, window: int, which: Mask
    ) -> list[Found]:
        """Add the counts (n,) of the subjects ``which`` in a window; return what it shows."""
        usual, *others = predicted.log_probabilities(records, np.array([1.0, *FACTORS])).T
        told = np.clip(np.column_stack(others) - usual[:, None], -_MOST, _MOST)
        told[~which] = 0.0
        self.since = np.where(self.nats <= 0.0, window, self.since)
        self.nats = np.minimum(np.maximum(self.nats, 0.0) + told, _MOST)
        at = np.flatnonzero(which & (self.changed > 0))
        changed = predicted.of(at).log_changed(records[at], self.brought[at], self.expected[at])
        self.against[at] = np.maximum(self.against[at] + usual[at] - changed, 0.0)
        self.changed[at] += 1
        found = [*self._ended(), *self._begun(which)]
        at = np.flatnonzero(which & (self.changed > 0))
        self.brought[at] += records[at]
        self.expected[at] += predicted.of(at).expected
        return found

    def _ended(self) -> Iterator[Found]:
        over = (self.against > OVER) | (self.changed >= self.longest)
        for subject in np.flatnonzero((self.changed > 0) & over).tolist():
            since = int(self.since[subject, self.factor[subject]])
            stays = bool(self.against[subject] <= OVER)
            self.clear(subject)
            yield Found(subject, begins=False, stays=stays, since=since)

    def _begun(self, which: Mask) -> Iterator[Found]:
        enough = which & (self.changed == 0) & (self.nats.max(axis=1) > ENOUGH)
        for subject in np.flatnonzero(enough).tolist():
            factor = int(self.nats[subject].argmax())
            self.factor[subject], self.changed[subject], self.against[subject] = factor, 1, 0.0
            since = int(self.since[subject, factor])
            yield Found(subject, begins=True, stays=False, since=since)
