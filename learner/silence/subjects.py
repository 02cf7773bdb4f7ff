"""Whose records are followed: the partition's, and those of each of its entities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.arrays import Arrays, IntArray
from faust_oslrau.learner.keys import Key
from faust_oslrau.learner.state_schema import Entry, expect, read

Names = list[str | None]

PARTITION = 0
"""The partition's own slot; those of entities follow."""


def own_slots(slots: IntArray, keys: Sequence[Key]) -> IntArray:
    """Return whose rows (m,) are, `PARTITION` for those without an entity.

    ``slots`` (m,) are those of their entities ``keys``, which are empty without entities.
    """
    if not keys:
        return np.zeros(len(slots), np.int64)
    return np.where([key is not None for key in keys], slots + 1, PARTITION)


def packed_names(names: Names) -> NDArray[np.uint8]:
    """Return names as the array of a state."""
    return np.frombuffer(json.dumps(names).encode(), np.uint8)


def read_names(arrays: Arrays, name: str, n: int) -> Names:
    """Return the ``n`` names in an array of a state; StateError if they cannot be some."""
    (packed,) = read(arrays, {name: Entry(("b",), dtype="|u1")})
    names: Any = json.loads(packed.tobytes())
    is_list = isinstance(names, list) and len(names) == n
    are_names = is_list and all(isinstance(name, str | None) for name in names)
    expect(are_names, "the names of entities")
    return list(names)
