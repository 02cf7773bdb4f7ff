"""The snapshot store that the settings choose."""

from __future__ import annotations

from pathlib import Path

from .security import client_arguments
from .settings import Settings
from .snapshots import FolderStore, NoStore, SnapshotStore
from .snapshots.topic import TopicStore
from .transactions import Producers


def snapshot_store(settings: Settings, producers: Producers) -> SnapshotStore:
    """Return the store of a worker's snapshots."""
    if settings.snapshots == "topic":
        arguments = client_arguments(settings)
        return TopicStore(settings.snapshots_topic, settings.app_id, producers, arguments)
    if settings.snapshots == "folder":
        return FolderStore(Path(settings.snapshot_dir), settings.app_id)
    return NoStore()
