"""Levels and scales of entities that gave way, for when they come back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.keys import Key
from faust_oslrau.learner.parameters import require
from faust_oslrau.learner.state_schema import Entry, read

from .roster import keys_of, packed_keys

Statistics = NDArray[np.float32]


_FORMER = {"levels": Entry(("k", "d")), "statistics": Entry(("k", "d", 2), 0.0, dtype="<f4")}


class Former(NamedTuple):
    """Means (d,) and statistics (d, 2) of a former entity, as `levels` has them."""

    means: FloatArray
    statistics: Statistics


class FormerEntities:
    """What is left of the entities that gave way last.

    Parameters
    ----------
    limit
        Most former entities at a time; the one that gave way first is forgotten.
    """

    def __init__(self, limit: int) -> None:
        require(limit >= 0, "max_former_entities", limit, "at least 0")
        self.limit = limit
        self._of: dict[Key, Former] = {}  # in the order in which they gave way

    def __len__(self) -> int:
        """Return the number of former entities."""
        return len(self._of)

    def add(self, key: Key, means: FloatArray, statistics: Statistics) -> None:
        """Keep a copy of the levels of an entity that gives way."""
        if self.limit == 0:
            return
        if len(self._of) == self.limit:
            del self._of[next(iter(self._of))]
        self._of[key] = Former(means.copy(), statistics.copy())

    def find(self, key: Key) -> Former | None:
        """Return the levels of a former entity, None if it is not known."""
        return self._of.get(key)

    def take(self, key: Key) -> Former | None:
        """Return the levels of an entity that comes back, which is no former one any more."""
        return self._of.pop(key, None)

    def state(self) -> Arrays:
        """Return all that ``restore`` needs, as arrays."""
        text, lengths = packed_keys(list(self._of))
        means, statistics = np.empty((0, 0)), np.empty((0, 0, 2), np.float32)
        if self._of:
            means = np.stack([former.means for former in self._of.values()])
            statistics = np.stack([former.statistics for former in self._of.values()])
        return {
            "former_keys": text,
            "former_key_lengths": lengths,
            "former_levels": means,
            "former_statistics": statistics,
        }

    def restore(self, arrays: Arrays, d: int) -> None:
        """Restore a state of entities with ``d`` fields; StateError if it cannot be one."""
        keys = keys_of(arrays, "former_key")
        k = len(keys)
        means, statistics = read(arrays, _FORMER, "former_", k=k, d=d if k > 0 else 0)
        if k > self.limit:
            raise StateError(f"state: expected at most {self.limit} former entities, got {k}")
        self._of = dict(zip(keys, map(Former, means, statistics), strict=True))
