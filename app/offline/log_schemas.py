"""The schemas of a topic's records: as a worker accepted them, else as the registry knows them."""

from __future__ import annotations

from collections.abc import Sequence

from aiokafka.structs import TopicPartition

from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.registry import AcceptanceLog, Registry, check_format
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import KafkaRecord
from faust_oslrau.topics.formats import Acceptance, Translator


class LogSchemas:
    """The translators of a topic's partitions; to be closed after records are read.

    Parameters
    ----------
    settings
        The settings of the worker whose acceptances are read.

    Raises
    ------
    SettingsError
        The format needs a library that is missing, or a file for the registry cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        check_format(settings)
        self._settings = settings
        self._translators: dict[tuple[str, int], Translator] = {}
        self._log = AcceptanceLog(settings, client_arguments(settings))
        self._registry = Registry(settings.registry)

    async def aclose(self) -> None:
        """Disconnect from the registry."""
        await self._registry.aclose()

    def translator(self, topic: str, partition: int) -> Translator:
        """Return the translator of a partition."""
        settings = self._settings
        new = Translator(settings.format, settings.max_message_bytes)
        return self._translators.setdefault((topic, partition), new)

    async def load(self, tp: TopicPartition, topic_id: str | None) -> None:
        """Take what was accepted for a partition; raises KafkaError."""
        self.translator(*tp).accept(await self._log.load(tp, topic_id))

    async def prepare(self, records: Sequence[KafkaRecord]) -> None:
        """Ask the registry for what was not accepted and the next records of a partition need.

        Raises
        ------
        RegistryError
            The registry does not answer.
        """
        translator = self.translator(records[0].topic, records[0].partition)
        for schema_id, start in translator.needs(records).items():
            schema = await self._registry.schema(schema_id)
            end = records[-1].offset + 1 if schema is None else None
            translator.accept([Acceptance(schema_id, schema, start, end)])

    async def read(self, record: KafkaRecord) -> KafkaRecord:
        """Return a record as JSON, or as it is where it cannot be read; raises as `prepare`."""
        await self.prepare([record])
        ((translated,), rejected) = self.translator(record.topic, record.partition).translate(
            [record]
        )
        return record if rejected else translated
