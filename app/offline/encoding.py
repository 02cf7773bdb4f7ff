"""Writes rows of files in the format of the settings, with the id of a schema before each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import orjson

from faust_oslrau.app.files import read_file
from faust_oslrau.app.registry import Registry, check_format
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics.formats import (
    KINDS,
    Acceptance,
    Codec,
    ContentError,
    Schema,
    SchemaError,
    Translator,
    codec,
    fitted,
    framed,
)

from .input_files import InputFile
from .input_messages import InputFileError, InputMessage

_LARGEST_SCHEMA = 1_000_000

Encode = Callable[[bytes], bytes]
"""Returns the latest row of a file, which is JSON, as the value of a message.

It raises InputFileError, which names the row.
"""


class ProducedRows:
    """The rows of a file as `produce` sends them, and the schema by which a worker reads them.

    Parameters
    ----------
    source
        The file.
    settings
        A format with schemas, and the registry.
    topic
        The topic whose latest schema the rows have.

    Raises
    ------
    SettingsError, InputFileError, RegistryError
        As for `row_encoder`; while reading, too, InputFileError for a row of another schema.
    """

    def __init__(self, source: InputFile, settings: Settings, topic: str) -> None:
        self.left_out = set[str]()
        self._source = source
        self._settings = settings
        self._id, self._schema = asyncio.run(_row_schema(settings, topic, None))
        self._encode = _encoder(source, settings.format, self._id, self._schema, self.left_out)

    def __iter__(self) -> Iterator[InputMessage]:
        """Read the file from its beginning."""
        for key, value in self._source:
            yield InputMessage(key, self._encode(value))

    @property
    def share_read(self) -> float:
        """The share of the file that has been read, from 0 to 1."""
        return self._source.share_read

    @property
    def place(self) -> str:
        """The file, and the line or row of the latest message."""
        return self._source.place

    def translator(self, topic: str, partition: int) -> Translator:
        """Return what makes JSON of the messages of a partition."""
        translator = Translator(self._settings.format, self._settings.max_message_bytes)
        translator.accept([Acceptance(self._id, self._schema, 0, None)])
        return translator


async def row_encoder(
    source: InputFile, settings: Settings, topic: str, schema_file: Path | None, left_out: set[str]
) -> Encode:
    """Return what writes rows by a file's schema, which is registered, or by the latest one.

    The subject is that of the topic's values, as Confluent's serializers name it. Names of columns
    that the schema does not have are added to `left_out`.

    Raises
    ------
    SettingsError
        The format needs a library that is missing.
    InputFileError
        The file cannot be read, or holds no schema of the format.
    RegistryError
        The registry does not answer, has no schema for the topic, or refuses this one.
    """
    if not settings.uses_registry:
        return lambda value: value
    schema_id, schema = await _row_schema(settings, topic, schema_file)
    return _encoder(source, settings.format, schema_id, schema, left_out)


async def _row_schema(
    settings: Settings, topic: str, schema_file: Path | None
) -> tuple[int, Schema]:
    check_format(settings)
    async with aclosing(Registry(settings.registry)) as registry:
        subject = f"{topic}-value"
        if schema_file is None:
            return await registry.latest(subject)
        schema = Schema(KINDS[settings.format], _read(schema_file))
        _codec(settings.format, schema)  # before the registry has it
        return await registry.register(subject, schema), schema


def _codec(format_name: str, schema: Schema) -> Codec:
    try:
        return codec(format_name, schema)
    except SchemaError as error:
        raise InputFileError(f"schema: {error}") from None


def _encoder(
    source: InputFile, format_name: str, schema_id: int, schema: Schema, left_out: set[str]
) -> Encode:
    by = _codec(format_name, schema)

    def encode(value: bytes) -> bytes:
        try:
            row = orjson.loads(value)
            document = fitted(row, by.shape, left_out)
            if row and not document:
                raise ContentError(f"got none of its fields but {', '.join(list(row)[:10])}")
            return framed(schema_id, by.encode(document))
        except (ContentError, orjson.JSONDecodeError) as error:
            told = f"{source.place}: expected a row of the schema, {error}"
            raise InputFileError(told) from None

    return encode


def _read(path: Path) -> str:
    try:
        return read_file(path, _LARGEST_SCHEMA).decode()
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise InputFileError(f"{path}: expected UTF-8") from None
