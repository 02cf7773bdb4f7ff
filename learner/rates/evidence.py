"""Evidence that subjects bring more or fewer records than usual: cumulative sums (Page 1954)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.state_schema import Entry, counts

from .filters import Predicted
from .table import Table

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

_MOST = 1e9

_EVIDENCE = {
    "nats": Entry(("n", len(FACTORS)), -_MOST, _MOST),
    "since": Entry(("n", len(FACTORS)), -1, dtype="<i8"),
    "changed": counts("n", most=round(LONGEST_SECONDS)),
    "factor": counts("n", most=len(FACTORS) - 1),
    "against": Entry(("n",), -_MOST, _MOST),
}


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


class Evidence(Table):
    """Nats for each factor since they last spoke against it, of each subject.

    Windows have a length in ``seconds``, at least 1. A change has ``longest`` of them at the most.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(_new, _EVIDENCE)
        self.longest = max(round(LONGEST_SECONDS / seconds), FEWEST_WINDOWS)

    @property
    def changed(self) -> IntArray:
        """Windows since a change began (n,), 0 for none."""
        return self.of["changed"]

    def change(self, subject: int, length: int) -> tuple[int, float]:
        """Return when a change began, and which; ``length`` is that of a window."""
        factor = self.of["factor"][subject]
        return max(int(self.of["since"][subject, factor]), 0) * length, float(FACTORS[factor])

    def add(
        self, records: FloatArray, predicted: Predicted, window: int, which: Mask
    ) -> list[Found]:
        """Add the counts (n,) of the subjects ``which`` in a window; return what it shows."""
        usual, *others = predicted.log_probabilities(records, np.array([1.0, *FACTORS])).T
        told = np.clip(np.column_stack(others) - usual[:, None], -_MOST, _MOST)
        told[~which] = 0.0
        known, rows = self.of, np.arange(len(told))
        known["since"] = np.where(known["nats"] <= 0.0, window, known["since"])
        known["nats"] = np.minimum(np.maximum(known["nats"], 0.0) + told, _MOST)
        against = np.maximum(known["against"], 0.0) - told[rows, known["factor"]]
        known["against"] = np.minimum(against, _MOST)
        known["changed"] += which & (known["changed"] > 0)
        return [*self._ended(), *self._begun(which)]

    def _ended(self) -> Iterator[Found]:
        known = self.of
        over = (known["against"] > OVER) | (known["changed"] >= self.longest)
        for subject in np.flatnonzero((known["changed"] > 0) & over).tolist():
            since = int(known["since"][subject, known["factor"][subject]])
            stays = bool(known["against"][subject] <= OVER)
            self.begin(subject)
            yield Found(subject, begins=False, stays=stays, since=since)

    def _begun(self, which: Mask) -> Iterator[Found]:
        known = self.of
        enough = which & (known["changed"] == 0) & (known["nats"].max(axis=1) > ENOUGH)
        for subject in np.flatnonzero(enough).tolist():
            factor = int(known["nats"][subject].argmax())
            known["factor"][subject], known["changed"][subject] = factor, 1
            known["against"][subject] = 0.0
            since = int(known["since"][subject, factor])
            yield Found(subject, begins=True, stays=False, since=since)


def _new(n: int) -> Arrays:
    return {
        "nats": np.zeros((n, len(FACTORS))),
        "since": np.full((n, len(FACTORS)), -1),
        "changed": np.zeros(n, np.int64),
        "factor": np.zeros(n, np.int64),
        "against": np.zeros(n),
    }
