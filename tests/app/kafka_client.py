"""A Kafka client for tests: blocking calls that fill, read and change topics."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import starmap
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, OffsetAndMetadata, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from faust_oslrau.app.kafka.topic_ids import topic_ids

_PATIENCE_SECONDS = 300.0
_POLL_SECONDS = 0.05
_REQUEST = {"request_timeout_ms": int(1000 * _PATIENCE_SECONDS)}


class _Row(NamedTuple):
    partition: int
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    timestamp: int | None = None


class KafkaClient:
    """Blocking calls on a broker, each with a connection of its own."""

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def create(self, topic: str, partitions: int = 1, replicas: int = 1, **config: str) -> None:
        new = NewTopic(topic, partitions, replicas, topic_configs=config)

        async def create(admin: AIOKafkaAdminClient) -> None:
            await admin.create_topics([new])
            while topic not in await admin.list_topics():
                await asyncio.sleep(_POLL_SECONDS)

        self._ask(create)

    def topics(self) -> set[str]:
        """Return the names of all topics, without a request that names one."""
        return set(self._ask(lambda admin: admin.list_topics()))

    def partitions(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions."""
        return [each["partition"] for each in self._described_partitions(topic)]

    def configure(self, topic: str, **config: str) -> None:
        """Change the configuration of a topic to these values and the broker's defaults."""
        changed = ConfigResource(ConfigResourceType.TOPIC, topic, config)
        self._ask(lambda admin: admin.alter_configs([changed]))

    def send(
        self,
        topic: str,
        rows: Iterable[tuple[Any, ...]],
        abort: bool | None = None,
        compression: str | None = None,
    ) -> None:
        """Send rows (partition, value, key, headers, timestamp), those of a partition in order.

        With `abort` in a transaction, which is aborted or committed.
        """
        options = {} if abort is None else {"transactional_id": f"{topic}-{time.monotonic_ns()}"}

        async def send() -> None:
            async with AIOKafkaProducer(
                bootstrap_servers=self.servers,
                **_REQUEST,
                max_batch_size=2**18,
                max_request_size=2**22,
                compression_type=compression,
                enable_idempotence=True,  # a change of leaders neither loses nor repeats records
                **options,
            ) as producer:
                if abort is not None:
                    await producer.begin_transaction()
                await asyncio.gather(
                    *[
                        await producer.send(
                            topic,
                            row.value,
                            key=row.key,
                            partition=row.partition,
                            headers=list(row.headers),
                            timestamp_ms=row.timestamp,
                        )
                        for row in starmap(_Row, rows)
                    ]
                )
                if abort is not None:
                    await (producer.abort_transaction if abort else producer.commit_transaction)()

        asyncio.run(send())

    def read(self, topic: str) -> list[Any]:
        """Return all committed records of a topic, partition by partition.

        A transaction is committed a moment before its records can be read, so that this waits until
        no transaction with records of the topic is open.
        """

        async def read() -> list[Any]:
            found: dict[TopicPartition, list[Any]] = {}
            async with (
                AIOKafkaConsumer(bootstrap_servers=self.servers, **_REQUEST) as open_too,
                AIOKafkaConsumer(
                    bootstrap_servers=self.servers,
                    isolation_level="read_committed",
                    auto_offset_reset="earliest",
                    **_REQUEST,
                ) as consumer,
            ):
                numbers = await consumer._client._wait_on_metadata(topic)
                partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
                consumer.assign(partitions)
                deadline = time.monotonic() + _PATIENCE_SECONDS
                while (ends := await consumer.end_offsets(partitions)) != (
                    await open_too.end_offsets(partitions)
                ):
                    assert time.monotonic() < deadline, f"{topic} has an open transaction"
                    await asyncio.sleep(_POLL_SECONDS)
                found = {tp: [] for tp in partitions}
                while not all([await consumer.position(tp) >= ends[tp] for tp in partitions]):
                    for tp, records in (await consumer.getmany(timeout_ms=100)).items():
                        found[tp] += records
            return [record for tp in partitions for record in found[tp]]

        return asyncio.run(read())

    def wait_messages(self, topic: str, count: int) -> int:
        """Wait until a topic has so many messages, and return their number.

        Those of open and aborted transactions count as well. The pages of a worker are made once a
        second, which is too late to catch it in the middle of its work.
        """

        async def wait() -> int:
            async with AIOKafkaConsumer(bootstrap_servers=self.servers, **_REQUEST) as consumer:
                deadline = time.monotonic() + _PATIENCE_SECONDS
                while (found := await _count(consumer, topic)) < count:
                    assert time.monotonic() < deadline, f"{topic} still has {found} messages"
                    await asyncio.sleep(_POLL_SECONDS)
            return found

        return asyncio.run(wait())

    def leader(self, topic: str, partition: int) -> int:
        """Return the number of the node that leads a partition."""
        return next(
            int(each["leader"])
            for each in self._described_partitions(topic)
            if each["partition"] == partition
        )

    def is_led_as_preferred(self, topic: str) -> bool:
        """Return whether the first replica of each partition leads it."""
        return all(
            each["leader"] == each["replicas"][0] for each in self._described_partitions(topic)
        )

    def _described_partitions(self, topic: str) -> list[dict[str, Any]]:
        """Return a topic's partitions, when the broker that is asked has heard of them.

        Brokers hear of a new topic one after the other.
        """

        async def describe(admin: AIOKafkaAdminClient) -> list[dict[str, Any]]:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while not (found := (await admin.describe_topics([topic]))[0]["partitions"]):
                assert time.monotonic() < deadline, f"{topic} has no partitions"
                await asyncio.sleep(_POLL_SECONDS)
            return list(found)

        found: list[dict[str, Any]] = self._ask(describe)
        return found

    def delete(self, topic: str) -> None:
        """Delete a topic, and return when the brokers know it no more."""

        async def delete(admin: AIOKafkaAdminClient) -> None:
            deleted = await topic_ids(admin._client, [topic])
            await admin.delete_topics([topic])
            while deleted.items() & (await topic_ids(admin._client, [topic])).items():
                await asyncio.sleep(_POLL_SECONDS)

        self._ask(delete)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        records = {TopicPartition(topic, partition): RecordsToDelete(before_offset=offset)}
        self._ask(lambda admin: admin.delete_records(records))

    def committed(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what a group has committed."""
        found: dict[TopicPartition, OffsetAndMetadata] = self._ask(
            lambda admin: admin.list_consumer_group_offsets(group)
        )
        return found

    def add_partitions(self, topic: str, total: int) -> None:
        self._ask(lambda admin: admin.create_partitions({topic: NewPartitions(total)}))

    def _ask(self, question: Callable[[AIOKafkaAdminClient], Awaitable[Any]]) -> Any:
        """Return what a client for changes answers."""

        async def ask() -> Any:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.servers, **_REQUEST)
            await admin.start()
            try:
                return await question(admin)
            finally:
                await admin.close()

        return asyncio.run(ask())


async def _count(consumer: AIOKafkaConsumer, topic: str) -> int:
    if topic not in await consumer.topics():
        return 0
    numbers = await consumer._client._wait_on_metadata(topic)
    partitions = [TopicPartition(topic, number) for number in numbers]
    first = await consumer.beginning_offsets(partitions)
    ends = await consumer.end_offsets(partitions)
    return sum(ends[tp] - first[tp] for tp in partitions)
