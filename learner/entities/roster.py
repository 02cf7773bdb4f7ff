"""Which entity has which slot; the one not seen for longest gives way."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import islice
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.errors import InvalidInputError
from faust_oslrau.learner.keys import Key
from faust_oslrau.learner.parameters import require
from faust_oslrau.learner.state import MOST_RECORDS
from faust_oslrau.learner.state_schema import Entry, expect, read
from faust_oslrau.learner.stored import Places, doubled, enlarged

from .levels import LARGEST_VALUE

Name = bytes | str | int | None
"""The same as callers may give it: see `as_keys`."""

LONGEST_KEY = 31
"""Bytes of the longest key that is stored as it is; longer ones are stored as their digest."""

DIGEST = LONGEST_KEY + 1
"""Bytes of a digest: one more than any key that is stored as it is, so that none equals one."""

SHARE_SORTED = 64
"""Of so many entities, one is put in order whenever some have to give way: sorting all of them for
each would take too long."""


class Newcomer(NamedTuple):
    """An entity that is new to its slot from a row on, and the one that gave way there."""

    row: int
    key: Key
    gone: tuple[Key, ...]


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
    newcomers
        The entities that were new to their slots in the last call of `take`.
    """

    def __init__(self, limit: int) -> None:
        require(limit >= 1, "max_entities", limit, "at least 1")
        self.limit = limit
        self.evicted = 0
        self.newcomers: list[Newcomer] = []
        self._slots: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._last = np.empty(0, np.int64)
        self._n = 0
        self._oldest: list[tuple[int, int]] = []

    def __len__(self) -> int:
        """Return the number of entities."""
        return len(self._keys)

    def take(self, keys: Sequence[Key]) -> tuple[IntArray, Mask]:
        """Return the slots (m,) of the next records' keys, and which are new to their slot."""
        m, self.newcomers = len(keys), []
        found, fresh = list(map(self._slots.get, keys)), np.zeros(m, np.bool_)
        new = [row for row, slot in enumerate(found) if slot is None]
        # If entities have to give way, it depends on each record in turn which ones.
        for row in new if len(self) + len(new) <= self.limit else range(m):
            found[row] = self._take(keys[row], fresh, row)
        slots = np.array(found, np.int64)
        self._last[slots] = np.arange(self._n, self._n + m)  # the last of equal slots counts
        self._n += m
        return slots, fresh

    def find(self, key: Key) -> int | None:
        """Return the slot of an entity, None if it is not known."""
        return self._slots.get(stored(key))

    def common(self, other: Roster, most: int) -> Key:
        """Return an entity that another roster has, too, among up to ``most``; None if none has."""
        some = self._keys[:: max(1, len(self._keys) // most)]
        return next((key for key in some if key is not None and key in other._slots), None)

    def search(self, part: bytes, most: int) -> list[bytes]:
        """Return up to ``most`` names that contain a part, in capital or small letters.

        An entity whose whole name is the part comes first. Long names, which are stored as their
        digests, are found as a whole only.
        """
        exact = [part] if part and self.find(part) is not None else []
        lower = part.lower()
        others = (
            key
            for key in self._keys
            if key and len(key) <= LONGEST_KEY and key != part and lower in key.lower()
        )
        return [*exact, *islice(others, most - len(exact))]

    def _take(self, key: Key, fresh: Mask, row: int) -> int:
        """Return the slot of the key of one record, after it has come in if it is new."""
        key = stored(key)
        slot = self._slots.get(key)
        if slot is None:
            slot, gone = self._free_slot()
            fresh[row] = True
            self._slots[key], self._keys[slot] = slot, key
            self.newcomers.append(Newcomer(row, key, gone))
        self._last[slot] = self._n + row
        return slot

    def _free_slot(self) -> tuple[int, tuple[Key, ...]]:
        """Return a slot, and the entity that gave way there, if one had to."""
        if len(self._keys) == self.limit:
            slot = self._evict()
            return slot, (self._keys[slot],)
        self._keys.append(None)
        self._last = enlarged(self._last, min(doubled(len(self._last), len(self)), self.limit))
        return len(self._keys) - 1, ()

    def _evict(self) -> int:
        """Return the slot of the entity not seen for longest, which gives way."""
        while True:
            if not self._oldest:
                k = max(1, self.limit // SHARE_SORTED)
                some = np.argpartition(self._last, k - 1)[:k]
                newest_first = some[np.argsort(-self._last[some])]
                last = self._last[newest_first]
                self._oldest = list(zip(newest_first.tolist(), last.tolist(), strict=True))
            slot, last_seen = self._oldest.pop()
            if self._last[slot] == last_seen:  # otherwise it was seen since
                break
        del self._slots[self._keys[slot]]
        self.evicted += 1
        return slot

    def state(self) -> Arrays:
        """Return keys by slot, one after the other; their lengths, -1 for None; when last seen."""
        text, lengths = packed_keys(self._keys)
        ages = self._n - self._last[: len(lengths)]
        return {"entity_keys": text, "entity_key_lengths": lengths, "entity_ages": ages}

    def restore(self, arrays: Arrays) -> None:
        """Restore a state; StateError if it cannot be one."""
        keys = keys_of(arrays, "entity_key")
        schema = {"entity_ages": Entry(("k",), 1, MOST_RECORDS, "<i8")}
        (ages,) = read(arrays, schema, k=len(keys))
        all_differ = len(keys) == len(np.unique(ages)) <= self.limit
        expect(all_differ, "when each entity was last seen")
        self._keys = keys
        self._slots = {key: slot for slot, key in enumerate(self._keys)}
        self._last, self._n, self._oldest = -ages, 0, []


def stored(key: Key) -> Key:
    """Return a key as it is stored: a long one as its digest."""
    if key is None or len(key) <= LONGEST_KEY:
        return key
    return blake2b(key, digest_size=DIGEST).digest()


def packed_keys(keys: Sequence[Key]) -> tuple[NDArray[np.uint8], IntArray]:
    """Return keys one after the other, and their lengths, -1 for None."""
    text = np.frombuffer(b"".join(filter(None, keys)), np.uint8)
    return text, np.array([-1 if key is None else len(key) for key in keys], np.int64)


def keys_of(arrays: Arrays, prefix: str) -> list[Key]:
    """Return the keys that ``packed_keys`` packed; StateError if they cannot be some."""
    keys = unpacked(arrays, prefix, DIGEST)
    expect(len(set(keys)) == len(keys), "different keys of entities")
    return keys


def unpacked(arrays: Arrays, prefix: str, longest: int) -> list[Key]:
    """Return names of up to ``longest`` bytes, some perhaps equal, as ``packed_keys`` packed them.

    StateError if they cannot be some.
    """
    schema = {"s": Entry(("n",), dtype="|u1"), "_lengths": Entry(("k",), -1, longest, "<i8")}
    text, lengths = read(arrays, schema, prefix)
    is_whole = lengths.clip(0).sum() == len(text)
    expect(is_whole, f"{prefix}s of the lengths that are given")
    ends, joined = lengths.clip(0).cumsum().tolist(), text.tobytes()
    return [
        None if length < 0 else joined[end - length : end]
        for length, end in zip(lengths.tolist(), ends, strict=True)
    ]


def as_keys(entities: object, m: int) -> list[Key]:
    """Return the entities of ``m`` records as keys: bytes and None as they are, text as UTF-8.

    A whole number is the entity of its digits: 7 and "7" are one.

    Raises
    ------
    InvalidInputError
        There is not one entity for each record, or one is neither bytes, text, a whole number nor
        None.
    """
    if not isinstance(entities, Sequence | np.ndarray) or len(entities) != m:
        raise InvalidInputError(f"entity: expected one for each of {m} records")
    names = entities.tolist() if isinstance(entities, np.ndarray) else entities
    keys = [key.encode() if isinstance(key, str) else key for key in names]
    others = {type(key) for key in keys} - {bytes, type(None)}
    if not others:
        return keys
    for kind in others:
        if kind is bool or not issubclass(kind, Integral):
            raise InvalidInputError(
                f"entity: expected bytes, text, a whole number or None, got {kind.__name__}"
            )
    return [b"%d" % key if isinstance(key, Integral) else key for key in keys]


Statistics = NDArray[np.float32]

_FORMER = {
    "levels": Entry(("k", "d"), -(LARGEST_VALUE**2), LARGEST_VALUE**2),
    "statistics": Entry(("k", "d", 2), 0.0, dtype="<f4"),
}


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

    def add_fields(self, places: Places) -> None:
        """Make room for more fields, of which nothing is known."""
        for key, (means, statistics) in self._of.items():
            wider = places.widened(means, 0, 0.0), places.widened(statistics, 0, 0.0)
            self._of[key] = Former(*wider)

    def forget_fields(self, which: Mask) -> None:
        """Forget what is known of some fields (d,), as units have changed."""
        for means, statistics in self._of.values():
            means[which], statistics[which] = 0.0, 0.0

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
        expect(k <= self.limit, f"at most {self.limit} former entities, got {k}")
        self._of = dict(zip(keys, map(Former, means, statistics), strict=True))
