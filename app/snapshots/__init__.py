"""Stores of snapshots, in a topic, a folder or a bucket, and the schedule of their saves."""

from .configured import snapshot_store
from .folder import FolderStore
from .schedule import SnapshotSchedule
from .spool import Spool, spooled
from .store import NoStore, SnapshotError, SnapshotStore, StoredSnapshot

__all__ = [
    "FolderStore",
    "NoStore",
    "SnapshotError",
    "SnapshotSchedule",
    "SnapshotStore",
    "Spool",
    "StoredSnapshot",
    "snapshot_store",
    "spooled",
]
