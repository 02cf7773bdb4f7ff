"""What became of the records: outputs and states against those of a run without faults."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import orjson
from clean_run import by_partition, newest_states
from kafka_client import KafkaClient

from faust_oslrau.app.pipeline import PartitionPipeline, Snapshot
from faust_oslrau.app.settings import Settings


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


def verify(settings: Settings, partitions: int, outcome: Outcome) -> None:
    """Compare all partitions, and add to the outcome what is not as it should be."""
    client, outputs = KafkaClient(settings.broker), ("scores", "anomalies", "features-dead-letters")
    states = newest_states(settings, partitions)
    topics = {topic: by_partition(client.read(topic)) for topic in ("features", *outputs)}
    for partition in range(partitions):
        pipeline = PartitionPipeline("features", partition, settings)
        block = pipeline.process(topics["features"][partition])
        for topic, messages in zip(
            outputs, (block.scores, block.alerts, block.dead_letters), strict=True
        ):
            expected = {
                (message.offset, _kind(topic, message.value)): message.value for message in messages
            }
            seen: Counter[tuple[int, Any]] = Counter()
            for record in topics[topic][partition]:
                name = _source_offset(topic, record), _kind(topic, record.value)
                seen[name] += 1
                outcome.differing_scores += expected.get(name) != record.value
            outcome.lost += len(expected.keys() - seen.keys())
            outcome.duplicates += seen.total() - len(seen)
        state = states[partition]
        found = Snapshot.from_bytes(state) if state else None
        clean = pipeline.snapshot(0, pipeline.next_offset or 0, found and found.topic_id)
        outcome.differing_models += state != clean.to_bytes()
        learned = found.records if found else 0
        outcome.learned_twice += max(0, learned - clean.records)


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
