"""Evidence that a stream's records are unusual, from their p-values, in nats.

Usual records have uniform p-values. Against p-values that follow a Beta(k, 1) distribution, whose
mass is near 0, their likelihood ratio is ``k p**(k - 1)`` (an e-value: Vovk and Wang 2021,
"E-values: calibration, combination and applications"). A CUSUM (Page 1954) sums up its logarithm
over consecutive records, and starts again whenever the sum falls below 0. Besides, a record alone
counts minus the logarithm of its p-value.

Where p-values depend on those before, as in a stream that moves slowly, low ones come together by
chance. Then more is needed of several records: the limit of the sum is multiplied by how much more
sums over short stretches vary than those of independent p-values, as the rate at which a CUSUM
reaches a limit depends on limit over variance.
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

STRETCH = 32
"""Records of a stretch. Shorter ones miss slow dependence; longer ones take a season, which moves
p-values a little for a long time, for more than it is."""

STRETCHES = 64
"""Stretches whose median counts, so that faults in some of them do not."""

FEWEST_STRETCHES = 8

MOST_NATS = math.log(100.0)
"""Most nats that a record counts in a stretch: a grossly unusual one says nothing about others."""

MEAN_NATS = 1.0 - math.exp(-MOST_NATS)
"""Mean of the nats of independent records, as they count."""

USUAL_SQUARE = (
    STRETCH * (2.0 * (1.0 - (1.0 + MOST_NATS) * math.exp(-MOST_NATS)) - MEAN_NATS**2) * 0.455
)
"""Median of the squared sum of the nats of a stretch of independent records, around their mean: the
variance times the median of chi-square with one degree of freedom."""

SUM, LOWEST, STRETCH_SUM, DEPENDENCE = range(4)
"""Numbers of the evidence: the CUSUM, the lowest p-value since it began, the nats of the present
stretch, and how much more stretches vary than those of independent records, at least 1."""

START, PEAK, ANOMALIES, N_STRETCHES = 0, 3, 6, 7
"""Marks of the evidence: where the places of the first and of the most unusual record begin, the
count of anomalous ones, and that of all stretches so far."""


class Place(NamedTuple):
    """A record: its number in the stream, and the offset and timestamp that the caller gave it."""

    number: int
    offset: int
    timestamp: int


class Limits(NamedTuple):
    """How many nats are enough: of a record alone, and of several together if independent."""

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
    numbers, marks
        As the constants above say, (4,) and (8,).
    squares
        Squared sums of nats of the last stretches (STRETCHES,), in turn.
    """

    def __init__(self) -> None:
        self.numbers, self.marks = np.array([0.0, 1.0, 0.0, 1.0]), np.zeros(8, np.int64)
        self.squares = np.zeros(STRETCHES)

    def restore(self, numbers: FloatArray, marks: IntArray, squares: FloatArray) -> None:
        """Restore a state; StateError if it cannot be one."""
        if numbers.shape != (4,) or marks.shape != (8,) or squares.shape != (STRETCHES,):
            raise StateError("state: expected the numbers, marks and stretches of evidence")
        if not (np.isfinite(numbers).all() and numbers[DEPENDENCE] >= 1):
            raise StateError("state: expected finite numbers of evidence")
        if not ((squares >= 0) & (squares < math.inf)).all() or marks[N_STRETCHES] < 0:
            raise StateError("state: expected squares of stretches")
        if not (0 <= numbers[SUM] < math.inf and 0 < numbers[LOWEST] <= 1):
            raise StateError("state: expected evidence of at least 0, and a p-value")
        if marks[ANOMALIES] < 0:
            raise StateError("state: expected a number of anomalous records")
        self.numbers, self.marks, self.squares = numbers, marks.astype(np.int64), squares

    def add(
        self, p_value: FloatArray, is_anomaly: BoolArray, places: IntArray, enough: Limits
    ) -> tuple[int, Found | None]:
        """Add records (m,) up to the first whose evidence is enough.

        ``places`` (m, 3) are their numbers, offsets and timestamps. Returns the row of that record
        and what was found, or m and None. Records without a p-value are no evidence.
        """
        row = add_up(p_value, is_anomaly, places, *enough, self.numbers, self.marks, self.squares)
        if row == len(p_value):
            return row, None
        p, place = float(p_value[row]), Place(*places[row].tolist())
        found = Found(-math.log(p), place, place, p, int(is_anomaly[row]))
        together, dependence = self.numbers[[SUM, DEPENDENCE]].tolist()
        suffices = together >= enough.together * dependence
        if suffices and (together >= found.nats or found.nats < enough.alone):
            found = self._together()
        self.numbers[SUM] = 0.0
        return row, found

    def _together(self) -> Found:
        start, peak = (Place(*self.marks[at : at + 3].tolist()) for at in (START, PEAK))
        total, lowest = self.numbers[[SUM, LOWEST]].tolist()
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
    squares: Array,
) -> int:
    """Add records one by one: the bits of a sum do not depend on how the stream is cut."""
    for i in range(len(p_value)):
        if places[i, 0] % STRETCH == 0:
            end_stretch(numbers, marks, squares)
        p = p_value[i]
        if p != p:
            continue
        nats = max(-log_positive(p), 0.0)
        numbers[STRETCH_SUM] += min(nats, MOST_NATS) - MEAN_NATS
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
        if nats >= alone or numbers[SUM] >= together * numbers[DEPENDENCE]:
            return i
    return len(p_value)


@kernel
def end_stretch(numbers: Array, marks: Array, squares: Array) -> None:
    """Take the stretch that has ended into account, and begin the next."""
    squares[marks[N_STRETCHES] % STRETCHES] = numbers[STRETCH_SUM] ** 2
    marks[N_STRETCHES] += 1
    numbers[STRETCH_SUM] = 0.0
    n = marks[N_STRETCHES]
    if n >= FEWEST_STRETCHES:
        median = np.median(squares[: min(n, STRETCHES)])
        numbers[DEPENDENCE] = max(median / USUAL_SQUARE, 1.0)
