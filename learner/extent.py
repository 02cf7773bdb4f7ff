"""Bytes that lie in a file, and are read in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import IO, Self


class Extent:
    """The `size` bytes of a file from `start` on.

    A state of 100 MB is read from it piece by piece, and need not be in memory beside the model.
    """

    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file = file
        self._start = start
        self.size = size

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Return bytes in memory, without copying them."""
        return cls(BytesIO(data), 0, len(data))

    def part(self, start: int, size: int) -> Extent:
        """Return the bytes of a part, as far as it lies within this extent."""
        start = min(start, self.size)
        return Extent(self._file, self._start + start, min(size, self.size - start))

    def read(self) -> bytes:
        """Return all bytes."""
        self._file.seek(self._start)
        return self._file.read(self.size)

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the bytes, ``size`` at a time."""
        for start in range(0, self.size, size):
            yield self.part(start, size).read()

    def __enter__(self) -> Self:
        """Return the extent; the end of the context closes its file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()
