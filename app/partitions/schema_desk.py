"""Asks the registry for the schemas that the next records need, and accepts its answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka.errors import KafkaError
from faust.types import TP

from faust_oslrau.app.kafka.rights import reason
from faust_oslrau.app.kafka.transactions import Opening, Producers
from faust_oslrau.app.logs import at
from faust_oslrau.app.registry import AcceptanceLog, Registry, RegistryError
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics.formats import Acceptance, Schema, Translator

from .held_partition import HeldPartition, UnknownSchemasError

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
# When a registry that knows no schema of an id is asked again: one of its servers may be a moment
# behind the one that a producer has just given its schema to.
_ASK_AGAIN_SECONDS = (1.0, 2.0)
# Such ids come one at a time; many at once are bytes of another kind, which need not be waited for.
_MOST_ASKED_AGAIN = 4
# A producer that writes bytes of another kind may name thousands of ids in one batch.
_MOST_IDS = 64
# Offsets without a schema after which the registry is asked for it again.
_MOST_AHEAD = 1000


class SchemaDesk:
    """Makes the translators of partitions, and gives them what they lack.

    An answer is accepted once: it is in the topic of acceptances before a record is scored by it.

    Parameters
    ----------
    settings
        The worker's settings.
    producers
        Transactional producers, one for each partition; they fence a partition's former owner.
    client_arguments
        Connection arguments of aiokafka's clients.
    """

    def __init__(
        self, settings: Settings, producers: Producers, client_arguments: Mapping[str, Any]
    ) -> None:
        self._settings = settings
        self._producers = producers
        self._log = AcceptanceLog(settings, client_arguments)
        self._registry = Registry(settings.registry)
        # The opening of its producer with which each partition's acceptances were read.
        self._read_with: dict[TP, Opening] = {}

    async def translator(self, tp: TP, topic_id: str | None) -> Translator:
        """Return a translator with all that was accepted; the partition's producer is open.

        Raises
        ------
        KafkaError
            The acceptances cannot be read.
        """
        self._read_with[tp] = self._producers.of(tp).opening
        translator = Translator(self._settings.format, self._settings.max_message_bytes)
        translator.accept(await self._log.load(tp, topic_id))
        return translator

    async def answer(self, partition: HeldPartition, unknown: UnknownSchemasError) -> None:
        """Ask until the registry has answered, and accept its answers, while the partition waits.

        Raises
        ------
        LostPartitionError
            Another worker owns the partition.
        """
        needed = dict(list(unknown.needed.items())[:_MOST_IDS])
        try:
            accepted = await self._ask(partition, needed, unknown.end)
        finally:
            partition.metrics.awaited_schemas = 0
        while not await self._accept(partition, accepted):
            await asyncio.sleep(_RETRY_SECONDS)

    async def close(self) -> None:
        """Disconnect from the registry."""
        await self._registry.aclose()

    async def _ask(
        self, partition: HeldPartition, needed: Mapping[int, int], end: int
    ) -> list[Acceptance]:
        """Return the answers for the first ids, up to one for which there is no answer yet."""
        while partition.awaits_schemas:
            found = await self._answers(partition, needed)
            answers = _first_answers(found)
            if answers:
                ids = zip(needed.items(), answers, strict=False)
                return [
                    Acceptance(number, schema, start, _end(partition, number, start, end, schema))
                    for (number, start), schema in ids
                ]
            self._tell(partition, needed, found[0])
            await asyncio.sleep(_RETRY_SECONDS)
        return []

    async def _answers(
        self, partition: HeldPartition, needed: Mapping[int, int]
    ) -> list[Schema | BaseException | None]:
        """Return the answer for each id; that there is no schema is asked again at first."""
        translator = partition.pipeline.translator
        for seconds in (*_ASK_AGAIN_SECONDS, None):
            asked = map(self._registry.schema, needed)
            found = await asyncio.gather(*asked, return_exceptions=True)
            missing = [number for number, each in zip(needed, found, strict=True) if each is None]
            is_new = translator is not None and not any(map(translator.has_answer, missing))
            if seconds is None or not is_new or not 0 < len(missing) <= _MOST_ASKED_AGAIN:
                break
            await asyncio.sleep(seconds)
        return found

    async def _accept(self, partition: HeldPartition, accepted: Sequence[Acceptance]) -> bool:
        """Write and take answers; False if the broker does not take them."""
        tp, pipeline = partition.tp, partition.pipeline
        try:
            async with partition.lock:
                if not partition.awaits_schemas:  # it is opened anew, and asks again
                    return True
                producer = self._producers.of(tp)
                if producer.has_failed:
                    await producer.open()
                if self._read_with[tp] is not producer.opening:
                    # What failed may be written, or another worker may have accepted others.
                    pipeline.translator = await self.translator(tp, partition.topic_id)
                translator = pipeline.translator
                new = [each for each in accepted if translator and translator.lacks(each)]
                if translator and new:
                    await self._log.save(tp, partition.topic_id, new, producer)
                    translator.accept(new)
        except KafkaError as error:
            told = (*tp, reason(error, "Write"))
            logger.warning("%s/%d: schemas not accepted, will retry: %s", *told, extra=at(tp))
            return False
        for each in new:
            found = "no schema" if each.schema is None else "schema"
            values = (*tp, found, each.schema_id, each.start)
            logger.info("%s/%d: %s %d from %d on", *values, extra=at(tp, each.start))
        return True

    def _tell(self, partition: HeldPartition, needed: Mapping[int, int], error: object) -> None:
        """Tell once that a partition waits."""
        if partition.metrics.awaited_schemas:
            return
        partition.metrics.awaited_schemas = len(needed)
        tp, offset = partition.tp, min(needed.values())
        values = (*tp, offset, ", ".join(map(str, needed)), error)
        logger.warning(
            "%s/%d: the record at %d waits for schema %s: %s", *values, extra=at(tp, offset)
        )


def _end(
    partition: HeldPartition, schema_id: int, start: int, end: int, schema: Schema | None
) -> int | None:
    """Return the offset that an answer no longer holds for; `end` is that after the records.

    That there is no schema is asked again, as it may come later: at once, then as many offsets
    later as were passed without it. So an id that never has a schema takes few acceptances.
    """
    translator = partition.pipeline.translator
    if schema is not None or translator is None:
        return None
    return end + min(_MOST_AHEAD, start - translator.accepted_since(schema_id, start))


def _first_answers(found: Iterable[Schema | BaseException | None]) -> list[Schema | None]:
    """Return the answers before the first one that the registry did not give."""
    answers: list[Schema | None] = []
    for each in found:
        if isinstance(each, RegistryError):
            break
        if isinstance(each, BaseException):
            raise each
        answers.append(each)
    return answers
