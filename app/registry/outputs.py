"""The schemas of what a worker writes as Avro: registered once, and looked up by who reads it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any

import orjson
from aiokafka.errors import KafkaError
from msgspec import Struct

from faust_oslrau.app.kafka.emitter import Emitter
from faust_oslrau.app.kafka.partition_reader import PartitionReader
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import KafkaRecord, OutMessage, Record, Rejection, is_dead_letter
from faust_oslrau.topics.formats import (
    ContentError,
    Schema,
    SchemaError,
    Translate,
    message_reader,
    message_schema,
    message_writer,
    schema_id,
)

from .client import Registry, RegistryError, check_format
from .foreign import SchemaId, read

logger = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS = 0.5
_MAX_WAIT_SECONDS = 10.0
_MAGIC = b"\0"


class _Kept(Struct):
    """What is kept of a topic's schema, beside that and its registry."""

    id: SchemaId


class OutputSchemas:
    """Fills in what makes Avro of the messages of each topic that has it.

    A registry answers with the same id for the same schema, whenever it is asked. Where accepted
    schemas have a topic, the ids are kept there, too, so that a later start need not wait for it.

    Parameters
    ----------
    settings
        The worker's settings.
    client_arguments
        Connection arguments of aiokafka's clients.
    emitter
        Writes what is kept.
    """

    def __init__(
        self, settings: Settings, client_arguments: Mapping[str, Any], emitter: Emitter
    ) -> None:
        self._settings, self._arguments, self._emitter = settings, client_arguments, emitter
        topics = {settings.scores_topic: "scores", settings.anomalies_topic: "anomalies"}
        self._schemas = {topic: message_schema(name) for topic, name in topics.items()}
        self._kept: dict[str, int] = {}

    async def fill_in_kept(self, writers: dict[str, Translate]) -> bool:
        """Fill in writers by the ids that were kept; return whether these are all."""
        try:
            self._kept = await self._load()
        except KafkaError as error:
            logger.warning("kept ids of schemas cannot be read: %r", error)
        for topic, number in self._kept.items():
            writers[topic] = message_writer(self._schemas[topic], number)
        return self._kept.keys() == self._schemas.keys()

    async def ask(self, writers: dict[str, Translate]) -> None:
        """Fill in writers by what the registry answers, and keep it; wait while it is away.

        Raises
        ------
        RegistryError
            It takes no such schema, or nothing from this worker.
        """
        async with aclosing(Registry(self._settings.registry)) as registry:
            for topic, schema in self._schemas.items():
                number = await _registered(registry, topic, schema)
                kept = self._kept.get(topic)
                if number == kept:
                    continue
                if kept is not None:
                    logger.error("topic %s has messages with schema %d, now another", topic, kept)
                writers[topic] = message_writer(schema, number)
                if self._settings.schemas_topic is not None:
                    message = OutMessage(0, self._key(topic), self._value(topic, number), None)
                    await self._emitter.send(self._settings.schemas_topic, 0, [message])

    async def _load(self) -> dict[str, int]:
        if self._settings.schemas_topic is None:
            return {}
        topics = {self._key(topic): topic for topic in self._schemas}
        found: dict[str, int] = {}
        # Uncommitted: other deployments' transactions are none of these messages.
        reader = PartitionReader(
            self._settings.schemas_topic, 0, self._arguments, "read_uncommitted"
        )
        async with reader:
            async for record in reader.records(*await reader.range()):
                if topic := topics.get(record.key):
                    found.pop(topic, None)
                    with suppress(ValueError):  # another program wrote it
                        number = read(_Kept, record.value).id
                        if record.value == self._value(topic, number):
                            found[topic] = number
        return found

    def _key(self, topic: str) -> bytes:
        return f"{self._settings.app_id}//{topic}".encode()  # no source topic has no name

    def _value(self, topic: str, number: int) -> bytes:
        """Return what is kept: the id, of this schema in this registry."""
        registry, schema = self._settings.registry.url, self._schemas[topic].text
        return orjson.dumps({"id": number, "schema": schema, "registry": registry})


async def _registered(registry: Registry, topic: str, schema: Schema) -> int:
    wait = _FIRST_WAIT_SECONDS
    while True:
        try:
            number = await registry.register(f"{topic}-value", schema)
        except RegistryError as error:
            if error.is_final:
                raise RegistryError(f"no schema for topic {topic}: {error}") from error
            logger.warning("no schema for topic %s, retrying in %.1f s: %s", topic, wait, error)
            await asyncio.sleep(wait)
            wait = min(2 * wait, _MAX_WAIT_SECONDS)
        else:
            logger.info("topic %s has schema %d", topic, number)
            return number


class MessageSchemas:
    """Reads messages of output topics as JSON, whether they are Avro or JSON.

    Raises
    ------
    SettingsError
        `scores_format` needs a library that is missing, or a file for the registry cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        check_format(settings)
        self._registry = Registry(settings.registry) if settings.writes_avro else None
        self._readers: dict[int, Translate | None] = {}
        self._hinted: set[str] = set()

    async def read(self, record: KafkaRecord) -> KafkaRecord:
        """Return a message as JSON, or as it is where it is no Avro of a known schema.

        A dead letter is as it is: its value is that of a source record.

        Raises
        ------
        RegistryError
            The registry does not answer, or refuses.
        """
        value = record.value
        if value is None or not value.startswith(_MAGIC) or is_dead_letter(record):
            return record
        found = schema_id(value)
        if isinstance(found, Rejection):
            return record
        if self._registry is None:
            self._hint(record.topic)
            return record
        read = await self._reader(found, self._registry)
        try:
            return record if read is None else _with_value(record, read(value))
        except ContentError:
            return record

    def _hint(self, topic: str) -> None:
        """Tell once of a topic why its messages are not understood."""
        if topic not in self._hinted:
            self._hinted.add(topic)
            logger.warning(
                "topic %s: messages begin with the id of a schema: the setting scores_format may "
                "have to be avro",
                topic,
            )

    async def _reader(self, schema_id: int, registry: Registry) -> Translate | None:
        """Return what reads the messages of a schema; None if it is unknown, or none of messages.

        It is asked for again while the registry has none.
        """
        if schema_id not in self._readers:
            schema = await registry.schema(schema_id)
            if schema is None:
                return None
            try:
                self._readers[schema_id] = message_reader(schema)
            except SchemaError:
                self._readers[schema_id] = None
        return self._readers[schema_id]

    async def aclose(self) -> None:
        """Disconnect from the registry."""
        if self._registry is not None:
            await self._registry.aclose()


def _with_value(record: KafkaRecord, value: bytes) -> Record:
    place = (record.topic, record.partition, record.offset)
    return Record(*place, record.timestamp, record.key, value, record.headers)
