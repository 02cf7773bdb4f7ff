"""Creates the snapshot store that the settings choose."""

from __future__ import annotations

from pathlib import Path

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.kafka.transactions import Producers
from faust_oslrau.app.settings import Settings

from .folder import FolderStore
from .store import NoStore, SnapshotStore
from .topic import TopicStore


def snapshot_store(settings: Settings, producers: Producers) -> SnapshotStore:
    """Return the snapshot store of a worker.

    Raises
    ------
    SettingsError
        The store is in object storage, and obstore or what the address needs is missing.
    """
    if settings.snapshots_topic is not None:
        arguments = client_arguments(settings)
        return TopicStore(settings.snapshots_topic, settings.app_id, producers, arguments)
    if settings.snapshot_folder is not None:
        return FolderStore(Path(settings.snapshot_folder), settings.app_id)
    if settings.snapshot_bucket is not None:
        return _bucket_store(settings.snapshot_bucket, settings.app_id)
    return NoStore()


def _bucket_store(address: str, app_id: str) -> SnapshotStore:
    try:
        from .bucket import bucket_store
    except ModuleNotFoundError:
        raise SettingsError(
            f"setting snapshots: {address} needs obstore, which is not installed: "
            "pip install 'faust-oslrau[object-storage]'"
        ) from None
    return bucket_store(address, app_id)
