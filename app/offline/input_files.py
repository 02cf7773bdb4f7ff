"""Reads CSV, NDJSON, Parquet and npz files as Kafka messages, block by block."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol
from zipfile import BadZipFile

import numpy as np
import orjson
from numpy.typing import NDArray

from faust_oslrau.app.errors import OslrauError
from faust_oslrau.topics.fields import listed

# Rows read at once: enough for fast reading, few enough for little memory.
_BLOCK = 1024
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
# Numbers that JSON does not allow: +1, 007.5, .5, 1.
_OTHER_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# Words of pandas and NumPy, of spreadsheets and of JSON, in capitals or not.
_WORDS = {"": None, "nan": None, "true": True, "false": False}
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", "^": "carets"}
# Far more than any message of Kafka, so that a file without line feeds does not take all memory.
_LONGEST_LINE = 1 << 28
# JSON has no infinity. This number exceeds every double, and is rejected as `not_finite`.
_INFINITY = {math.inf: orjson.Fragment(b"1e999"), -math.inf: orjson.Fragment(b"-1e999")}


class InputFileError(OslrauError):
    """A file cannot be read as feature records."""


class InputMessage(NamedTuple):
    """One row of a file as a message."""

    key: bytes | None
    value: bytes


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


class _TextInput:
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

    def _lines(self, file: BinaryIO) -> Iterator[bytes]:
        lines = iter(partial(file.readline, _LONGEST_LINE + 1), b"")
        for number, line in enumerate(lines, start=1):
            if len(line) > _LONGEST_LINE:
                raise self._wrong(number, f"expected at most {_LONGEST_LINE:,} bytes")
            self._position += len(line)
            self._line = number
            yield line

    def _wrong(self, line: int, what: str) -> InputFileError:
        return InputFileError(f"{self._path} line {line}: {what}")


class NdjsonInput(_TextInput):
    """One message for each line: its bytes without the line feed."""

    def __iter__(self) -> Iterator[InputMessage]:
        """Read the file from its beginning."""
        self._position = 0
        with self._path.open("rb") as file:
            for line in self._lines(file):
                value = line.removesuffix(b"\n")
                yield InputMessage(self._key_of(value), value)

    def _key_of(self, value: bytes) -> bytes | None:
        if self._key is None:
            return None
        with suppress(orjson.JSONDecodeError):
            document = orjson.loads(value)
            if isinstance(document, dict):
                return _key_bytes(document.get(self._key))
        return None


class CsvInput(_TextInput):
    """One object for each line after the header; an empty cell is null, as is NaN.

    A column of codes, such as 05, has texts.
    """

    def __iter__(self) -> Iterator[InputMessage]:
        """Read the file from its beginning."""
        self._position = 0
        with self._path.open("rb") as file:
            rows = self._rows(file)
            header, *_ = next(rows, ([], 0, 0))
            names = self._header([name.strip() for name in header])
            first = list(islice(rows, _BLOCK))
            codes = {i for row, *_ in first for i, cell in enumerate(row) if _is_code(cell)}
            cells = [_text_cell if i in codes else _cell for i in range(len(names))]
            for row, self._line, self._position in chain(first, rows):
                if row:  # of a blank line, it is empty
                    yield self._message(names, cells, row)

    def _rows(self, file: BinaryIO) -> Iterator[tuple[list[str], int, int]]:
        """Yield the rows, each with the number of its last line and what is read up to there."""
        rows = csv.reader(self._text_lines(file), strict=True)
        last = 0
        try:
            for row in rows:
                last = rows.line_num
                yield row, last, self._position
        except csv.Error as error:
            raise self._wrong(last + 1, _csv_error(error, rows.line_num - last)) from None

    def _text_lines(self, file: BinaryIO) -> Iterator[str]:
        encoding = "utf-8-sig"  # spreadsheets write a byte order mark at the start of a file
        for number, line in enumerate(self._lines(file), start=1):
            try:
                yield line.decode(encoding)
            except UnicodeDecodeError:
                raise self._wrong(number, "expected UTF-8") from None
            encoding = "utf-8"

    def _header(self, names: list[str]) -> list[str]:
        wanted = "expected a header with the names of the columns"
        if not any(names):
            raise self._wrong(1, wanted)
        # Programs that write the numbers of rows, or a comma at the end, have no name for these.
        names = [name or f"column {number}" for number, name in enumerate(names, start=1)]
        for number, name in enumerate(names, start=1):
            if _OTHER_NUMBER.fullmatch(name):
                raise self._wrong(1, f"{wanted}, got {name!r} for column {number}")
        found = {word for separator, word in _SEPARATORS.items() if separator in names[0]}
        if len(names) == 1 and found:
            raise self._wrong(1, f"expected commas between the columns, got {min(found)}")
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise self._wrong(1, f"expected distinct names of columns, got {repeated[0]!r} again")
        _check_key(self._path, self._key, names)
        return names

    def _message(
        self, names: list[str], cells: Sequence[Callable[[str], Any]], row: list[str]
    ) -> InputMessage:
        if len(row) != len(names):
            what = f"expected {len(names)} cells as in the header, got {len(row)}"
            raise self._wrong(self._line, what)
        found = (read(cell) for read, cell in zip(cells, row, strict=True))
        document = dict(zip(names, found, strict=True))
        key = row[names.index(self._key)].encode() if self._key is not None else None
        return InputMessage(key or None, orjson.dumps(document))


class _TableInput:
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
        key = None if self._key is None else _key_bytes(document[self._key])
        exact = {name: _exact(content) for name, content in document.items()}
        return InputMessage(key, orjson.dumps(exact, default=str))


class ParquetInput(_TableInput):
    """One object for each row; requires pyarrow."""

    def __init__(self, path: Path, key: str | None) -> None:
        pyarrow = import_pyarrow()
        self._path = path
        self._damages = (OSError, UnicodeDecodeError, pyarrow.ArrowException)
        try:
            self._file = pyarrow.parquet.ParquetFile(path)
        except self._damages as error:
            raise self._damaged(error) from None
        _check_key(path, key, self._file.schema_arrow.names)
        super().__init__(path, key, self._file.metadata.num_rows)

    def __iter__(self) -> Iterator[InputMessage]:
        """Read the file from its beginning."""
        self._read = 0
        try:
            for batch in self._file.iter_batches(_BLOCK):
                yield from map(self._message, batch.to_pylist())
        except self._damages as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InputFileError:
        return InputFileError(f"{self._path}: expected Parquet, {error}")


class NpzInput(_TableInput):
    """One object with the fields x0, x1, ... for each row of the array `x`, or of the only matrix.

    NaN is null.
    """

    def __init__(self, path: Path, key: str | None, extra: str | None = None) -> None:
        arrays = _load_arrays(path)
        self._matrix = _matrix(path, arrays)
        self._names = [f"x{column}" for column in range(self._matrix.shape[1])]
        _check_key(path, key, self._names)
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
        for start in range(0, len(self._matrix), _BLOCK):
            for row in self._matrix[start : start + _BLOCK].tolist():
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


def _csv_error(error: csv.Error, lines: int) -> str:
    """Return what is wrong with a row that began so many lines before."""
    told = str(error)
    if "new-line" in told:
        return "expected lines that end with a line feed, got carriage returns alone"
    # A quote that nothing closes takes in what follows: the rest of the file, or up to a limit.
    if lines > 1 or "end of data" in told or "expected after" in told:
        return "expected a quote at the end of each cell that begins with one, two for one within"
    return told


def _cell(text: str) -> Any:
    bare = text.strip()
    if bare.lower() in _WORDS:
        return _WORDS[bare.lower()]
    if _JSON_NUMBER.fullmatch(bare):
        return orjson.Fragment(bare)  # unchanged, so that no digit is lost
    if _OTHER_NUMBER.fullmatch(bare):
        return _exact(float(bare))
    return text


def _is_code(text: str) -> bool:
    """Tell whether a cell is a whole number with a zero before it, as codes have."""
    bare = text.strip()
    return len(bare) > 1 and bare[0] == "0" and bare.isdecimal()


def _text_cell(text: str) -> str | None:
    """Return the text of a cell of codes, which would be no longer themselves as numbers."""
    return None if text.strip().lower() in ("", "nan") else text.strip()


def _exact(content: Any) -> Any:
    """Return content for orjson that preserves infinity, which orjson would write as null."""
    if isinstance(content, float):
        return _INFINITY.get(content, content)
    if isinstance(content, dict):
        return {str(name): _exact(inner) for name, inner in content.items()}
    if isinstance(content, list | tuple):
        return [_exact(inner) for inner in content]
    return content


def _key_bytes(content: Any) -> bytes | None:
    if content is None or isinstance(content, bytes):
        return content
    return content.encode() if isinstance(content, str) else orjson.dumps(content, default=str)


def _check_key(path: Path, key: str | None, names: list[str]) -> None:
    if key is not None and key not in names:
        raise InputFileError(f"{path}: no column {key!r}, expected one of {listed(names)}")
