"""Snapshots: a partition's whole state and the offset to go on from, as one atomic write."""

from .folder import FolderStore
from .snapshot import (
    IncompatibleSnapshotError,
    Snapshot,
    check_settings,
    installed_version,
    scoring_settings,
)
from .store import (
    LostPartitionError,
    NoStore,
    SnapshotError,
    SnapshotStore,
    StoredSnapshot,
)

__all__ = [
    "FolderStore",
    "IncompatibleSnapshotError",
    "LostPartitionError",
    "NoStore",
    "Snapshot",
    "SnapshotError",
    "SnapshotStore",
    "StoredSnapshot",
    "check_settings",
    "installed_version",
    "scoring_settings",
]
