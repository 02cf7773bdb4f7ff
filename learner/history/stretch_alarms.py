"""Alarms of stretches: one for each row of unusual stretches that overlap.

While a fault lasts, each of its records ends an unusual stretch. Such stretches share records, so
they are one event. The first of them is an alarm. After it, only one that is much more unusual is,
or one that shares no record with the unusual stretches before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.scoring.block import StretchScores
from faust_oslrau.learner.vector.compiler import Array, kernel

IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

LONGEST = 4096
"""Records of the longest stretch: the p-value compares it with the last 8,192 ones. After so many
records, no stretch reaches back to the last unusual one."""

MUCH_LOWER = 0.1
"""Share of the last alarm's p-value from which on a stretch is much more unusual. Ever fewer are,
so that a long row has few alarms."""


class StretchAlarms:
    """Chooses which stretches are alarms, for each slot."""

    def __init__(self) -> None:
        self._since = np.empty(0, np.int64)
        self._p_value = np.empty(0)

    def choose(self, stretches: StretchScores, slots: IntArray, fresh: Mask, limit: float) -> Mask:
        """Return which of the stretches (m,) that end with the next rows are alarms.

        ``slots`` (m,) are those of the rows, ``fresh`` (m,) says which begin anew there. Stretches
        with a p-value of at most ``limit`` are unusual.
        """
        held, needed = len(self._since), int(slots.max(initial=-1)) + 1
        if held < needed:
            more = max(needed, 2 * held) - held
            self._since = np.append(self._since, np.full(more, LONGEST))
            self._p_value = np.append(self._p_value, np.ones(more))
        result = np.empty(len(slots), np.bool_)
        choose_new(*stretches, slots, fresh, limit, self._since, self._p_value, result)
        return result

    def state(self, slots: int) -> dict[str, NDArray[Any]]:
        """Return all that ``restore`` needs, of so many slots in use."""
        return {
            "stretch_since": self._since[:slots],
            "stretch_alarm_p_value": self._p_value[:slots],
        }

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore a state; StateError if it cannot be one."""
        since, p_value = arrays["stretch_since"], arrays["stretch_alarm_p_value"]
        if since.ndim != 1 or p_value.shape != since.shape:
            raise StateError("state: expected the last unusual stretch of each slot")
        if ((since < 0) | (since > LONGEST)).any() or not ((p_value > 0) & (p_value <= 1)).all():
            raise StateError("state: expected the age of a stretch and the p-value of its alarm")
        self._since, self._p_value = since.astype(np.int64), p_value


@kernel
def choose_new(
    p_value: Array,
    length: Array,
    slots: Array,
    fresh: Array,
    limit: float,
    since: Array,
    alarm_p_value: Array,
    result: Array,
) -> None:
    """Set ``result`` (m,) for the rows whose stretch is an alarm.

    Changes ``since`` (slots,), the slot's rows since its last unusual stretch, up to ``LONGEST``;
    and ``alarm_p_value`` (slots,), that of its last alarm.
    """
    for r in range(len(p_value)):
        slot = slots[r]
        age = LONGEST if fresh[r] else min(since[slot] + 1, LONGEST)
        unusual = p_value[r] <= limit
        is_new = age >= length[r] or p_value[r] <= MUCH_LOWER * alarm_p_value[slot]
        since[slot] = 0 if unusual else age
        result[r] = unusual and is_new
        if result[r]:
            alarm_p_value[slot] = p_value[r]
