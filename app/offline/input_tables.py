"""Files whose number of rows is known before reading: Parquet and npz."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import orjson
from numpy.typing import NDArray

from .input_messages import BLOCK, InputFileError, InputMessage, check_key, exact, key_bytes


class TableInput:
    """A file whose number of rows is known before reading."""

    def __init__(self, path: Path, key: str | None, rows: int) -> None:
        self._path = path
        self._key = key
        self._rows = rows
        self._read = 0

    @property
    def share_read(self) -> float:
        """How much of the file has been read, from 0 to 1."""
        return self._read / self._rows if self._rows else 1.0

    @property
    def place(self) -> str:
        """The file, and the row of the latest message; the first is 0."""
        return f"{self._path} row {self._read - 1}"

    def _message(self, document: Mapping[str, Any]) -> InputMessage:
        self._read += 1
        key = None if self._key is None else key_bytes(document[self._key])
        contents = {name: exact(content) for name, content in document.items()}
        return InputMessage(key, orjson.dumps(contents, default=str))


class ParquetInput(TableInput):
    """One object for each row; requires pyarrow."""

    def __init__(self, path: Path, key: str | None) -> None:
        pyarrow = import_pyarrow()
        self._path = path
        self._damages = (OSError, UnicodeDecodeError, pyarrow.ArrowException)
        try:
            self._file = pyarrow.parquet.ParquetFile(path)
        except self._damages as error:
            raise self._damaged(error) from None
        check_key(path, key, self._file.schema_arrow.names)
        super().__init__(path, key, self._file.metadata.num_rows)

    def __iter__(self) -> Iterator[InputMessage]:
        """Read the file from its beginning."""
        self._read = 0
        try:
            for batch in self._file.iter_batches(BLOCK):
                yield from map(self._message, batch.to_pylist())
        except self._damages as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InputFileError:
        return InputFileError(f"{self._path}: expected Parquet, {error}")


class NpzInput(TableInput):
    """One object with the fields x0, x1, ... for each row of the array `x`, or of the only matrix.

    NaN is null.
    """

    def __init__(self, path: Path, key: str | None, extra: str | None = None) -> None:
        arrays = _load_arrays(path)
        self._matrix = _matrix(path, arrays)
        self._names = [f"x{column}" for column in range(self._matrix.shape[1])]
        check_key(path, key, self._names)
        if extra is not None and extra in arrays:
            self._append(path, extra, arrays[extra])
        super().__init__(path, key, len(self._matrix))

    def _append(self, path: Path, name: str, vector: NDArray[Any]) -> None:
        if vector.shape != (len(self._matrix),) or vector.dtype.kind not in "bif":
            raise InputFileError(
                f"{path}: expected {len(self._matrix)} numbers in the array {name}, "
                f"got {vector.dtype} of shape {vector.shape}"
            )
        self._names.append(name)
        self._matrix = np.column_stack([self._matrix, vector])

    def __iter__(self) -> Iterator[InputMessage]:
        """Read the file from its beginning."""
        self._read = 0
        for start in range(0, len(self._matrix), BLOCK):
            for row in self._matrix[start : start + BLOCK].tolist():
                yield self._message(dict(zip(self._names, row, strict=True)))


def import_pyarrow() -> Any:
    """Return pyarrow with its Parquet module, an extra of the installation."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputFileError("Parquet needs pyarrow: pip install 'faust-oslrau[parquet]'") from None
    return pyarrow


def _load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, MemoryError, BadZipFile) as error:
        raise InputFileError(f"{path}: expected an npz file of arrays, {error}") from None


def _matrix(path: Path, arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
    matrices = {name: a for name, a in arrays.items() if a.ndim == 2 and a.dtype.kind == "f"}
    if "x" not in matrices and len(matrices) != 1:
        raise InputFileError(
            f"{path}: expected a matrix of floats named x, or only one, got {sorted(matrices)}"
        )
    return matrices["x"] if "x" in matrices else next(iter(matrices.values()))
