"""A clean run and what a real one left, to be compared."""

import asyncio
import random
import time
from collections import Counter, defaultdict

import orjson
from aiokafka import AIOKafkaProducer
from faust.types import TP

from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.kafka.topic_ids import topic_ids
from faust_oslrau.app.kafka.transactions import Producers
from faust_oslrau.app.pipeline import PartitionPipeline, Snapshot
from faust_oslrau.app.snapshots.configured import snapshot_store

# Kafka deletes what is older than a week, so that the rows must look fresh.
_NOW = int(time.time() * 1000)


def rows(number, partitions=1, seed=0):
    rng = random.Random(seed)
    found = []
    for i in range(number):
        a = rng.gauss(0, 1)
        value = orjson.dumps({"a": a, "b": a + rng.gauss(0, 0.1)})
        found.append((i % partitions, value, b"key-%d" % i, (), _NOW + i))
    return found


def by_partition(records):
    found = defaultdict(list)
    for record in records:
        found[record.partition].append(record)
    return found


def clean_run(client, settings):
    """Return scores and final state that a run without any trouble gives, by partition."""
    scores, states = {}, {}
    source = settings.source_topics[0]
    topic_id = asyncio.run(_topic_id(client, source))
    for partition, records in by_partition(client.read(source)).items():
        pipeline = PartitionPipeline(source, partition, settings)
        scores[partition] = [message.value for message in pipeline.process(records).scores]
        states[partition] = pipeline.snapshot(0, pipeline.next_offset, topic_id).to_bytes()
    return scores, states


async def _topic_id(client, topic):
    async with AIOKafkaProducer(bootstrap_servers=client.servers) as producer:
        return (await topic_ids(producer.client, [topic]))[topic]


def scores_of(client, settings):
    found = by_partition(client.read(settings.scores_topic))
    return {partition: [record.value for record in part] for partition, part in found.items()}


def newest_states(settings, partitions):
    """Return the bytes of each partition's newest snapshot."""

    async def newest(store, tp):
        await store.open(tp, read_only=True)
        async for stored in store.load(tp):
            return stored.data.read()

    async def read():
        # The reader's producers are never opened: a reader fences nobody.
        store = snapshot_store(settings, Producers(settings.app_id, client_arguments(settings)))
        source = settings.source_topics[0]
        return {p: await newest(store, TP(source, p)) for p in range(partitions)}

    return asyncio.run(read())


def assert_as_clean(client, settings, partitions, delivery="exactly_once"):
    """Compare scores and newest snapshots with a clean run's; at least once, without duplicates."""
    scores, states = clean_run(client, settings)
    found = scores_of(client, settings)
    if delivery == "at_least_once":
        scores, found = ({p: set(of[p]) for p in of} for of in (scores, found))
    assert found == scores, _difference(found, scores)
    assert_same_states(newest_states(settings, partitions), states)


def _difference(found, expected):
    """Tell of each partition which scores are missing or additional."""
    return "; ".join(
        f"partition {partition}: {len(one)} scores instead of {len(other)}, "
        f"missing {(Counter(other) - Counter(one)).total()}, "
        f"additional {(Counter(one) - Counter(other)).total()}"
        for partition in sorted(found.keys() | expected.keys())
        for one, other in [(found.get(partition, []), expected.get(partition, []))]
    )


def assert_same_states(found, expected):
    """Compare the bytes of snapshots by partition; tell what differs."""
    assert found.keys() == expected.keys()
    for partition, data in found.items():
        one, other = Snapshot.from_bytes(data), Snapshot.from_bytes(expected[partition])
        names = [name for name in one.__slots__ if getattr(one, name) != getattr(other, name)]
        assert data == expected[partition], f"partition {partition}: other {', '.join(names)}"
