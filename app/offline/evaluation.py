"""Evaluates the scores of a labelled log: how they rank anomalies, how soon they find faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.app.errors import OslrauError
from faust_oslrau.learner.stream import WARM_UP

from .quality import Curve, alarm_curve, find_faults
from .scored_log import ScoredLog, Scores
from .told_lines import rejection_told

Labels = Sequence[NDArray[np.bool_]]
"""For each partition an array by offset."""

_NONE, _NO_SCORES = np.empty(0, np.bool_), np.empty(0)


class EvaluationError(OslrauError):
    """There are no labelled records, or no others, after the warm-up."""


class PlacedFault(NamedTuple):
    """A run of labelled records without a gap in a partition.

    Attributes
    ----------
    partition, offset
        The place of its first record.
    records
        Its length.
    delay
        Records from its first one to its first alarm, 0 if that is the same; None without an alarm.
    p_value
        Its lowest p-value; NaN if none of its records was scored.
    """

    partition: int
    offset: int
    records: int
    delay: int | None
    p_value: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well the p-values of one log tell labelled records from the others, after the warm-up.

    Attributes
    ----------
    log
        The scored log.
    curve
        Labelled and other records that are alarms, at each limit of the p-value.
    true_alarms
        The number of alarms at the settings' alarm rate that are labelled.
    faults
        The faults that end after the warm-up, in order of partitions and offsets.
    """

    log: ScoredLog
    curve: Curve
    true_alarms: int
    faults: list[PlacedFault]

    @property
    def labelled(self) -> int:
        """The number of labelled records that were scored."""
        return int(self.curve.found[-1])

    @property
    def others(self) -> int:
        """The number of other records that were scored."""
        return int(self.curve.false_alarms[-1])

    @property
    def alarms(self) -> int:
        """The number of alarms at the settings' alarm rate."""
        return self.log.alarms

    @property
    def precision(self) -> float:
        """The share of the alarms that are labelled; NaN without alarms."""
        return self.true_alarms / self.alarms if self.alarms else float("nan")

    @property
    def recall(self) -> float:
        """The share of the labelled records that are alarms."""
        return self.true_alarms / self.labelled

    @property
    def delays(self) -> list[int]:
        """The delays of the faults that were found."""
        return [fault.delay for fault in self.faults if fault.delay is not None]

    @property
    def median_delay(self) -> float:
        """The median of the delays; NaN if no fault was found."""
        return median(self.delays) if self.delays else float("nan")

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            **self.log.as_dict(),
            "labelled": self.labelled,
            "others": self.others,
            "area_under_roc": self.curve.area_under_roc,
            "average_precision": self.curve.average_precision,
            "alarm_rate": self.log.settings.alarm_rate,
            "true_alarms": self.true_alarms,
            "false_alarms": self.alarms - self.true_alarms,
            "precision": self.precision,
            "recall": self.recall,
            "faults_found": len(self.delays),
            "median_delay": self.median_delay,
            "faults": [fault._asdict() for fault in self.faults],
        }


def evaluate_log(log: ScoredLog, labels: Labels) -> Evaluation:
    """Compare the alarms and p-values of a log with its labels.

    Raises
    ------
    EvaluationError
        After the warm-up there are no labelled records or no others.
    """
    known = {p: s.take(np.flatnonzero(~np.isnan(s.p_value))) for p, s in log.scores.items()}
    label = np.concatenate([_NONE, *(labels[p][s.offset] for p, s in known.items())])
    is_alarm = np.concatenate([_NONE, *(s.is_alarm for s in known.values())])
    p_value = np.concatenate([_NO_SCORES, *(s.p_value for s in known.values())])
    curve = alarm_curve(label, -p_value)
    if not 0 < label.sum() < len(label):
        raise EvaluationError(
            f"{log.name}: expected labelled records and others after the first {WARM_UP} of a "
            f"partition, got {label.sum():,} and {(~label).sum():,}"
            f"{rejection_told(log.first_rejection)}"
        )
    true_alarms = int(np.count_nonzero(label & is_alarm))
    faults = [fault for p, s in known.items() for fault in _faults(p, s, labels[p])]
    return Evaluation(log, curve, true_alarms, faults)


def _faults(partition: int, scores: Scores, label: NDArray[np.bool_]) -> list[PlacedFault]:
    """Return the faults of a partition that do not end in its warm-up; rejected records count."""
    alarm, p_value = np.zeros(len(label), np.bool_), np.full(len(label), np.nan)
    alarm[scores.offset], p_value[scores.offset] = scores.is_alarm, scores.p_value
    first = min(scores.offset.tolist(), default=len(label))
    return [
        PlacedFault(partition, start, length, delay, _lowest(p_value[start : start + length]))
        for start, length, delay in find_faults(label, alarm)
        if start + length > first
    ]


def _lowest(p_value: NDArray[np.float64]) -> float:
    return float(np.fmin.reduce(p_value))
