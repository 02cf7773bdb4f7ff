"""What the records of one call lead to: messages, counts and times."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.topics import OutMessage

STAGES = ("decode", "score", "learn", "emit")


class Skipped(StrEnum):
    """Why a scored record is not learned: far below all usual scores, or learning is off."""

    FAR = "far"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class ProcessedBlock:
    """What some records of a partition led to; each of them is in `scores` or `dead_letters`.

    `reasons` counts the dead letters. `timestamps` (ms, NaN where there is none), `log_likelihood`
    and `p_value` belong to `scores`. `blamed` counts the anomalies by the field most to blame,
    `learned` the records that the learner took in, `skipped` those that it did not, and `seconds`
    says by stage what it took; encoding the messages is the first part of `emit`. `events` go to
    the topic of anomalies; `drift` is how far scores have fallen, an event at 1.
    """

    scores: list[OutMessage]
    anomalies: list[OutMessage]
    dead_letters: list[OutMessage]
    reasons: Counter[str]
    timestamps: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    p_value: NDArray[np.float64]
    blamed: Counter[str]
    learned: int
    skipped: Counter[str]
    seconds: dict[str, float]
    events: list[OutMessage] = field(default_factory=list)
    drift: float = 0.0

    @property
    def alerts(self) -> list[OutMessage]:
        """What goes to the topic of anomalies, in the order of the log."""
        return sorted(self.anomalies + self.events, key=attrgetter("offset"))
