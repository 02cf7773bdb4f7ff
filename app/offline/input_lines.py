"""Files that are read line by line: NDJSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import orjson

from .input_messages import InputFileError, InputMessage, key_bytes

# Far more than any message of Kafka, so that a file without line feeds does not take all memory.
_LONGEST_LINE = 1 << 28


class TextInput:
    """A file that is read line by line."""

    def __init__(self, path: Path, key: str | None) -> None:
        self._path = path
        self._key = key
        self._size = path.stat().st_size
        self._position = 0
        self._line = 0

    @property
    def share_read(self) -> float:
        """How much of the file has been read, from 0 to 1."""
        return self._position / self._size if self._size else 1.0

    @property
    def place(self) -> str:
        """The file, and the line of the latest message."""
        return f"{self._path} line {self._line}"

    def lines(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield the lines, and count them."""
        lines = iter(partial(file.readline, _LONGEST_LINE + 1), b"")
        for number, line in enumerate(lines, start=1):
            if len(line) > _LONGEST_LINE:
                raise self.wrong(number, f"expected at most {_LONGEST_LINE:,} bytes")
            self._position += len(line)
            self._line = number
            yield line

    def wrong(self, line: int, what: str) -> InputFileError:
        """Return the error that a line is not as expected."""
        return InputFileError(f"{self._path} line {line}: {what}")


class NdjsonInput(TextInput):
    """One message for each line: its bytes without the line feed."""

    def __iter__(self) -> Iterator[InputMessage]:
        """Read the file from its beginning."""
        self._position = 0
        with self._path.open("rb") as file:
            for line in self.lines(file):
                value = line.removesuffix(b"\n")
                yield InputMessage(self._key_of(value), value)

    def _key_of(self, value: bytes) -> bytes | None:
        if self._key is None:
            return None
        with suppress(orjson.JSONDecodeError):
            document = orjson.loads(value)
            if isinstance(document, dict):
                return key_bytes(document.get(self._key))
        return None
