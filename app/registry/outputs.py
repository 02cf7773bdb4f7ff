"""The schemas of what a worker writes as Avro: registered once, and looked up by who reads it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import KafkaRecord, Record, Rejection, is_dead_letter
from faust_oslrau.topics.formats import (
    ContentError,
    SchemaError,
    Translate,
    message_reader,
    message_schema,
    message_writer,
    schema_id,
)

from .client import Registry, RegistryError, check_format

logger = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS = 0.5
_MAX_WAIT_SECONDS = 10.0
_MAGIC = b"\0"


async def message_writers(settings: Settings) -> dict[str, Translate]:
    """Return what makes Avro of the messages of each topic that has it.

    A registry answers with the same id for the same schema, whenever it is asked. While it is away
    nothing is written.

    Raises
    ------
    RegistryError
        It takes no such schema, or nothing from this worker.
    """
    topics = {settings.scores_topic: "scores", settings.anomalies_topic: "anomalies"}
    async with aclosing(Registry(settings.registry)) as registry:
        return {topic: await _writer(registry, topic, name) for topic, name in topics.items()}


async def _writer(registry: Registry, topic: str, name: str) -> Translate:
    schema, wait = message_schema(name), _FIRST_WAIT_SECONDS
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
            return message_writer(schema, number)


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
