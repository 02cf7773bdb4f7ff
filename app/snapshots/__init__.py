"""Where the snapshots of partitions are stored, and when they are due."""

from .configured import snapshot_store
from .folder import FolderStore
from .schedule import SnapshotSchedule
from .store import NoStore, SnapshotError, SnapshotStore, StoredSnapshot

__all__ = [
    "FolderStore",
    "NoStore",
    "SnapshotError",
    "SnapshotSchedule",
    "SnapshotStore",
    "StoredSnapshot",
    "snapshot_store",
]
