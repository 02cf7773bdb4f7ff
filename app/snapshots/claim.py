"""The claim of a partition in object storage: who may save its snapshots, and which it has."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from typing import Self

from faust_oslrau.learner.errors import StateError

_FORMAT = 1
_KEPT = 2
_NAME = re.compile(r"([0-9]{20})-[0-9a-f]{16}\.snapshot")


@dataclass(frozen=True, slots=True)
class Claim:
    """The owner of a partition, and the names of its snapshots, the last saved first."""

    owner: str
    snapshots: tuple[str, ...] = ()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a claim.

        Raises
        ------
        StateError
            The bytes are no claim, or one of another format.
        """
        try:
            found = json.loads(data)
            version, owner, snapshots = found["format"], found["owner"], found["snapshots"]
            is_valid = isinstance(owner, str) and all(map(is_snapshot, snapshots))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StateError(f"claim: expected its values, {error!r}") from error
        if version != _FORMAT or not is_valid:
            raise StateError(f"claim: expected format {_FORMAT} with an owner and names")
        return cls(owner, tuple(snapshots))

    def to_bytes(self) -> bytes:
        """Return what `from_bytes` reads."""
        values = {"format": _FORMAT, "owner": self.owner, "snapshots": self.snapshots}
        return json.dumps(values).encode()

    def newest_first(self) -> list[str]:
        """Return the snapshots' names, the one with the highest offset first."""
        return sorted(self.snapshots, reverse=True)

    def saved(self, name: str) -> Claim:
        """Return the claim after another snapshot was saved: it keeps that and the one before."""
        others = [kept for kept in self.snapshots if kept != name]
        return Claim(self.owner, (name, *others[: _KEPT - 1]))

    def without(self, name: str) -> Claim:
        """Return the claim without a snapshot."""
        return Claim(self.owner, tuple(kept for kept in self.snapshots if kept != name))


def new_owner() -> str:
    """Return a name that no other owner has."""
    return secrets.token_hex(8)


def snapshot_name(next_offset: int, owner: str) -> str:
    """Return the name of a snapshot; no two owners write the same object."""
    return f"{next_offset:020d}-{owner}.snapshot"


def is_snapshot(name: str) -> bool:
    """Tell whether an object is a snapshot by its name."""
    return _NAME.fullmatch(name) is not None


def offset_of(name: str) -> int:
    """Return the offset in a snapshot's name."""
    return int(name[:20])
