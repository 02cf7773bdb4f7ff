"""What the worker's metrics cost, against the work that they count."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import numpy as np
from prometheus_client import CollectorRegistry

from faust_oslrau.app.metrics import Metrics, metrics_page
from faust_oslrau.app.partitions.held_partition import ages, network_size
from faust_oslrau.app.pipeline import PartitionPipeline, ProcessedBlock
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record

from .pipeline_topic import PARTITIONS, rows
from .plan import Plan
from .report import NOISE, write_report

_RECORDS, _WARM_UP = 60_000, 30_000
_SCRAPE_SECONDS = 15  # docker/prometheus/prometheus.yml
_REPEATS = 20

TEXT = f"""\
CPU time. The pipeline decodes, scores, learns and encodes {_RECORDS:,} records of 16
fields; the figures leave out the first {_WARM_UP:,}. A worker with {PARTITIONS} partitions counts
each batch, measures each network once a second and is read every {_SCRAPE_SECONDS} seconds. *Share*
is that of a CPU that is busy with the pipeline all the time; the worker's other work (fetching,
sending) makes the share of all its CPU time smaller still."""


def run(plan: Plan) -> None:
    """Measure what the worker's metrics cost, as a share of its CPU time at full load."""
    work, count, blocks, pipeline = measure_records()
    metrics = worker_metrics(blocks, pipeline)
    size = seconds(lambda: network_size(pipeline.scorer.learner))
    page = asyncio.run(page_seconds(metrics.registry))
    shares = {
        "counting the records of a batch": (count, count / work),
        "measuring a network": (size, PARTITIONS * size),
        "a page of metrics": (page, page / _SCRAPE_SECONDS),
    }
    table = [
        {"metrics": name, "CPU µs": f"{1e6 * spent:,.0f}", "share": f"{share:.2%}"}
        for name, (spent, share) in shares.items()
    ]
    total = sum(share for _, share in shares.values())
    table.append({"metrics": "all of it", "CPU µs": "", "share": f"{total:.2%}"})
    figures = {"share": round(total, 5), "pipeline_us_per_batch": round(1e6 * work, 1)}
    write_report(plan.out, "metrics", ["The cost of metrics", NOISE, TEXT], table, figures)


def measure_records() -> tuple[float, float, list[ProcessedBlock], PartitionPipeline]:
    """Return a batch's seconds in the pipeline and in the metrics, the last batches, and it."""
    pipeline = PartitionPipeline("features", 0, Settings())
    partition = Metrics(CollectorRegistry()).of_partition("features", 0)
    spent: list[tuple[float, float]] = []
    blocks: list[ProcessedBlock] = []
    offset = 0
    for chunk in rows(0, _RECORDS):
        records = [Record("features", 0, offset + i, 0, None, row) for i, row in enumerate(chunk)]
        offset += len(records)
        began = time.thread_time()
        block = pipeline.process(records)
        processed = time.thread_time()
        partition.count_emitted(block, ages(block))
        if offset > _WARM_UP:
            spent.append((processed - began, time.thread_time() - processed))
            blocks.append(block)
    work, count = np.mean(spent, axis=0).tolist()
    return work, count, blocks, pipeline


def worker_metrics(blocks: list[ProcessedBlock], pipeline: PartitionPipeline) -> Metrics:
    """Return the metrics of a worker with all partitions of the topic."""
    metrics = Metrics(CollectorRegistry())
    for number in range(PARTITIONS):
        partition = metrics.of_partition("features", number)
        for block in blocks:
            partition.count_emitted(block, ages(block))
        partition.set_network(network_size(pipeline.scorer.learner))
        partition.set_snapshot(offset=0, size=0)
        partition.observe_stage("snapshot", 0.1)
    return metrics


def seconds(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    call()
    began = time.thread_time()
    for _ in range(_REPEATS):
        call()
    return (time.thread_time() - began) / _REPEATS


async def page_seconds(registry: CollectorRegistry) -> float:
    """Return the CPU seconds of a page, which threads write down, as the worker makes it."""
    await metrics_page(registry)
    began = time.process_time()
    for _ in range(_REPEATS):
        await metrics_page(registry)
    return (time.process_time() - began) / _REPEATS
