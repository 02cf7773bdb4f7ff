"""Figures of merit: how scores rank labelled anomalies, how soon alarms find faults."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.errors import InvalidInputError


class Curve(NamedTuple):
    """What is found if the records with a score of at least some limit count as alarms.

    Attributes
    ----------
    found
        Labelled records at or above each limit (k + 1,), from none to all; the limits are the k
        distinct scores, the highest first.
    false_alarms
        Other records at or above each limit (k + 1,).
    """

    found: IntArray
    false_alarms: IntArray

    @property
    def recall(self) -> FloatArray:
        """Share of the labelled records that are found (k + 1,); NaN if there are none."""
        return _shares(self.found)

    @property
    def false_alarm_rate(self) -> FloatArray:
        """Share of the other records that are alarms (k + 1,); NaN if there are none."""
        return _shares(self.false_alarms)

    @property
    def precision(self) -> FloatArray:
        """Share of the alarms that are labelled (k + 1,); 1 without alarms."""
        alarms = self.found[1:] + self.false_alarms[1:]
        return np.append(1.0, self.found[1:] / alarms)

    @property
    def area_under_roc(self) -> float:
        """Area under the ROC curve, which is recall against the rate of false alarms.

        It is the share of pairs of a labelled and another record in which the labelled one has the
        higher score; equal scores count half. NaN unless there are such pairs.
        """
        if self.found[-1] == 0 or self.false_alarms[-1] == 0:
            return float("nan")
        return float(np.trapezoid(self.recall, self.false_alarm_rate))

    @property
    def average_precision(self) -> float:
        """Mean precision over the labelled records, each at its own score; NaN without any."""
        if self.found[-1] == 0:
            return float("nan")
        return float(np.sum(np.diff(self.recall) * self.precision[1:]))


def alarm_curve(label: ArrayLike, score: ArrayLike) -> Curve:
    """Count labelled and other records at each limit; ``label`` (n,), ``score`` (n,) high = alarm.

    Raises
    ------
    InvalidInputError
        ``label`` and ``score`` are not vectors of the same length, or a score is NaN.
    """
    labels, scores = np.asarray(label, np.bool_), np.asarray(score, np.float64)
    if scores.ndim != 1 or labels.shape != scores.shape:
        raise InvalidInputError(
            f"expected a label and a score for each record, got {labels.shape} and {scores.shape}"
        )
    if np.isnan(scores).any():
        raise InvalidInputError("score: expected numbers, got NaN")
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)[: len(ranked)])
    found = np.append(0, np.cumsum(labels[order])[last])
    return Curve(found, np.append(0, last + 1) - found)


class Fault(NamedTuple):
    """A run of labelled records without a gap.

    Attributes
    ----------
    start
        Position of its first record.
    length
        Number of its records.
    delay
        Records from its first one to its first alarm, 0 if that is the same; None without an alarm.
    """

    start: int
    length: int
    delay: int | None


def find_faults(label: ArrayLike, alarm: ArrayLike) -> list[Fault]:
    """Return the runs of labelled records; ``label`` (n,) and ``alarm`` (n,) in the log's order.

    Raises
    ------
    InvalidInputError
        ``label`` and ``alarm`` are not vectors of the same length.
    """
    labels, alarms = np.asarray(label, np.bool_), np.asarray(alarm, np.bool_)
    if labels.ndim != 1 or labels.shape != alarms.shape:
        raise InvalidInputError(
            f"expected a label and an alarm for each record, got {labels.shape} and {alarms.shape}"
        )
    edges = np.flatnonzero(np.diff(labels, prepend=False, append=False)).reshape(-1, 2)
    return [
        Fault(start, stop - start, _first(alarms[start:stop])) for start, stop in edges.tolist()
    ]


def mean_of_best(log_likelihood: ArrayLike) -> float:
    """Mean of all but the lowest hundredth, which a few records far off do not decide."""
    ascending = np.sort(np.asarray(log_likelihood, np.float64))
    return float(ascending[len(ascending) // 100 :].mean()) if len(ascending) > 0 else float("nan")


def _shares(counts: IntArray) -> FloatArray:
    total = counts[-1]
    return counts / total if total > 0 else np.full(len(counts), np.nan)


def _first(alarms: Mask) -> int | None:
    return int(alarms.argmax()) if alarms.any() else None
