"""Writes rows of files in the format of the settings, with the id of a schema before each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import orjson

from faust_oslrau.app.files import read_file
from faust_oslrau.app.registry import Registry, check_format
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics.formats import (
    KINDS,
    ContentError,
    Schema,
    SchemaError,
    codec,
    fitted,
    framed,
)

from .input_files import InputFileError

_LARGEST_SCHEMA = 1_000_000

Encode = Callable[[bytes], bytes]
"""Returns a row, which is JSON, as the value of a message; raises InputFileError."""


async def row_encoder(
    settings: Settings, topic: str, schema_file: Path | None, left_out: set[str]
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
    check_format(settings)
    async with aclosing(Registry(settings.registry)) as registry:
        subject = f"{topic}-value"
        if schema_file is None:
            schema_id, schema = await registry.latest(subject)
            return _encoder(settings.format, schema_id, schema, left_out)
        schema = Schema(KINDS[settings.format], _read(schema_file))
        _encoder(settings.format, 0, schema, left_out)  # before the registry has it
        schema_id = await registry.register(subject, schema)
        return _encoder(settings.format, schema_id, schema, left_out)


def _encoder(format_name: str, schema_id: int, schema: Schema, left_out: set[str]) -> Encode:
    try:
        by = codec(format_name, schema)
    except SchemaError as error:
        raise InputFileError(f"schema: {error}") from None

    def encode(value: bytes) -> bytes:
        try:
            row = orjson.loads(value)
            document = fitted(row, by.shape, left_out)
            if row and not document:
                raise ContentError(f"got none of its fields but {', '.join(list(row)[:10])}")
            return framed(schema_id, by.encode(document))
        except (ContentError, orjson.JSONDecodeError) as error:
            raise InputFileError(f"expected a row of the schema, {error}") from None

    return encode


def _read(path: Path) -> str:
    try:
        return read_file(path, _LARGEST_SCHEMA).decode()
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise InputFileError(f"{path}: expected UTF-8") from None
