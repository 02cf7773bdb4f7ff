"""Which entity has which slot; the one not seen for longest gives way."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import InvalidInputError, InvalidParameterError, StateError

Key = bytes | None
"""Name of an entity; None for all records without one."""

LONGEST_KEY = 31
"""Bytes of the longest key that is stored as it is; longer ones are stored as their digest."""

DIGEST = LONGEST_KEY + 1
"""Bytes of a digest: one more than any key that is stored as it is, so that none equals one."""


class Roster:
    """Slots of the entities seen last.

    Keys are bytes, not numbers that the caller would assign: which entity gives way, and who comes
    back as a new one, depends on the log alone and has to be part of the state.

    Parameters
    ----------
    limit
        Most entities at a time, at least 1.

    Attributes
    ----------
    evicted
        Entities that gave way since this object exists.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise InvalidParameterError(f"max_entities = {limit}: expected at least 1")
        self.limit = limit
        self.evicted = 0
        self._slots: OrderedDict[Key, int] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of entities."""
        return len(self._slots)

    def take(self, keys: Sequence[Key]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the slots (m,) of the next records' keys, and which are new to their slot."""
        slots, fresh = np.empty(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        get, renew = self._slots.get, self._slots.move_to_end
        for row, given in enumerate(keys):
            slot, key = get(given), given
            if slot is None and given is not None and len(given) > LONGEST_KEY:
                key = blake2b(given, digest_size=DIGEST).digest()
                slot = get(key)
            if slot is None:
                slot, fresh[row] = self._enter(key), True
            else:
                renew(key)
            slots[row] = slot
        return slots, fresh

    def _enter(self, key: Key) -> int:
        slot = len(self._slots)
        if slot == self.limit:
            _, slot = self._slots.popitem(last=False)
            self.evicted += 1
        self._slots[key] = slot
        return slot

    @property
    def state(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """The keys one after the other, their lengths (-1 for None) and slots; oldest first."""
        keys = list(self._slots)
        text = np.frombuffer(b"".join(filter(None, keys)), np.uint8)
        lengths = [-1 if key is None else len(key) for key in keys]
        return text, np.array(lengths, np.int64), np.array([*self._slots.values()], np.int64)

    def restore(
        self, text: NDArray[np.uint8], lengths: NDArray[np.int64], slots: NDArray[np.int64]
    ) -> None:
        """Restore a state; StateError if it cannot be one."""
        k = len(lengths)
        if k > self.limit or not np.array_equal(np.sort(slots), np.arange(k)):
            raise StateError("state: expected a slot for each entity")
        if ((lengths < -1) | (lengths > DIGEST)).any() or lengths.clip(0).sum() != len(text):
            raise StateError("state: expected the keys of entities")
        ends, joined = lengths.clip(0).cumsum().tolist(), text.tobytes()
        keys = [
            None if length < 0 else joined[end - length : end]
            for length, end in zip(lengths.tolist(), ends, strict=True)
        ]
        self._slots = OrderedDict(zip(keys, slots.tolist(), strict=True))
        if len(self._slots) < k:
            raise StateError("state: expected different keys of entities")


def as_keys(entities: object, m: int) -> list[Key]:
    """Return the entities of ``m`` records as keys: text as UTF-8, bytes and None as they are.

    Raises
    ------
    InvalidInputError
        There is not one entity for each record, or one is neither bytes, text nor None.
    """
    if not isinstance(entities, Sequence | np.ndarray) or len(entities) != m:
        raise InvalidInputError(f"entity: expected one for each of {m} records")
    keys = [key.encode() if isinstance(key, str) else key for key in entities]
    wrong = {type(key) for key in keys} - {bytes, type(None)}
    if wrong:
        raise InvalidInputError(f"entity: expected bytes, text or None, got {wrong.pop().__name__}")
    return keys
