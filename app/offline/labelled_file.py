"""Reads a file whose rows are labelled, and takes the labels out of the rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.topics.documents import parse
from faust_oslrau.topics.fields import listed

from .input_files import InputFile, open_input
from .input_messages import InputFileError, InputMessage
from .partitioner import partition_of

# True and 1.0 are equal to 1, so they are found as well.
_LABELS = {0: False, 1: True, "0": False, "1": True, "false": False, "true": True}


class LabelledFile:
    """The messages of a file without the column of their labels, which is not to be scored.

    A row that is no JSON object has no label. It stays as it is and will be rejected.

    Parameters
    ----------
    path
        A file as `open_input` reads it.
    column
        The column or top-level field with 0, 1, true or false; 1 is anomalous. In an npz file, it
        may be a vector beside the matrix.
    partitions, key
        How rows are distributed.

    Raises
    ------
    InputFileError
        Here or while reading: the file cannot be read, has no such column, or a row has another
        label.
    """

    def __init__(self, path: Path, column: str, partitions: int = 1, key: str | None = None):
        self._path = path
        self._source: InputFile = open_input(path, key, extra=column)
        self._column = column
        self._labels = [bytearray() for _ in range(partitions)]

    @property
    def labels(self) -> list[NDArray[np.bool_]]:
        """The labels of the rows read so far: for each partition an array by offset."""
        return [np.frombuffer(bytes(labels), np.bool_) for labels in self._labels]

    @property
    def share_read(self) -> float:
        """The share of the file that has been read, from 0 to 1."""
        return self._source.share_read

    @property
    def place(self) -> str:
        """The file, and the line or row of the latest message."""
        return self._source.place

    def __iter__(self) -> Iterator[InputMessage]:
        """Read the file from its beginning, once."""
        for row, (key, value) in enumerate(self._source):
            label, rest = self._part(row, value)
            self._labels[partition_of(key, row, len(self._labels))].append(label)
            yield InputMessage(key, rest)

    def _part(self, row: int, value: bytes) -> tuple[bool, bytes]:
        """Return the label of a row and the row without it."""
        try:
            document = parse(value)
        except ValueError:
            return False, value
        if not isinstance(document, dict):
            return False, value
        if self._column not in document:
            raise InputFileError(
                f"{self._path} row {row}: no column {self._column!r}, "
                f"expected one of {listed([*document])}"
            )
        label = self._label(row, document.pop(self._column))
        # Python's writer keeps numbers beyond a double, which a worker rejects by their own reason.
        return label, json.dumps(document, ensure_ascii=False).encode()

    def _label(self, row: int, content: Any) -> bool:
        known = content.strip().lower() if isinstance(content, str) else content
        if not isinstance(known, str | int | float) or known not in _LABELS:
            raise InputFileError(
                f"{self._path} row {row}: expected 0, 1, true or false in column "
                f"{self._column!r}, got {json.dumps(content)}"
            )
        return _LABELS[known]
