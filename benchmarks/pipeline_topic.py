"""Makes a topic of simulated sensor rows, and counts the messages of score topics."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import numpy as np
import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

PARTITIONS = 16
FIELDS = tuple(f"f{number:02}" for number in range(16))
_REGIMES, _FACTORS = 4, 4
_CHUNK = 1024  # records of one message batch, about 270 kB


def rows(partition: int, count: int) -> Iterator[list[bytes]]:
    """Yield chunks of JSON rows of 16 correlated fields, the same for every call."""
    shape, rng = np.random.default_rng(0), np.random.default_rng([1, partition])
    centres = shape.normal(0, 3, size=(_REGIMES, len(FIELDS)))
    loadings = shape.normal(size=(_FACTORS, len(FIELDS)))
    for start in range(0, count, _CHUNK):
        m = min(_CHUNK, count - start)
        regime = centres[rng.integers(_REGIMES, size=m)]
        common = np.einsum("mf,fd->md", rng.normal(size=(m, _FACTORS)), loadings)
        X = regime + common + rng.normal(0, 0.5, size=(m, len(FIELDS)))
        yield [orjson.dumps(dict(zip(FIELDS, row, strict=True))) for row in X.round(6).tolist()]


async def create_topics(servers: str, *topics: str, **configs: str) -> None:
    """Create topics of 16 partitions, and wait until the broker knows them."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        new = [NewTopic(topic, PARTITIONS, 1, topic_configs=configs) for topic in topics]
        await admin.create_topics(new)
        while not set(topics) <= set(await admin.list_topics()):
            await asyncio.sleep(0.05)
    finally:
        await admin.close()


async def fill(servers: str, topic: str, records: int) -> None:
    """Write the rows, the same number to each partition."""
    async with AIOKafkaProducer(bootstrap_servers=servers, max_batch_size=2**19) as producer:
        for partition in range(PARTITIONS):
            for chunk in rows(partition, records // PARTITIONS):
                batch = producer.create_batch()
                for row in chunk:
                    batch.append(key=None, value=row, timestamp=None)
                await producer.send_batch(batch, topic, partition=partition)


async def grown(consumer: AIOKafkaConsumer, topic: str) -> int:
    """Return the number of messages in the topic."""
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    return sum((await consumer.end_offsets(partitions)).values())
