"""Copies of large snapshots outside the worker's memory, between the learner and the store."""

from __future__ import annotations

import logging
import tempfile
from io import BytesIO
from typing import IO

from faust_oslrau.learner.state import Extent, Parts

logger = logging.getLogger(__name__)

# From here on, a copy in memory would be felt.
_LARGE_BYTES = 10_000_000


class Spool:
    """Takes a snapshot piece by piece.

    A large one goes to a temporary file without a name, in Python's folder for these: into the
    operating system's file cache. Where there is no room for it, the snapshot takes memory.

    Parameters
    ----------
    size
        The bytes that are expected.
    """

    def __init__(self, size: int) -> None:
        self._size = 0
        self._file: IO[bytes] = _temporary_file() if size > _LARGE_BYTES else BytesIO()

    def add(self, piece: bytes | memoryview) -> None:
        """Take the next bytes."""
        try:
            _write(self._file, piece)
        except OSError as error:  # a full disk
            _warn(error)
            before = self.extent
            with before:
                self._file = BytesIO()
                self._file.writelines(before.pieces(_LARGE_BYTES))
            self._file.write(piece)
        self._size += len(piece)

    @property
    def extent(self) -> Extent:
        """The bytes so far."""
        return Extent(self._file, 0, self._size)


def spooled(parts: Parts) -> Extent:
    """Return a copy of a snapshot, which stays while the model learns on."""
    spool = Spool(sum(map(len, parts)))
    for part in parts:
        spool.add(part)
    return spool.extent


def _temporary_file() -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(buffering=0)
    except OSError as error:
        _warn(error)
        return BytesIO()


def _write(file: IO[bytes], piece: bytes | memoryview) -> None:
    """Write all of a piece: a file without a buffer may take a part of it only."""
    rest = memoryview(piece)
    while len(rest) > 0:
        rest = rest[file.write(rest) :]


def _warn(error: OSError) -> None:
    logger.warning("no room for a snapshot in a temporary file, it takes memory: %s", error)
