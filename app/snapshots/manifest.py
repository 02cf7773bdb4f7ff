"""The messages of a snapshot in a topic: a manifest, chunks, and their keys."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Self

from faust_oslrau.learner.errors import StateError

_FORMAT = 1
CHUNK_BYTES = 900_000  # below the default limit of brokers and topics, 1 MB
_SLOTS = (0, 1)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One snapshot: its offset, size and checksum, and where its chunks are.

    `previous` is the offset of the other slot's manifest, None without one; `offset` and
    `timestamp` (milliseconds) are those of the manifest itself.
    """

    next_offset: int
    size: int
    checksum: str
    chunks: tuple[int, ...]
    previous: int | None
    offset: int
    timestamp: int

    @classmethod
    def from_record(cls, value: bytes, offset: int, timestamp: int) -> Self:
        """Read a manifest's message.

        Raises
        ------
        StateError
            The message is not a manifest, or has another format.
        """
        try:
            found = json.loads(value)
            if found.pop("format") != _FORMAT:
                raise StateError(f"manifest: expected format {_FORMAT}")
            found["chunks"] = tuple(found["chunks"])
            manifest = cls(**found, offset=offset, timestamp=timestamp)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StateError(f"manifest: expected its values, {error!r}") from error
        if not manifest._is_valid():
            raise StateError("manifest: expected sizes, and offsets before its own in order")
        return manifest

    def _is_valid(self) -> bool:
        """Tell whether the values have their types, and what is named was written before."""
        written = [*self.chunks, self.offset]
        earlier = [] if self.previous is None else [self.previous]
        numbers = [self.next_offset, self.size, *earlier, *written]
        return (
            all(type(number) is int and number >= 0 for number in numbers)
            and isinstance(self.checksum, str)
            and all(first < second for first, second in pairwise(written))
            and all(number < self.offset for number in earlier)
        )


@dataclass(slots=True)
class Slots:
    """The two slots of a partition: those that hold a snapshot, and how many chunks each has."""

    manifests: dict[int, Manifest] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)

    def newest_first(self) -> list[int]:
        """Return the slots with a snapshot, the one with the highest offset first."""
        return sorted(self.manifests, key=lambda s: self.manifests[s].next_offset, reverse=True)

    def to_write(self) -> int:
        """Return the slot for the next snapshot: an empty one, or that of the older snapshot."""
        free = [slot for slot in _SLOTS if slot not in self.manifests]
        return free[0] if free else self.newest_first()[-1]

    def previous(self, slot: int) -> int | None:
        """Return where the manifest of the slot beside this one is."""
        other = self.manifests.get(1 - slot)
        return None if other is None else other.offset

    def keys(self, prefix: str) -> list[bytes]:
        """Return all keys in use."""
        return [
            key
            for slot, length in self.lengths.items()
            for key in (*chunk_keys(prefix, slot, length), manifest_key(prefix, slot))
        ]

    def record(self, slot: int, manifest: Manifest) -> None:
        """Set the manifest of a slot."""
        self.manifests[slot] = manifest
        self.lengths[slot] = len(manifest.chunks)


def manifest_key(prefix: str, slot: int) -> bytes:
    """Return the key of a slot's manifest; `prefix` names deployment, topic and partition."""
    return f"{prefix}/{slot}".encode()


def manifest_keys(prefix: str) -> dict[bytes, int]:
    """Return the slots by the keys of their manifests."""
    return {manifest_key(prefix, slot): slot for slot in _SLOTS}


def chunk_keys(prefix: str, slot: int, last: int, first: int = 0) -> list[bytes]:
    """Return the keys of a slot's chunks from `first` to before `last`."""
    return [f"{prefix}/{slot}/{number}".encode() for number in range(first, last)]


def manifest_value(
    next_offset: int, size: int, checksum: str, chunks: list[int], previous: int | None
) -> bytes:
    """Return the message of a manifest."""
    values = {
        "format": _FORMAT,
        "next_offset": next_offset,
        "size": size,
        "checksum": checksum,
        "chunks": chunks,
        "previous": previous,
    }
    return json.dumps(values).encode()


def new_checksum() -> blake2b:
    """Return the checksum of a snapshot, before its first byte."""
    return blake2b(digest_size=16)
