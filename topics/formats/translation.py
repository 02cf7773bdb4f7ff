"""Translates the records of one partition to JSON by the schemas that were accepted for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from faust_oslrau.topics.records import KafkaRecord, Record
from faust_oslrau.topics.rejections import Reason, Rejection, reject_large

from .codecs import Codec, codec
from .errors import ContentError, SchemaError
from .framing import HEADER_BYTES, schema_id
from .schemas import Acceptance, Acceptances, Schema


class Translator:
    """Translates the records of one partition, which come in the order of its log.

    Parameters
    ----------
    format_name
        One of `KINDS`.
    max_bytes
        The size of the largest record that is read.
    """

    def __init__(self, format_name: str, max_bytes: int) -> None:
        self._format = format_name
        self._max_bytes = max_bytes
        self._accepted = Acceptances()
        # The first bytes of records whose schema is accepted for all later ones.
        self._settled = set[bytes]()
        self._codecs: dict[Schema, Codec | SchemaError] = {}

    def accept(self, accepted: Iterable[Acceptance]) -> None:
        """Take accepted answers of the registry."""
        self._accepted.add(accepted)

    def lacks(self, wanted: Acceptance) -> bool:
        """Tell whether no answer is accepted for the first record of another one."""
        return self._accepted.at(wanted.schema_id, wanted.start) is None

    def needs(self, records: Sequence[KafkaRecord]) -> dict[int, int]:
        """Return the ids that the registry is to be asked for, each with its first offset."""
        values = (record.value for record in records)
        if self._settled.issuperset({value[:HEADER_BYTES] for value in values if value}):
            return {}
        needed: dict[int, int] = {}
        for record in records:
            found = schema_id(record.value or b"")
            if isinstance(found, Rejection):
                continue
            accepted = self._accepted.at(found, record.offset)
            if accepted is None:
                needed.setdefault(found, record.offset)
            elif accepted.end is None and record.value is not None:
                self._settled.add(record.value[:HEADER_BYTES])
        return needed

    def translate(
        self, records: Sequence[KafkaRecord]
    ) -> tuple[list[KafkaRecord], dict[int, Rejection]]:
        """Return the records with JSON as their values, and the rejections by their positions.

        A rejected record has no value.

        Raises
        ------
        ValueError
            The registry is to be asked for the schema of a record first.
        """
        translated: list[KafkaRecord] = []
        rejected: dict[int, Rejection] = {}
        for position, record in enumerate(records):
            value = None if record.value is None else self._json(record.value, record.offset)
            if isinstance(value, Rejection):
                rejected[position] = value
                value = None
            translated.append(
                Record(
                    record.topic,
                    record.partition,
                    record.offset,
                    record.timestamp,
                    record.key,
                    value,
                    record.headers,
                )
            )
        return translated, rejected

    def _json(self, value: bytes, offset: int) -> bytes | Rejection:
        if len(value) > self._max_bytes:
            return reject_large(value, self._max_bytes)
        found = schema_id(value)
        if isinstance(found, Rejection):
            return found
        accepted = self._accepted.at(found, offset)
        if accepted is None:
            raise ValueError(f"expected an accepted answer for schema {found} at {offset}")
        if accepted.schema is None:
            return Rejection(Reason.UNKNOWN_SCHEMA, f"the registry had no schema {found}")
        reader = self._codec(accepted.schema)
        if isinstance(reader, SchemaError):
            return Rejection(Reason.WRONG_SCHEMA, f"schema {found}: {reader}")
        try:
            return reader.decode(value)
        except ContentError as error:
            return Rejection(Reason.NOT_OF_SCHEMA, f"schema {found}: {error}")

    def _codec(self, schema: Schema) -> Codec | SchemaError:
        found = self._codecs.get(schema)
        if found is None:
            try:
                found = codec(self._format, schema)
            except SchemaError as error:
                found = error
            self._codecs[schema] = found
        return found
