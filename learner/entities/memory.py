"""How many records the levels of a field's entities remember: fewer where levels drift.

Some entities are followed with several memories at a time. The one whose level predicts the next
values best is taken for all entities.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.state_schema import Entry, expect
from faust_oslrau.learner.stored import SLOTS, Stored
from faust_oslrau.learner.vector.compiler import Array, kernel

from .levels import FARTHEST, LARGEST_VALUE, LONGEST, SCALE

MEMORIES = np.array([LONGEST, 100.0, 20.0, 5.0])
"""Records that a level may remember."""

FOLLOWED = 256
"""Entities that are followed with all memories: the first ones, by their slots."""

COUNT = len(MEMORIES)
"""Place of the number of records, after the levels with each memory."""

KEEP = 0.9999
"""Share of the losses that is left after another comparison, so that the choice can change."""

GAIN = 0.98
"""Share of the loss with the longest memory that a shorter one must stay below."""


@kernel
def compare(
    X: Array,
    slots: Array,
    fresh: Array,
    units: Array,
    reference: Array,
    followed: Array,
    losses: Array,
) -> None:
    """Add rows ``X`` (m, d) of entities ``slots`` (m,) to levels with each of the memories.

    ``units`` (m, d, 3) are the predictions of `standardise`. Changes ``followed`` (entities, d, 5),
    levels and number of records, and ``losses`` (4, d), sums of squared errors.
    """
    for r in range(X.shape[0]):
        if slots[r] >= FOLLOWED:
            continue
        own = followed[slots[r]]
        if fresh[r]:
            own[:] = 0.0
        for v in range(X.shape[1]):
            y = (X[r, v] - reference[0, v]) / reference[1, v]
            if y != y:
                continue
            y = min(max(y, -LARGEST_VALUE), LARGEST_VALUE)
            scale, count = units[r, v, SCALE], own[v, COUNT]
            for g in range(len(MEMORIES)):
                if count == 0.0:
                    own[v, g] = y
                    continue
                error = min(max((y - own[v, g]) / scale, -FARTHEST), FARTHEST)
                losses[g, v] = KEEP * losses[g, v] + error * error
                own[v, g] += error * scale / (min(count, MEMORIES[g]) + 1.0)
            own[v, COUNT] = min(count + 1.0, LONGEST)


class Memories(Stored):
    """Levels of some entities with each of the memories, and how well they predict."""

    schema: ClassVar = {
        "_followed": Entry((SLOTS, "d", COUNT + 1)),
        "_losses": Entry((COUNT, "d"), 0.0),
    }
    prefix = "entity_"

    def __init__(self) -> None:
        self._followed = np.empty((0, 0, COUNT + 1))
        self._losses = np.empty((COUNT, 0))

    def begin(self, d: int) -> None:
        """Begin with rows of ``d`` fields."""
        self._followed, self._losses = np.empty((0, d, COUNT + 1)), np.zeros((COUNT, d))

    def compare(
        self,
        rows: FloatArray,
        slots: IntArray,
        fresh: Mask,
        units: FloatArray,
        reference: FloatArray,
    ) -> None:
        """Compare what the memories predict for rows (m, d), and add these: see `compare`."""
        compare(rows, slots, fresh, units, reference, self._followed, self._losses)

    def best(self) -> FloatArray:
        """Return the memory (d,) that predicts best."""
        return best_memory(self._losses)

    def restore(self, arrays: Arrays, d: int, k: int) -> None:
        """Restore a state of ``k`` entities with ``d`` fields; StateError if it cannot be one."""
        self.read_state(arrays, slots=min(k, FOLLOWED), d=d)
        expect((self._followed[..., COUNT] >= 0).all(), "numbers of records of entities")


def best_memory(losses: FloatArray) -> FloatArray:
    """Return the memory (d,) with the least of the losses (4, d); the longest if none is better."""
    best = MEMORIES[losses.argmin(axis=0)]
    return np.where(losses.min(axis=0) < GAIN * losses[0], best, LONGEST)
