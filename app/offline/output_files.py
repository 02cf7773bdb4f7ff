"""Writes the messages of a replay to NDJSON or Parquet files."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import click
import orjson

from faust_oslrau.app.errors import OslrauError
from faust_oslrau.topics import KafkaRecord, OutMessage
from faust_oslrau.topics.formats import message_schema

from .input_tables import import_pyarrow

_ALIASES = {"string": "string", "long": "int64", "double": "float64", "boolean": "bool"}


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None]) -> None:
    """Refuse files to write, by options, that are read or that two options name.

    Raises
    ------
    click.UsageError
        What a file holds would be lost.
    """
    taken = {_identity(path): f"{path}, which is read" for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is None or (path.exists() and not path.is_file()):  # a device may be both
            continue
        other = taken.setdefault(_identity(path), option)
        if other != option:
            raise click.UsageError(f"{option} {path}: expected another file than {other}")


def _identity(path: Path) -> object:
    """Return what all names of a file have in common."""
    if not path.exists():
        return path.resolve()
    found = path.stat()
    return found.st_dev, found.st_ino


class Discard:
    """Ignores messages."""

    def write(self, messages: Sequence[OutMessage]) -> None:
        """Do nothing."""


class MessageFile(ABC):
    """A file for messages; use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._told():
            self._file = path.open("wb")

    def __enter__(self) -> Self:
        """Return the file."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; OslrauError if what is left cannot be written."""
        with self._told():
            self._finish()

    def write(self, messages: Sequence[OutMessage]) -> None:
        """Append messages; OslrauError if the file cannot be written."""
        with self._told():
            self._append(messages)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OslrauError(f"{self._path}: {error.strerror or error}") from None

    def _finish(self) -> None:
        self._file.close()

    @abstractmethod
    def _append(self, messages: Sequence[OutMessage]) -> None: ...


class NdjsonFile(MessageFile):
    """Messages that are JSON, byte for byte as a worker sends them, one in each line."""

    def _append(self, messages: Sequence[OutMessage]) -> None:
        self._file.writelines((message.value or b"") + b"\n" for message in messages)


class DeadLetterFile(MessageFile):
    """Dead letters as JSON objects."""

    def _append(self, messages: Sequence[OutMessage]) -> None:
        self._file.writelines(orjson.dumps(letter_data(message)) + b"\n" for message in messages)


class ParquetFile(MessageFile):
    """Score messages as rows of a table; their members are the columns."""

    def __init__(self, path: Path) -> None:
        self._pyarrow = import_pyarrow()
        super().__init__(path)
        self._schema = self._pyarrow.schema(_columns(self._pyarrow))
        self._writer = self._pyarrow.parquet.ParquetWriter(self._file, self._schema)

    def _finish(self) -> None:
        self._writer.close()
        super()._finish()

    def _append(self, messages: Sequence[OutMessage]) -> None:
        rows = [orjson.loads(message.value or b"") for message in messages]
        if rows:
            self._writer.write_table(self._pyarrow.Table.from_pylist(rows, schema=self._schema))


def open_scores(path: Path) -> MessageFile:
    """Return a file for scores: Parquet if its name ends in .parquet, else NDJSON."""
    return ParquetFile(path) if path.suffix.lower() == ".parquet" else NdjsonFile(path)


def _columns(pyarrow: Any) -> list[tuple[str, Any]]:
    """Return the columns of scores: the members of their messages, as the schema has them."""
    return _members(json.loads(message_schema("scores").text), pyarrow)


def _members(record: Any, pyarrow: Any) -> list[tuple[str, Any]]:
    return [(field["name"], _type(field["type"], pyarrow)) for field in record["fields"]]


def _type(kind: Any, pyarrow: Any) -> Any:
    """Return the column of an Avro type of messages."""
    if isinstance(kind, list):  # of null and another type, as every column is
        return _type(kind[-1], pyarrow)
    if isinstance(kind, str):
        return pyarrow.type_for_alias(_ALIASES[kind])
    if kind["type"] == "array":
        return pyarrow.list_(_type(kind["items"], pyarrow))
    return pyarrow.struct(_members(kind, pyarrow))


def letter_data(message: OutMessage | KafkaRecord) -> dict[str, Any]:
    """Return a dead letter as plain data; bytes that are not UTF-8 become `{"base64": ...}`."""
    return {
        "key": _text(message.key),
        "value": _text(message.value),
        "headers": [[name, _text(content)] for name, content in message.headers],
    }


def _text(content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}
