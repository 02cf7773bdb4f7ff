"""Reads the messages of output topics: from a file, or from topics as they come."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from faust_oslrau.app.errors import BrokerError
from faust_oslrau.app.kafka.clients import connected, connected_admin, partition_count
from faust_oslrau.app.kafka.rights import reason
from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import KafkaRecord, Record

from .input_files import check_regular
from .input_lines import NdjsonInput
from .input_messages import InputFileError
from .input_tables import ParquetInput

_POLL_MS = 200
_LETTER = {"key", "value", "headers"}


def file_messages(path: Path) -> Iterator[KafkaRecord]:
    """Yield the messages of a file that `replay` wrote: Parquet by its name, else NDJSON.

    Raises
    ------
    InputFileError
        The file cannot be read.
    """
    check_regular(path)
    is_table = path.suffix.lower() == ".parquet"
    try:
        source = ParquetInput(path, None) if is_table else NdjsonInput(path, None)
        for number, (_, value) in enumerate(source, start=1):
            if value.strip():
                yield _of_line(path, number, value)
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror or error}") from None


def _of_line(path: Path, number: int, value: bytes) -> Record:
    place = (str(path), 0, number, None)
    try:
        data = orjson.loads(value)
        if isinstance(data, dict) and data.keys() == _LETTER:
            headers = tuple((str(name), _bytes(text) or b"") for name, text in data["headers"])
            return Record(*place, _bytes(data["key"]), _bytes(data["value"]), headers)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass  # not what `replay` writes
    return Record(*place, None, value)


def _bytes(content: Any) -> bytes | None:
    """Return what `letter_data` made a text, or an object, of."""
    if content is None:
        return None
    encoded: bytes = b64decode(content["base64"]) if isinstance(content, dict) else content.encode()
    return encoded


async def topic_messages(
    topics: Sequence[str], since: int | None, settings: Settings
) -> AsyncGenerator[KafkaRecord, None]:
    """Yield the messages of topics as they come, without an end.

    The first have a time of at least `since`, in milliseconds since 1970: 0 is the beginning of
    the topics, None the moment of the call.

    Raises
    ------
    BrokerError
        The broker is unavailable, or refuses to let the topics be read.
    TopicError
        There is no such topic.
    """
    async with connected_admin(settings) as admin:
        counts = {topic: await partition_count(admin, topic) for topic in topics}
    tps = [TopicPartition(topic, p) for topic, count in counts.items() for p in range(count)]
    consumer = AIOKafkaConsumer(
        **client_arguments(settings),
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",  # what retention deleted is passed over
        max_partition_fetch_bytes=settings.max_output_bytes,
    )
    async with connected(consumer, settings):
        try:
            await _seek(consumer, tps, since)
            while True:
                for records in (await consumer.getmany(timeout_ms=_POLL_MS)).values():
                    for record in records:
                        yield record
        except KafkaError as error:
            raise BrokerError(f"topic {', '.join(topics)}: {reason(error)}") from error


async def _seek(consumer: AIOKafkaConsumer, tps: list[TopicPartition], since: int | None) -> None:
    consumer.assign(tps)
    if since == 0:  # messages without a time, too
        starts = await consumer.beginning_offsets(tps)
    else:
        starts = await consumer.end_offsets(tps)
        if since is not None:
            found = await consumer.offsets_for_times(dict.fromkeys(tps, since))
            starts |= {tp: first.offset for tp, first in found.items() if first is not None}
    for tp, start in starts.items():
        consumer.seek(tp, start)
