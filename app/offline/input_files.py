"""Reads CSV, NDJSON, Parquet and npz files as Kafka messages, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from .input_csv import CsvInput
from .input_lines import NdjsonInput
from .input_messages import InputFileError, InputMessage
from .input_tables import NpzInput, ParquetInput


class InputFile(Protocol):
    """The messages of one file, in order."""

    def __iter__(self) -> Iterator[InputMessage]:
        """Read the file from its beginning."""

    @property
    def share_read(self) -> float:
        """The share of the file that has been read, from 0 to 1."""

    @property
    def place(self) -> str:
        """The file, and the line or row of the latest message."""


def open_input(path: Path, key: str | None = None, extra: str | None = None) -> InputFile:
    """Return the messages of a file; the extension of its name tells the format.

    With `key`, the content of that column or top-level field is the key of each message. With
    `extra`, the vector of that name in an npz file is one more column.

    Raises
    ------
    InputFileError
        Here or while reading: the file is missing, damaged or has another format.
    """
    formats: dict[str, Callable[[Path, str | None], InputFile]] = {
        ".csv": CsvInput,
        ".ndjson": NdjsonInput,
        ".jsonl": NdjsonInput,
        ".parquet": ParquetInput,
        ".npz": partial(NpzInput, extra=extra),
    }
    if path.suffix.lower() not in formats:
        raise InputFileError(f"{path}: expected a name that ends in {', '.join(formats)}")
    check_regular(path)
    return formats[path.suffix.lower()](path, key)


def check_regular(path: Path) -> None:
    """Refuse a path that is missing, or of a pipe or device, which may never end."""
    if not path.is_file():
        raise InputFileError(f"{path}: expected a regular file, there is none")


class JoinedInput:
    """The messages of several files, one file after the other."""

    def __init__(self, files: Sequence[InputFile]) -> None:
        self._files = files
        self._done = 0

    def __iter__(self) -> Iterator[InputMessage]:
        """Read the files from the beginning of the first."""
        for done, file in enumerate(self._files):
            self._done = done
            yield from file

    @property
    def share_read(self) -> float:
        """How much of the files has been read, from 0 to 1; each counts as much."""
        return (self._done + self._files[self._done].share_read) / len(self._files)

    @property
    def place(self) -> str:
        """The file, and the line or row of the latest message."""
        return self._files[self._done].place
