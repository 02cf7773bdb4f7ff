"""Evidence that a stream's records are unusual, from their p-values, in nats.

Usual records have uniform p-values. Against p-values that follow a Beta(k, 1) distribution, whose
mass is near 0, their likelihood ratio is ``k p**(k - 1)`` (an e-value: Vovk and Wang 2021,
"E-values: calibration, combination and applications"). A CUSUM (Page 1954) sums up its logarithm
over consecutive records, and starts again whenever the sum falls below 0. Besides, a record alone
counts minus the logarithm of its p-value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.math import log_positive

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

SHAPE = 0.2
"""The shape k. With larger ones, phases of a season in which records are a little less likely than
usual were taken for faults, and no more faults were found."""

LOG_SHAPE = math.log(SHAPE)

RARITY = 0.098
"""The CUSUM of uniform p-values reaches a high limit h so often per record, times exp(-h)
(simulated)."""

SUM, LOWEST = range(2)
"""Numbers of the evidence: the CUSUM, and the lowest p-value since it began."""

START, PEAK, ANOMALIES = 0, 3, 6
"""Where the places of the first and of the most unusual record begin, and the count of anomalous
ones."""


class Place(NamedTuple):
    """A record: its number in the stream, and the offset and timestamp that the caller gave it."""

    number: int
    offset: int
    timestamp: int


class Limits(NamedTuple):
    """How many nats are enough: of a record alone, and of several together."""

    alone: float
    together: float


class Found(NamedTuple):
    """Evidence that reached its limit.

    Attributes
    ----------
    nats
        The evidence.
    start, peak
        The record with which it began, and the most unusual one since then.
    p_value
        The p-value of the peak.
    anomalies
        The number of anomalous records since the start.
    """

    nats: float
    start: Place
    peak: Place
    p_value: float
    anomalies: int


def limits(rate: float) -> Limits:
    """Return what uniform p-values reach at most this often per record, half of it each way."""
    return Limits(math.log(2.0 / rate), math.log(2.0 * RARITY / rate))


class Evidence:
    """The evidence of a stream's latest records.

    Attributes
    ----------
    numbers
        ``SUM`` and ``LOWEST`` (2,).
    marks
        Number, offset and timestamp of the first record, of the most unusual one, and the number of
        anomalous ones (7,).
    """

    def __init__(self) -> None:
        self.numbers, self.marks = np.array([0.0, 1.0]), np.zeros(7, np.int64)

    def restore(self, numbers: FloatArray, marks: IntArray) -> None:
        """Restore a state; StateError if it cannot be one."""
        if numbers.shape != (2,) or marks.shape != (7,):
            raise StateError("state: expected two numbers and seven marks of evidence")
        if not (0 <= numbers[SUM] < math.inf and 0 < numbers[LOWEST] <= 1):
            raise StateError("state: expected evidence of at least 0, and a p-value")
        if marks[ANOMALIES] < 0:
            raise StateError("state: expected a number of anomalous records")
        self.numbers, self.marks = numbers, marks.astype(np.int64)

    def add(
        self, p_value: FloatArray, is_anomaly: BoolArray, places: IntArray, enough: Limits
    ) -> tuple[int, Found | None]:
        """Add records (m,) up to the first whose evidence is enough.

        ``places`` (m, 3) are their numbers, offsets and timestamps. Returns the row of that record
        and what was found, or m and None. Records without a p-value are no evidence.
        """
        row = add_up(p_value, is_anomaly, places, *enough, self.numbers, self.marks)
        if row == len(p_value):
            return row, None
        p, place = float(p_value[row]), Place(*places[row].tolist())
        found = Found(-math.log(p), place, place, p, int(is_anomaly[row]))
        if self.numbers[SUM] >= max(enough.together, found.nats) or found.nats < enough.alone:
            found = self._together()
        self.numbers[SUM] = 0.0
        return row, found

    def _together(self) -> Found:
        start, peak = (Place(*self.marks[at : at + 3].tolist()) for at in (START, PEAK))
        total, lowest = self.numbers.tolist()
        return Found(total, start, peak, lowest, int(self.marks[ANOMALIES]))


@kernel
def add_up(
    p_value: Array,
    is_anomaly: Array,
    places: Array,
    alone: float,
    together: float,
    numbers: Array,
    marks: Array,
) -> int:
    """Add records one by one: the bits of a sum do not depend on how the stream is cut."""
    for i in range(len(p_value)):
        p = p_value[i]
        if p != p:
            continue
        nats = max(-log_positive(p), 0.0)
        if numbers[SUM] <= 0.0:
            numbers[LOWEST] = 1.0
            marks[START : START + 3] = places[i]
            marks[ANOMALIES] = 0
        numbers[SUM] = max(numbers[SUM] + LOG_SHAPE + (1.0 - SHAPE) * nats, 0.0)
        if p <= numbers[LOWEST]:
            numbers[LOWEST] = p
            marks[PEAK : PEAK + 3] = places[i]
        if is_anomaly[i]:
            marks[ANOMALIES] += 1
        if nats >= alone or numbers[SUM] >= together:
            return i
    return len(p_value)
