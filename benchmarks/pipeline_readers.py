"""The worker's work done by others: ``python -m benchmarks.pipeline_readers stock|bare``.

They share the worker's settings, decoding, scoring, learning, encoding and compression, and differ
in how records come in and scores go out.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import faust
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from faust_oslrau.app.kafka.security import producer_arguments
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings, load_settings
from faust_oslrau.learner import compile_kernels
from faust_oslrau.topics import KafkaRecord, OutMessage, Record

TAKE = 4096
_BATCH_BYTES = 2**20  # takes as many scores


class Pipelines(dict[int, PartitionPipeline]):
    """The pipeline of each partition, made when its first record comes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __missing__(self, partition: int) -> PartitionPipeline:
        self[partition] = PartitionPipeline(
            self._settings.source_topics[0], partition, self._settings
        )
        return self[partition]


def stock(settings: Settings, folder: str) -> None:
    """Run a Faust agent as its documentation shows: `take`, and `send` for each score."""
    app = faust.App(
        settings.app_id,
        broker=f"aiokafka://{settings.broker}",
        key_serializer="raw",
        value_serializer="raw",
        producer_compression_type=settings.compression,
        datadir=folder,
        web_enabled=False,
    )
    scores, anomalies = app.topic(settings.scores_topic), app.topic(settings.anomalies_topic)
    pipelines = Pipelines(settings)

    async def score(stream: Any) -> None:
        async for events in stream.take_events(TAKE, within=0.1):
            for partition, records in _by_partition(events).items():
                block = pipelines[partition].process(records)
                await _send_each(scores, partition, block.scores)
                await _send_each(anomalies, partition, block.anomalies)

    app.agent(app.topic(*settings.source_topics))(score)
    faust.Worker(app, loglevel="INFO").execute_from_commandline()


def _by_partition(events: Sequence[Any]) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = defaultdict(list)
    for event in events:
        m = event.message
        milliseconds = round(1000 * m.timestamp)
        record = Record(m.topic, m.partition, m.offset, milliseconds, m.key, m.value)
        found[m.partition].append(record)
    return found


async def _send_each(topic: Any, partition: int, messages: Sequence[OutMessage]) -> None:
    for message in messages:
        seconds = None if message.timestamp is None else message.timestamp / 1000
        await topic.send(
            key=message.key, value=message.value, partition=partition, timestamp=seconds
        )


async def bare(settings: Settings) -> None:
    """Run a loop of aiokafka alone, which sends batches of scores."""
    pipelines = Pipelines(settings)
    consumer = AIOKafkaConsumer(
        *settings.source_topics,
        bootstrap_servers=settings.broker,
        group_id=settings.app_id,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    producer = AIOKafkaProducer(
        **producer_arguments(settings), enable_idempotence=True, max_batch_size=_BATCH_BYTES
    )
    async with consumer, producer:
        while True:
            fetched = await consumer.getmany(timeout_ms=100)
            sent = [
                acknowledged
                for tp, records in fetched.items()
                for first in range(0, len(records), TAKE)
                for acknowledged in await _score_and_send(
                    producer, settings, pipelines[tp.partition], records[first : first + TAKE]
                )
            ]
            await asyncio.gather(*sent)


async def _score_and_send(
    producer: AIOKafkaProducer,
    settings: Settings,
    pipeline: PartitionPipeline,
    records: Sequence[KafkaRecord],
) -> list[asyncio.Future[Any]]:
    block = pipeline.process(records)
    outputs = {settings.scores_topic: block.scores, settings.anomalies_topic: block.anomalies}
    return [
        await producer.send_batch(_batch(producer, messages), topic, partition=pipeline.partition)
        for topic, messages in outputs.items()
        if messages
    ]


def _batch(producer: AIOKafkaProducer, messages: Sequence[OutMessage]) -> Any:
    batch = producer.create_batch()
    for message in messages:
        if not batch.append(key=message.key, value=message.value, timestamp=message.timestamp):
            raise RuntimeError(f"expected {len(messages)} messages to fit {_BATCH_BYTES} bytes")
    return batch


if __name__ == "__main__":
    chosen = load_settings(None, os.environ)
    compile_kernels()
    if sys.argv[1] == "bare":
        asyncio.run(bare(chosen))
    with tempfile.TemporaryDirectory() as data:
        stock(chosen, data)
