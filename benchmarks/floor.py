"""What a record costs in the libraries alone, and what a partition holds."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

import numpy as np
import orjson
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from prometheus_client import CollectorRegistry, generate_latest

from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.partitions.held_partition import network_size
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import KafkaRecord, Record
from faust_oslrau.topics.readers import record_reader

from .pipeline_topic import FIELDS, rows
from .plan import Plan
from .report import NOISE, write_report

_CHUNK = 1024
_REPEATS = 100
_BATCH_BYTES = 2**19
_PLACE = TopicPartition("features", 0)
_HELD = 16_384

TEXT = f"""\
CPU microseconds per record of one thread, the best of {_REPEATS} chunks of {_CHUNK:,} rows of the
pipeline benchmark: what aiokafka, msgspec and orjson take for a record with nothing of this project
around them. *Their sum* is a floor for the plumbing of any worker that is built on them: sockets,
the event loop and Faust's work for each batch come on top, and whatever is done with a record."""

HELD_TEXT = """\
A partition with {nodes:,} nodes adds a snapshot of {snapshot_bytes:,} bytes to the store every time
that one is due, and {series} series to the page of metrics."""


def run(plan: Plan) -> None:
    """What a record costs in the libraries alone, and what a partition holds."""
    values = next(rows(0, _CHUNK))
    floor = library_us(values)
    total = sum(floor.values())
    table = [{"library": name, "µs": f"{us:.2f}"} for name, us in floor.items()]
    table.append({"library": "their sum", "µs": f"{total:.2f}"})
    held = partition_holds()
    parts = {name: round(us, 3) for name, us in floor.items()}
    figures = {"floor_us": round(total, 3), "parts_us": parts, **held}
    text = [TEXT, HELD_TEXT.format(**held)]
    write_report(plan.out, "floor", ["The floor", NOISE, *text], table, figures)


def library_us(values: list[bytes]) -> dict[str, float]:
    """Return microseconds per record of each operation."""
    data = packed(values)
    scores = [orjson.dumps(dict.fromkeys(FIELDS[:9], 0.123456)) for _ in values]
    (parse, get), pack = record_reader(FIELDS), struct.Struct(f"={len(FIELDS)}d").pack
    parts: dict[str, Callable[[], object]] = {
        "fetched bytes to records (aiokafka)": lambda: unpacked(data),
        "JSON to numbers (msgspec)": lambda: [pack(*get(parse(value))) for value in values],
        "numbers to JSON (orjson)": lambda: texts(len(values)),
        "messages to bytes (aiokafka)": lambda: packed(scores),
    }
    return {name: microseconds(part) / len(values) for name, part in parts.items()}


def packed(values: list[bytes]) -> bytes:
    """Return an encoded batch of messages, as producers send it."""
    batch = BatchBuilder(_BATCH_BYTES, 0)
    for value in values:
        batch.append(timestamp=1_700_000_000_000, key=None, value=value)
    return bytes(batch._build())


def unpacked(data: bytes) -> list[KafkaRecord]:
    """Return the records of a batch as the consumer does."""
    return list(PartitionRecords(_PLACE, MemoryRecords(data), [], 0, None, None, True, 0))


def texts(m: int) -> list[bytes]:
    """Return the smallest possible score: two numbers as JSON."""
    column = np.linspace(-10.0, 10.0, m) / 3.0
    log_likelihood, p_value = (
        orjson.dumps(column, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",") for _ in range(2)
    )
    pairs = zip(range(m), log_likelihood, p_value, strict=True)
    return [b'{"offset":%d,"log_likelihood":%b,"p_value":%b}' % pair for pair in pairs]


def microseconds(call: Callable[[], object]) -> float:
    """Return the CPU time of the fastest of many calls."""
    found = []
    for _ in range(_REPEATS):
        began = time.thread_time()
        call()
        found.append(time.thread_time() - began)
    return 1e6 * min(found)


def partition_holds() -> dict[str, int]:
    """Return the sizes of a partition that has learned for a while."""
    pipeline = PartitionPipeline("features", 0, Settings())
    metrics = Metrics(CollectorRegistry())
    empty = series(metrics)
    offset = 0
    for chunk in rows(0, _HELD):
        records = [Record("features", 0, offset + i, 0, None, row) for i, row in enumerate(chunk)]
        block = pipeline.process(records)
        offset += len(records)
        metrics.of_partition("features", 0).count_emitted(block, np.zeros(len(records)))
    learner = pipeline.learner
    if learner is not None:
        metrics.of_partition("features", 0).set_network(network_size(learner))
    snapshot = pipeline.snapshot(0, offset).to_bytes()
    return {
        "nodes": learner.n_nodes_ if learner else 0,
        "snapshot_bytes": len(snapshot),
        "series": series(metrics) - empty,
    }


def series(metrics: Metrics) -> int:
    """Return the number of series on the page."""
    lines = generate_latest(metrics.registry).splitlines()
    return sum(not line.startswith(b"#") for line in lines)
