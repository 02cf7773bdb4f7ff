"""Evidence that records are unusual, from their p-values, in nats: one statistic, a few horizons.

Usual records have uniform p-values. Against p-values that follow a Beta(k, 1) distribution, whose
mass is near 0, their likelihood ratio is ``k p**(k - 1)`` (an e-value: Vovk and Wang 2021,
"E-values: calibration, combination and applications"). A CUSUM (Page 1954) sums up its logarithm
over consecutive records, and starts again whenever the sum falls below 0. It reaches a height h
less often than once in exp(h) usual records (Lorden 1971). Small k look for a few grossly unusual
records, large k for many that are a little unusual. One record alone is no incident: it counts no
more than if it were the most unusual of all recent ones.

Each entity has sums of its own: among the records of many, those of a broken one are too far apart
to add up.

Where p-values depend on those before, as in a stream that moves slowly, low ones come together by
chance. Then more is needed of several records: the limit of the sums is multiplied by how much more
sums over short stretches vary than those of independent p-values, as the rate at which a CUSUM
reaches a limit depends on limit over variance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.state import MOST_RECORDS
from faust_oslrau.learner.state_schema import LARGEST, Entry, read
from faust_oslrau.learner.stored import doubled, enlarged
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.math import log_positive

from .reference import RECENT

SHAPES = np.array([0.2, 0.5])
"""The shapes k, one for each horizon. With 0.2 alone, fewer incidents are false, on some streams by
half, but four of eight devices that drift by ten deviations over 1,000 records open none; with 0.5
alone, more faults of ten records are missed."""

LOG_SHAPES = np.log(SHAPES)
N = len(SHAPES)

WAYS = N + 1
"""Ways to reach a limit: each horizon, and a stuck field."""

MOST = math.log(2.0 * RECENT)
"""Most nats that a record counts: those of the most unusual one of as many as are recent."""

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

LOWEST, STRETCH_SUM, IN_STRETCH = N, N + 1, N + 2
"""Numbers of an entity, after its sums: the lowest p-value since the last of them began, and the
nats and the records of its present stretch."""

N_STRETCHES, DEPENDENCE = range(2)
"""Numbers of all entities: their stretches so far, and how much more these vary than those of
independent records, at least 1."""

PEAK, ANOMALIES = 3 * N, 3 * N + 3
"""Marks of an entity, after the places at which each sum began: the place of the most unusual
record since then, and the number of anomalous ones."""


class Place(NamedTuple):
    """A record: its number in the stream, and the offset and timestamp that the caller gave it."""

    number: int
    offset: int
    timestamp: int


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


def limit(rate: float) -> float:
    """Return the nats that independent uniform p-values reach at most this often per record."""
    return math.log(WAYS / rate)


_EVIDENCE = {
    "": Entry(
        ("k", N + 3), [0.0] * (N + 1) + 2 * [-LARGEST], N * [LARGEST] + [1.0] + 2 * [LARGEST]
    ),
    "_marks": Entry(("k", 3 * N + 4), [-np.inf] * ANOMALIES + [0.0], dtype="<i8"),
    "_squares": Entry((STRETCHES,), 0.0),
    "_common": Entry((2,), [0.0, 1.0], [MOST_RECORDS - 1, LARGEST]),
}


class Evidence:
    """The evidence of the latest records of each entity, or of the partition.

    Attributes
    ----------
    numbers, marks
        Of each slot, as the constants above say: (slots, N + 3) and (slots, 3 N + 4).
    squares
        Squared sums of nats of the last stretches (STRETCHES,), of all slots, in turn.
    common
        Of all slots, as the constants above say (2,).
    """

    def __init__(self) -> None:
        self.numbers, self.marks = np.empty((0, N + 3)), np.empty((0, 3 * N + 4), np.int64)
        self.squares, self.common = np.zeros(STRETCHES), np.array([0.0, 1.0])

    def add(
        self,
        p_value: FloatArray,
        stuck: FloatArray,
        is_anomaly: Mask,
        places: IntArray,
        slots: IntArray,
        fresh: Mask,
        enough: FloatArray,
    ) -> tuple[int, Found | None]:
        """Add records (m,) up to the first whose evidence is enough.

        ``stuck`` (m, d) is the evidence that fields are stuck, in nats. ``places`` (m, 3) are the
        records' numbers, offsets and timestamps, ``slots`` (m,) those of their
        entities; ``fresh`` (m,) says which begin anew there, ``enough`` (m,) how much suffices.
        Returns the row of that record and what was found, or m and None. Records without a p-value
        are no evidence.
        """
        self._reserve(int(slots.max(initial=-1)) + 1)
        row = add_up(
            p_value, stuck, is_anomaly, places, slots, fresh, enough,
            self.numbers, self.marks, self.squares, self.common,
        )  # fmt: skip
        if row == len(p_value):
            return row, None
        numbers, marks = self.numbers[slots[row]], self.marks[slots[row]]
        k = int(numbers[:N].argmax())
        nats = float(numbers[k])
        numbers[:N] = 0.0
        if stuck[row].max() >= max(enough[row], nats):
            here, own = Place(*places[row].tolist()), (float(p_value[row]), int(is_anomaly[row]))
            return row, Found(float(stuck[row].max()), here, here, *own)
        start, peak = (Place(*marks[at : at + 3].tolist()) for at in (3 * k, PEAK))
        return row, Found(nats, start, peak, float(numbers[LOWEST]), int(marks[ANOMALIES]))

    @property
    def n_slots(self) -> int:
        """The number of slots that there is room for."""
        return len(self.numbers)

    def _reserve(self, needed: int) -> None:
        """Make room for so many slots, in steps that double it."""
        room = doubled(len(self.numbers), needed)
        self.numbers, self.marks = enlarged(self.numbers, room), enlarged(self.marks, room)

    def state(self, slots: int) -> Arrays:
        """Return all that ``restore`` needs, of so many slots in use, as arrays."""
        self._reserve(slots)  # some may have had no record yet
        return {
            "evidence": self.numbers[:slots],
            "evidence_marks": self.marks[:slots],
            "evidence_squares": self.squares,
            "evidence_common": self.common,
        }

    def restore(self, arrays: Arrays) -> None:
        """Restore a state; StateError if it cannot be one."""
        self.numbers, self.marks, self.squares, self.common = read(arrays, _EVIDENCE, "evidence")


@kernel
def add_up(
    p_value: Array,
    stuck: Array,
    is_anomaly: Array,
    places: Array,
    slots: Array,
    fresh: Array,
    enough: Array,
    numbers: Array,
    marks: Array,
    squares: Array,
    common: Array,
) -> int:
    """Add records one by one: the bits of a sum do not depend on how the stream is cut."""
    for i in range(len(p_value)):
        own, mark, p = numbers[slots[i]], marks[slots[i]], p_value[i]
        if fresh[i]:
            own[:] = 0.0
        if p != p:
            continue
        nats = min(max(-log_positive(p), 0.0), MOST)
        add_to_stretch(nats, own, squares, common)
        most = 0.0
        for k in range(N):
            most = max(most, own[k])
        if most <= 0.0:
            own[LOWEST] = 1.0
            mark[ANOMALIES] = 0
        if p <= own[LOWEST]:
            own[LOWEST] = p
            for j in range(3):
                mark[PEAK + j] = places[i, j]
        mark[ANOMALIES] += is_anomaly[i]
        reached = False
        for j in range(stuck.shape[1]):
            reached |= stuck[i, j] >= enough[i]
        for k in range(N):
            if own[k] <= 0.0:
                for j in range(3):
                    mark[3 * k + j] = places[i, j]
            own[k] = max(own[k] + LOG_SHAPES[k] + (1.0 - SHAPES[k]) * nats, 0.0)
            reached |= own[k] >= enough[i] * common[DEPENDENCE]
        if reached:
            return i
    return len(p_value)


@kernel
def add_to_stretch(nats: float, own: Array, squares: Array, common: Array) -> None:
    """Add a record's nats to the stretch of its entity, which ends with the last of its records."""
    own[STRETCH_SUM] += min(nats, MOST_NATS) - MEAN_NATS
    own[IN_STRETCH] += 1.0
    if own[IN_STRETCH] < STRETCH:
        return
    squares[int(common[N_STRETCHES]) % STRETCHES] = own[STRETCH_SUM] ** 2
    common[N_STRETCHES] += 1.0
    own[STRETCH_SUM] = own[IN_STRETCH] = 0.0
    n = int(common[N_STRETCHES])
    if n >= FEWEST_STRETCHES:
        common[DEPENDENCE] = max(median(squares[: min(n, STRETCHES)]) / USUAL_SQUARE, 1.0)


@kernel
def median(x: Array) -> float:
    """Return the median of few numbers; numpy's takes seconds to compile."""
    n = len(x)
    lower, upper = -np.inf, np.inf
    for i in range(n):
        below, at_most = 0, 0
        for j in range(n):
            below += x[j] < x[i]
            at_most += x[j] <= x[i]
        if below <= (n - 1) // 2 < at_most:
            lower = x[i]
        if below <= n // 2 < at_most:
            upper = x[i]
    return (lower + upper) / 2.0
