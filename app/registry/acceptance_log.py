"""Stores what was accepted of a registry's answers, in a compacted topic.

An acceptance of a source partition is in the topic's partition of the same number. Its key names
the deployment, the partition, the first offset that it holds for and the id, so that compaction
keeps all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from msgspec import Meta, Struct

from faust_oslrau.app.errors import OslrauError
from faust_oslrau.app.kafka.partition_reader import PartitionReader
from faust_oslrau.app.kafka.topic_ids import is_recreated
from faust_oslrau.app.logs import at
from faust_oslrau.app.settings import Settings, short
from faust_oslrau.topics import OutMessage
from faust_oslrau.topics.formats import Acceptance, Schema

from .foreign import SchemaId, read

if TYPE_CHECKING:
    from faust.types import TP

    from faust_oslrau.app.kafka.transactions import TransactionalProducer

logger = logging.getLogger(__name__)

_FORMAT = 1


class _Version(Struct):
    format: int = _FORMAT
    id: Any = None


class _Schema(Struct):
    kind: str
    text: str
    references: list[tuple[str, str]]


class _Stored(Struct):
    """An acceptance as it is stored."""

    id: SchemaId
    schema: _Schema | None
    start: Annotated[int, Meta(ge=0)]
    end: Annotated[int, Meta(ge=1)] | None
    registry: str | None
    topic_id: str | None

    @property
    def acceptance(self) -> Acceptance:
        found = self.schema
        schema = None if found is None else Schema(found.kind, found.text, tuple(found.references))
        return Acceptance(self.id, schema, self.start, self.end)


class OtherAcceptanceError(OslrauError):
    """A later version has accepted a schema, in a format that this one does not read."""


class AcceptanceLog:
    """The acceptances of a deployment.

    Parameters
    ----------
    settings
        The settings of its workers.
    client_arguments
        Connection arguments of aiokafka's clients.
    """

    def __init__(self, settings: Settings, client_arguments: Mapping[str, Any]) -> None:
        self._topic = settings.registry.schemas_topic
        self._registry = settings.registry.url
        self._app_id = settings.app_id
        self._arguments = client_arguments

    async def load(self, tp: TP, topic_id: str | None) -> list[Acceptance]:
        """Return what was accepted for a source partition, of a topic with this id.

        Raises
        ------
        KafkaError
            The topic cannot be read, or another deployment's transaction is open for too long.
        OtherAcceptanceError
            A later version wrote some.
        """
        found: dict[bytes, _Stored] = {}
        odd: list[int] = []
        first, end = await self._whole_range(tp)
        if end > first:
            async with self._reader(tp, "read_committed") as reader:
                async for record in reader.records(first, end):
                    self._add(tp, record, found, odd)
        if odd:
            values = (*tp, self._topic, tp.partition, odd[0], len(odd))
            logger.warning(
                "%s/%d: in %s/%d, the message at %d is no acceptance, of %d that are passed over",
                *values,
                extra=at(tp),
            )
        return self._of_topic(tp, found.values(), topic_id)

    def _add(self, tp: TP, record: Any, found: dict[bytes, _Stored], odd: list[int]) -> None:
        """Add a message of this partition, or the offset of one that another program wrote."""
        if record.value is None or not (record.key or b"").startswith(self._prefix(tp)):
            return
        stored = _stored(record.value)
        if stored is None or self._key(tp, stored.acceptance) != record.key:
            odd.append(record.offset)
        else:
            found[record.key] = stored

    async def save(
        self,
        tp: TP,
        topic_id: str | None,
        accepted: Iterable[Acceptance],
        producer: TransactionalProducer,
    ) -> None:
        """Write acceptances of a source partition, by the producer that fences its former owner.

        Raises
        ------
        LostPartitionError
            Another worker owns the partition.
        KafkaError
            They could not be written, or may be.
        """
        messages = [
            OutMessage(
                0, self._key(tp, each), acceptance_value(each, self._registry, topic_id), None
            )
            for each in accepted
        ]
        async with producer.transaction() as transaction:
            await transaction.send(self._topic, tp.partition, messages)

    async def _whole_range(self, tp: TP) -> tuple[int, int]:
        """Return the first offset and the end; no offsets without such a topic.

        The end of committed records would be before an open transaction of another deployment, and
        hide what this one has accepted after it.
        """
        async with self._reader(tp, "read_uncommitted") as reader:
            # `replay` may come before the first worker
            return await reader.range() if await reader.exists() else (0, 0)

    def _reader(self, tp: TP, isolation_level: str) -> PartitionReader:
        return PartitionReader(self._topic, tp.partition, self._arguments, isolation_level)

    def _of_topic(self, tp: TP, found: Iterable[_Stored], topic_id: str | None) -> list[Acceptance]:
        own = [each for each in found if not is_recreated(each.topic_id, topic_id)]
        registries = {each.registry for each in own if each.registry is not None}
        others = sorted(registries - {self._registry})
        if others:
            values = (*tp, ", ".join(others), self._registry)
            logger.warning(
                "%s/%d: schemas were accepted from %s and go on to hold, so ids of %s must have "
                "the same meaning",
                *values,
                extra=at(tp),
            )
        return [each.acceptance for each in own]

    def _prefix(self, tp: TP) -> bytes:
        return f"{self._app_id}/{tp.topic}/{tp.partition}/".encode()

    def _key(self, tp: TP, accepted: Acceptance) -> bytes:
        return self._prefix(tp) + f"{accepted.start}/{accepted.schema_id}".encode()


def acceptance_value(accepted: Acceptance, registry: str | None, topic_id: str | None) -> bytes:
    """Return the message of an acceptance, as JSON."""
    schema = accepted.schema
    return orjson.dumps(
        {
            "format": _FORMAT,
            "id": accepted.schema_id,
            "schema": None if schema is None else schema._asdict(),
            "start": accepted.start,
            "end": accepted.end,
            "registry": registry,
            "topic_id": topic_id,
        }
    )


def acceptance_of(value: bytes) -> Acceptance | None:
    """Return the acceptance of a message; None if it is none.

    Raises
    ------
    OtherAcceptanceError
        A later version wrote it.
    """
    stored = _stored(value)
    return None if stored is None else stored.acceptance


def _stored(value: bytes) -> _Stored | None:
    """Return what is stored in a message; one that names no format has the first."""
    try:
        version = read(_Version, value)
        if version.format <= _FORMAT:
            return read(_Stored, value) if version.format == _FORMAT else None
    except ValueError:
        return None
    raise OtherAcceptanceError(
        f"accepted schema {short(version.id)}: expected format {_FORMAT}, got {version.format}"
    )
