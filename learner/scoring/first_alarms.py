"""Alarms of a young stream: only so many close together.

A stream that visits regimes or follows a cycle brings something new again and again while it is
young. Each time, all records are unusual until the model has learned what is new.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError

YOUNG = 4096
"""Records after which alarms are no longer limited."""

WINDOW = 512
"""Records among which alarms are counted."""


def most_alarms(alarm_rate: float) -> int:
    """Return the most alarms within ``WINDOW``: three times the expected number, and two more."""
    return 2 + math.ceil(3 * alarm_rate * WINDOW)


class FirstAlarms:
    """Limits the alarms of a stream's first ``YOUNG`` records.

    Attributes
    ----------
    numbers
        Numbers in the stream of the alarms within the last ``WINDOW`` records.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def restore(self, numbers: Iterable[int]) -> None:
        """Restore a state; StateError if it cannot be one."""
        self.numbers = [int(number) for number in numbers]
        if not all(0 <= number < YOUNG for number in self.numbers):
            raise StateError("state: expected the first alarms among a stream's first records")

    def choose(
        self, unusual: NDArray[np.bool_], first: int, alarm_rate: float
    ) -> NDArray[np.bool_]:
        """Return which of the next ``unusual`` records (m,) are alarms.

        ``first`` is the number of the first of them in the stream.
        """
        if first >= YOUNG:
            return unusual
        result = unusual.copy()
        for row in np.flatnonzero(unusual[: YOUNG - first]).tolist():
            number = first + row
            self.numbers = [earlier for earlier in self.numbers if earlier > number - WINDOW]
            result[row] = len(self.numbers) < most_alarms(alarm_rate)
            if result[row]:
                self.numbers.append(number)
        if first + len(unusual) >= YOUNG:
            self.numbers = []
        return result
