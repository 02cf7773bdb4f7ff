"""What became of the records: outputs and states against those of a run without faults."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.types import TP

from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.kafka.transactions import Producers
from faust_oslrau.app.pipeline import PartitionPipeline, Snapshot
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots.configured import snapshot_store


@dataclass(slots=True)
class Outcome:
    seed: int
    delivery: str
    records: int
    faults: int
    kinds: dict[str, int]
    lost: int = 0
    learned_twice: int = 0
    differing_scores: int = 0
    differing_models: int = 0
    duplicates: int = 0
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        repeated = self.duplicates if self.delivery == "exactly_once" else 0
        wrong = self.lost + self.learned_twice + self.differing_scores + self.differing_models
        return wrong + repeated == 0


async def verify_partition(settings: Settings, partition: int, outcome: Outcome) -> None:
    """Compare one partition, and add to the outcome what is not as it should be."""
    pipeline = PartitionPipeline("features", partition, settings)
    records = [record async for record in _read(settings, "features", partition)]
    block = pipeline.process(records)
    for topic, messages in (("scores", block.scores),
                            ("anomalies", block.alerts),
                            ("features-dead-letters", block.dead_letters)):  # fmt: skip
        expected = {
            (message.offset, _kind(topic, message.value)): message.value for message in messages
        }
        seen: Counter[tuple[int, Any]] = Counter()
        async for record in _read(settings, topic, partition):
            name = _source_offset(topic, record), _kind(topic, record.value)
            seen[name] += 1
            outcome.differing_scores += expected.get(name) != record.value
        outcome.lost += len(expected.keys() - seen.keys())
        outcome.duplicates += seen.total() - len(seen)
    state = await _newest_state(settings, partition)
    found = Snapshot.from_bytes(state) if state else None
    topic_id = found and found.topic_id
    clean = pipeline.snapshot(0, pipeline.next_offset or 0, topic_id)
    outcome.differing_models += state != clean.to_bytes()
    learned = found.records if found else 0
    outcome.learned_twice += max(0, learned - clean.records)


async def _newest_state(settings: Settings, partition: int) -> bytes | None:
    tp = TP("features", partition)
    store = snapshot_store(settings, Producers("chaos", client_arguments(settings)))
    await store.open(tp, read_only=True)
    async for stored in store.load(tp):
        return stored.data.read()
    return None


async def _read(settings: Settings, topic: str, partition: int) -> AsyncIterator[Any]:
    place = TopicPartition(topic, partition)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.broker,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    async with consumer:
        consumer.assign([place])
        end = (await consumer.end_offsets([place]))[place]
        while await consumer.position(place) < end:
            for found in (await consumer.getmany(place, timeout_ms=200)).values():
                for record in found:
                    yield record


def _source_offset(topic: str, record: Any) -> int:
    if topic == "features-dead-letters":
        return int(dict(record.headers)["oslrau-offset"])
    return int(orjson.loads(record.value)["offset"])


def _kind(topic: str, value: bytes) -> tuple[str | None, str | None] | None:
    """Return what tells apart the messages of one record in a topic: an anomaly, its incidents."""
    if topic != "anomalies":
        return None
    message = orjson.loads(value)
    return message.get("event"), message.get("state")
