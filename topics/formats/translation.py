"""Translates the records of one partition to JSON by the schemas that were accepted for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter

from faust_oslrau.topics.records import KafkaRecord, Record
from faust_oslrau.topics.rejections import Reason, Rejection, reject_large

from .codecs import codec
from .errors import ContentError, LargeContentError, SchemaError, one_line
from .framing import HEADER_BYTES, schema_id
from .schemas import Acceptance, Acceptances, Schema

_MEMBERS = attrgetter(*Record._fields)
# Like `Record._make`, without a Python function call for each record.
_make = partial(tuple.__new__, Record)


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
        # By the first bytes of records whose schema is accepted for all later ones.
        self._decoders: dict[bytes, Callable[[bytes], bytes]] = {}
        self._wrong: dict[Schema, SchemaError] = {}

    def accept(self, accepted: Iterable[Acceptance]) -> None:
        """Take accepted answers of the registry."""
        self._accepted.add(accepted)

    def lacks(self, wanted: Acceptance) -> bool:
        """Tell whether no answer is accepted for the first record of another one."""
        return self._accepted.at(wanted.schema_id, wanted.start) is None

    def has_answer(self, schema_id: int) -> bool:
        """Tell whether an answer is accepted for any record with an id."""
        return self._accepted.first(schema_id) is not None

    def accepted_since(self, schema_id: int, offset: int) -> int:
        """Return the first offset that an answer holds for; `offset` if there is no answer."""
        first = self._accepted.first(schema_id)
        return offset if first is None else first.start

    def needs(self, records: Sequence[KafkaRecord]) -> dict[int, int]:
        """Return the ids that the registry is to be asked for, each with its first offset."""
        values = (record.value for record in records)
        if self._decoders.keys() >= {value[:HEADER_BYTES] for value in values if value}:
            return {}
        needed: dict[int, int] = {}
        for record in records:
            found = schema_id(record.value or b"")
            if isinstance(found, int) and self._accepted.at(found, record.offset) is None:
                needed.setdefault(found, record.offset)
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
        # Most records need nothing but this loop and their decoder.
        decoders, limit = self._decoders, self._max_bytes
        for topic, partition, offset, timestamp, key, value, headers in map(_MEMBERS, records):
            document: bytes | Rejection | None = None
            if value is not None:
                try:
                    if len(value) > limit:
                        raise KeyError
                    document = decoders[value[:HEADER_BYTES]](value)
                except KeyError:
                    document = self._odd(value, offset)
                except ContentError as error:
                    document = self._not_of_schema(value, error)
            if isinstance(document, Rejection):
                rejected[len(translated)] = document
                document = None
            record = (topic, partition, offset, timestamp, key, document, headers)
            translated.append(_make(record))
        return translated, rejected

    def _odd(self, value: bytes, offset: int) -> bytes | Rejection:
        """Return the JSON of a record whose first bytes are not known yet."""
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
        try:
            decode = self._decoder(accepted.schema)
            self._decoders[value[:HEADER_BYTES]] = decode
            return decode(value)
        except SchemaError as error:
            return Rejection(Reason.WRONG_SCHEMA, f"schema {found}: {one_line(str(error))}")
        except ContentError as error:
            return self._not_of_schema(value, error)

    def _decoder(self, schema: Schema) -> Callable[[bytes], bytes]:
        if schema in self._wrong:
            raise self._wrong[schema]
        try:
            return codec(self._format, schema, self._max_bytes).decode
        except SchemaError as error:
            self._wrong[schema] = error
            raise

    def _not_of_schema(self, value: bytes, error: ContentError) -> Rejection:
        found = f"schema {schema_id(value)}: {one_line(str(error))}"
        if isinstance(error, LargeContentError):
            return Rejection(
                Reason.TOO_LARGE, f"{found}, at most {self._max_bytes} bytes are taken"
            )
        return Rejection(Reason.NOT_OF_SCHEMA, found)
