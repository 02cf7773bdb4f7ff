"""Reads stretches of one partition, outside any group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaTimeoutError

from .no_creation import create_no_topics
from .topic_ids import topic_ids

_FETCH_MILLISECONDS = 500
# How long a fetch of existing records may return nothing before it counts as failed.
_FETCH_TIMEOUT_SECONDS = 30.0
_STOP_SECONDS = 2.0


class PartitionReader:
    """A consumer of one partition, by default read_committed; an async context manager."""

    def __init__(
        self,
        topic: str,
        partition: int,
        client_arguments: Mapping[str, Any],
        isolation_level: str = "read_committed",
    ) -> None:
        self._tp = TopicPartition(topic, partition)
        self._consumer = AIOKafkaConsumer(
            **client_arguments,
            isolation_level=isolation_level,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        create_no_topics(self._consumer)

    async def __aenter__(self) -> Self:
        """Connect."""
        try:
            await self._consumer.start()
        except BaseException:
            await self._stop()
            raise
        self._consumer.assign([self._tp])
        return self

    async def __aexit__(self, *_: object) -> None:
        """Disconnect."""
        await self._stop()

    async def exists(self) -> bool:
        """Return whether there is such a partition.

        Raises
        ------
        KafkaError
            No broker answers, or the user may not know.
        """
        client = self._consumer._client
        await topic_ids(client, [self._tp.topic])  # among all topics, a forbidden one is absent
        known = await client.fetch_all_metadata()
        return self._tp.partition in (known.partitions_for_topic(self._tp.topic) or ())

    async def range(self) -> tuple[int, int]:
        """Return the first offset and the next one after the last."""
        first = await self._consumer.beginning_offsets([self._tp])
        end = await self._consumer.end_offsets([self._tp])
        return first[self._tp], end[self._tp]

    async def records(self, low: int, high: int) -> AsyncIterator[Any]:
        """Yield the committed records from offset `low` to before `high`.

        Raises
        ------
        KafkaTimeoutError
            The broker returns none of them.
        """
        self._consumer.seek(self._tp, low)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _FETCH_TIMEOUT_SECONDS
        while await self._consumer.position(self._tp) < high:
            fetched = await self._consumer.getmany(self._tp, timeout_ms=_FETCH_MILLISECONDS)
            for record in fetched.get(self._tp, []):
                if record.offset < high:
                    yield record
            if fetched:
                deadline = loop.time() + _FETCH_TIMEOUT_SECONDS
            elif loop.time() > deadline:
                raise KafkaTimeoutError(f"{self._tp} returns no records from {low} to {high}")

    async def _stop(self) -> None:
        stopping = asyncio.create_task(self._consumer.stop())
        # Not awaited directly: aiokafka's consumer is cancelled if it stops right after its start.
        await asyncio.wait({stopping}, timeout=_STOP_SECONDS)
        stopping.cancel()
