"""Stores snapshots as files: `FOLDER/APP_ID/TOPIC/PARTITION/OFFSET.snapshot`.

A file gets its name when it is complete. The name holds the offset. So a worker that has lost its
partition never replaces a newer snapshot: it can only add an older one, which the next save
removes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from faust_oslrau.learner.state import Extent

from .store import SnapshotError, StoredSnapshot

if TYPE_CHECKING:
    from faust.types import TP

logger = logging.getLogger(__name__)

_KEPT = 2
_SUFFIX = ".snapshot"
_UNFINISHED = ".unfinished"
_DAMAGED = ".damaged"
_PIECE_BYTES = 2**20


class FolderStore:
    """Stores the last two snapshots of each partition as files.

    Workers on several machines need a folder that they share.
    """

    def __init__(self, folder: Path, app_id: str) -> None:
        self._folder = folder / app_id

    async def open(self, tp: TP, *, read_only: bool = False) -> None:
        """Create the partition's folder, unless it is only read.

        Raises
        ------
        SnapshotError
            It cannot be made.
        """
        if not read_only:
            with _store_errors(self._place(tp)):
                self._place(tp).mkdir(parents=True, exist_ok=True)

    async def load(self, tp: TP) -> AsyncGenerator[StoredSnapshot, None]:
        """Yield the partition's snapshots, the newest first."""
        for path in self._files(tp):
            try:
                data, written = await asyncio.to_thread(_opened, path)
            except OSError as error:
                logger.error("snapshot %s cannot be read: %s", path, error.strerror)
                continue
            yield StoredSnapshot(str(path), _offset(path), written, data)

    async def reject(self, tp: TP, stored: StoredSnapshot) -> None:
        """Rename the file, so that it is not loaded again."""
        path = Path(stored.where)
        with _store_errors(path.parent):
            path.rename(path.with_suffix(_DAMAGED))

    async def save(self, tp: TP, next_offset: int, data: Extent) -> None:
        """Write a snapshot and remove all but the newest two."""
        with _store_errors(self._place(tp)):
            await asyncio.to_thread(self._save, tp, next_offset, data)

    async def discard(self, tp: TP) -> None:
        """Remove the partition's snapshots."""
        with _store_errors(self._place(tp)):
            _remove(self._files(tp))

    async def close(self) -> None:
        """Do nothing."""

    def _place(self, tp: TP) -> Path:
        return self._folder / tp.topic / str(tp.partition)

    def _files(self, tp: TP) -> list[Path]:
        """Return the snapshots' files, the one with the highest offset first."""
        return sorted(self._place(tp).glob(f"{'[0-9]' * 20}{_SUFFIX}"), key=_offset, reverse=True)

    def _save(self, tp: TP, next_offset: int, data: Extent) -> None:
        place = self._place(tp)
        unfinished = list(place.glob(f"*{_UNFINISHED}"))
        _write(place / f"{next_offset:020d}{_SUFFIX}", data)
        _remove(self._files(tp)[_KEPT:])
        _remove(unfinished)  # from a worker that was killed while it wrote


@contextmanager
def _store_errors(folder: Path) -> Iterator[None]:
    """Raise errors of the file system as SnapshotError, with the folder."""
    try:
        yield
    except OSError as error:
        raise SnapshotError(f"folder {folder}: {error.strerror}") from error


def _opened(path: Path) -> tuple[Extent, int]:
    """Return a file's content, and when it was written, in milliseconds since 1970."""
    file = path.open("rb")
    status = os.fstat(file.fileno())
    return Extent(file, 0, status.st_size), status.st_mtime_ns // 1_000_000


def _write(path: Path, data: Extent) -> None:
    handle, name = tempfile.mkstemp(_UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(data.pieces(_PIECE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)  # or each retry would take more of a full disk
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Write a folder's entries to disk, so that new names survive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _offset(path: Path) -> int:
    return int(path.name.removesuffix(_SUFFIX))
