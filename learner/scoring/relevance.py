"""Which deviations matter: on which side of what is expected, and how large.

An unusual record whose most unusual fields are off on the other side, or by less, is not worth an
alarm. Among the records with low p-values those that matter come first, and the others after them:
if a share s of these matters, the p-value of one that does is s times as large, and that of another
one above these. So p-values stay uniform, and alarms as frequent as the alarm rate says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, Mask
from faust_oslrau.learner.errors import InvalidParameterError
from faust_oslrau.learner.state_schema import Entry
from faust_oslrau.learner.stored import Stored

from .blame import Blame
from .calibration import TAIL_SHARE

SIDES = {"high": 1.0, "low": -1.0}

RATES = 10.0
"""The share of records that matter is that among p-values up to so many alarm rates: further down,
where alarms are, other fields may be the most unusual ones."""

MEMORY = 1024
"""Such records that it is the share of."""


def highest(alarm_rate: float) -> float:
    """Return the p-value up to which records are put in another order."""
    return min(max(TAIL_SHARE, RATES * alarm_rate), 1.0)


class Relevance(Stored):
    """Which deviations of which columns matter.

    The share of records that matter changes in ``end_batch`` alone, which the scorer calls at
    learning boundaries, so that p-values do not depend on how the stream was cut into blocks.

    Parameters
    ----------
    directions
        By column, the side on which its values matter: ``high`` or ``low``; else both do.
    least
        By column, the distance from what is expected below which its values do not matter.

    Raises
    ------
    InvalidParameterError
        A direction is no side, or a distance is not positive and finite.
    """

    schema: ClassVar = {"_counts": Entry((4,), 0.0)}
    prefix = "relevance_"

    def __init__(self, directions: Mapping[int, str], least: Mapping[int, float]) -> None:
        for column, side in directions.items():
            if side not in SIDES:
                raise InvalidParameterError(f"directions of column {column}: got {side!r}")
        for column, distance in least.items():
            if not 0.0 < distance < math.inf:
                raise InvalidParameterError(f"least of column {column}: got {distance!r}")
        self.directions, self.least = dict(directions), dict(least)
        # Records with low p-values and how many of them matter: to the last boundary, and since it.
        self._counts = np.zeros(4)

    @property
    def is_on(self) -> bool:
        """Whether any column has a deviation that does not matter."""
        return bool(self.directions or self.least)

    def begin_anew(self) -> None:
        """Forget which records mattered."""
        self._counts[:] = 0.0

    def matters(self, found: Blame) -> Mask:
        """Tell which records (k,) have a field to blame whose deviation matters.

        ``found`` is their blame in the fields' own units. A category matters always.
        """
        off = found.value - found.expected
        counts = ~np.isnan(found.nats)
        for column, side in self.directions.items():
            counts[:, column] &= ~(SIDES[side] * off[:, column] < 0.0)
        for column, distance in self.least.items():
            counts[:, column] &= ~(np.abs(off[:, column]) < distance)
        return np.asarray(counts.any(axis=1), np.bool_)

    def ordered(self, p_value: FloatArray, matters: Mask, alarm_rate: float) -> FloatArray:
        """Return p-values (k,) up to `highest` after putting the records that matter first."""
        low = p_value <= RATES * alarm_rate
        self._counts[2:] += np.count_nonzero(low), np.count_nonzero(low & matters)
        n, those = self._counts[:2]
        share = (those + 1.0) / (n + 1.0)
        after = share * highest(alarm_rate) + (1.0 - share) * p_value
        usual = np.maximum(after, np.nextafter(alarm_rate, 1.0))
        return np.asarray(np.where(matters, share * p_value, usual), np.float64)

    def end_batch(self) -> None:
        """Let the records since the last boundary count."""
        before, new = self._counts.reshape(2, 2)
        before[:] = before * math.exp(-new[0] / MEMORY) + new
        new[:] = 0.0

    def state(self, slots: int | None = None) -> Arrays:
        """Return all that ``read_state`` needs, as arrays: none if it is off."""
        return super().state(slots) if self.is_on else {}
