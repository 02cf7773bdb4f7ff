"""Throughput with more workers, and cost with more fields and nodes, and with smaller batches.

``python -m benchmarks.scaling``
"""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

import click
import numpy as np
import orjson
from aiokafka import AIOKafkaConsumer

from faust_oslrau.app.brokers import KafkaBroker
from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.pipeline import pipeline as partition
from faust_oslrau.app.settings import load_settings
from faust_oslrau.learner.stream import scorer
from faust_oslrau.topics import Record

from .pipeline import TOPIC, environment, reader_environment
from .pipeline_process import WORKER, ReaderProcess
from .pipeline_topic import create_topics, fill, grown
from .plan import RESULTS
from .plots import plot_costs
from .report import NOISE, markdown, thousands, write_page

WORKERS = (1, 2, 4)
FIELDS = (4, 16, 64, 250, 500)
NODES = (100, 300, 1000, 3000, 10_000, 20_000)
BATCHES = (16, 64, 256, 1024, 4096)
CALLS = (5, 25, 100, 400)
STAGES = ("decode", "score", "learn", "emit")
_AT_A_TIME = 1024
_POLL_SECONDS = 0.1
_START_SECONDS = 300.0

WORKERS_TEXT = """\
Workers of one group share 16 partitions that were filled beforehand with rows of 16 fields. CPU is
that of all workers, from 10 % of the records on to the last; broker and workers share {cores}
cores, which bound what more workers can bring."""

COSTS_TEXT = """\
CPU microseconds per record of one partition's pipeline in one thread, without Kafka, after {grown}
records of correlated numbers in four regimes; the median of chunks of 1,024. Where not varied:
16 fields, `max_nodes` 2,000, `batch_size` 256, 1,024 records a call, which are what the worker has
of a partition at a time. *Emit* is encoding alone, *all* has what is outside the stages, too."""


@dataclass(frozen=True)
class Share:
    """Throughput of several workers together."""

    workers: int
    records: int
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Cost:
    """CPU microseconds per record by stage, with one setting varied."""

    varied: str
    value: int
    nodes: int
    decode: float
    score: float
    learn: float
    emit: float
    all: float


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--records", default=1_000_000, show_default=True, help="Rows for the workers.")
@click.option("--grown", "before", default=200_000, show_default=True, help="Rows before costs.")
@click.option(
    "--out", default=RESULTS, help="Folder of the result.", type=click.Path(path_type=Path)
)
def main(records: int, before: int, out: Path) -> None:
    """Measure how throughput and cost grow. Needs Java 17 and Maven."""
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as logs:
        shares = asyncio.run(measure_workers(broker.bootstrap_servers, records, Path(logs)))
    write(out, shares, list(measure_costs(before)), before)


async def measure_workers(servers: str, records: int, logs: Path) -> list[Share]:
    """Run 1, 2 and 4 workers on the same rows."""
    await create_topics(servers, TOPIC)
    await fill(servers, TOPIC, records)
    return [await run_workers(servers, count, records, logs) for count in WORKERS]


async def run_workers(servers: str, count: int, records: int, logs: Path) -> Share:
    click.echo(f"running: {count} workers", err=True)
    common = reader_environment(servers, f"workers-{count}")
    scores = common["OSLRAU_SCORES_TOPIC"]
    await create_topics(servers, scores, common["OSLRAU_ANOMALIES_TOPIC"])
    async with AsyncExitStack() as stack:
        consumer = await stack.enter_async_context(AIOKafkaConsumer(bootstrap_servers=servers))
        workers = [
            stack.enter_context(
                ReaderProcess(
                    WORKER, common | {"OSLRAU_WEB_PORT": str(port)}, logs / f"{count}-{port}.log"
                )
            )
            for port in free_ports(count)
        ]

        async def reached(share: float) -> tuple[int, float, float]:
            deadline = time.monotonic() + _START_SECONDS
            while (done := await grown(consumer, scores)) < share * records:
                for worker in workers:
                    worker.check()
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{count} workers: {done} of {records} records")
                await asyncio.sleep(_POLL_SECONDS)
            return done, time.monotonic(), sum(worker.cpu_seconds() for worker in workers)

        begin, end = await reached(0.1), await reached(1.0)
    return Share(count, *(later - earlier for earlier, later in zip(begin, end, strict=True)))


def measure_costs(before: int) -> Iterator[Cost]:
    """Run one pipeline for each value of each setting."""
    for fields in FIELDS:
        yield cost("fields", fields, before // max(1, fields // 16), fields)
    for nodes in NODES:
        settings = {"OSLRAU_LEARNER_KIND": "oslrau", "OSLRAU_LEARNER_MAX_NODES": str(nodes)}
        yield cost("max_nodes", nodes, before * max(1, nodes // 4000), 16, settings)
    for batch in BATCHES:
        yield cost("batch_size", batch, before, 16, {"OSLRAU_BATCH_SIZE": str(batch)})
    for call in CALLS:
        yield cost("records a call", call, before, 16, at_a_time=call)


def cost(
    varied: str,
    value: int,
    before: int,
    fields: int,
    settings: Mapping[str, str] | None = None,
    at_a_time: int = _AT_A_TIME,
) -> Cost:
    """Let a pipeline learn, then measure its stages."""
    click.echo(f"running: {varied} {thousands(value)}", err=True)
    pipeline = PartitionPipeline(TOPIC, 0, load_settings(None, settings or {}))
    chunks = records_of(fields)
    # `patch` refuses where a module has no such clock any more.
    with (
        patch.object(partition, "perf_counter", time.thread_time),
        patch.object(scorer, "perf_counter", time.thread_time),
    ):
        for chunk in itertools.islice(chunks, before // _AT_A_TIME):
            pipeline.process(chunk)
        # A chunk is worth four batches, or a quarter of one: whole numbers of both in a group.
        taken = [spent(pipeline, chunk, at_a_time) for chunk in itertools.islice(chunks, 48)]
    groups = [taken[first : first + 4] for first in range(0, len(taken), 4)]
    microseconds = {
        stage: float(np.median([sum(s[stage] for s in group) for group in groups]))
        * 1e6
        / (4 * _AT_A_TIME)
        for stage in (*STAGES, "all")
    }
    return Cost(varied, value, nodes_of(pipeline), **microseconds)


def spent(pipeline: PartitionPipeline, chunk: list[Record], at_a_time: int) -> dict[str, float]:
    """Return the CPU seconds of each stage, and of all, of a chunk in calls of so many records."""
    seconds, began = dict.fromkeys(STAGES, 0.0), time.thread_time()
    for first in range(0, len(chunk), at_a_time):
        for stage, taken in pipeline.process(chunk[first : first + at_a_time]).seconds.items():
            seconds[stage] += taken
    seconds["all"] = time.thread_time() - began
    return seconds


def nodes_of(pipeline: PartitionPipeline) -> int:
    return pipeline.scorer.learner.n_nodes_ if pipeline.scorer else 0  # type: ignore[attr-defined]


def records_of(fields: int) -> Iterator[list[Record]]:
    """Yield chunks of records with correlated fields, without end."""
    shape, rng = np.random.default_rng(0), np.random.default_rng(1)
    centres, loadings = shape.normal(0, 3, (4, fields)), shape.normal(size=(4, fields))
    names = [f"f{number:03}" for number in range(fields)]
    for first in itertools.count(0, _AT_A_TIME):
        common = np.einsum("mf,fd->md", rng.normal(size=(_AT_A_TIME, 4)), loadings)
        X = centres[rng.integers(4, size=_AT_A_TIME)] + common
        X += rng.normal(0, 0.5, X.shape)
        yield [
            Record(
                TOPIC,
                0,
                first + i,
                first + i,
                None,
                orjson.dumps(dict(zip(names, row, strict=True))),
            )
            for i, row in enumerate(X.round(6).tolist())
        ]


def write(out: Path, shares: Sequence[Share], costs: Sequence[Cost], before: int) -> None:
    """Write ``scaling.md`` and its plot."""
    figures = {"workers": [asdict(s) for s in shares], "costs": [asdict(c) for c in costs]}
    panels = {
        varied: {
            stage: [(each.value, getattr(each, stage)) for each in costs if each.varied == varied]
            for stage in STAGES
        }
        for varied in dict.fromkeys(each.varied for each in costs)
    }
    plot_costs(out / "scaling.png", panels, "CPU µs per record")
    blocks = [
        "Scaling",
        NOISE,
        WORKERS_TEXT.format(cores=os.cpu_count()),
        markdown([worker_row(each) for each in shares]),
        COSTS_TEXT.format(grown=thousands(before)),
        markdown([cost_row(each) for each in costs]),
        "![scaling.png](scaling.png)",
    ]
    write_page(out, "scaling", blocks, figures, "benchmarks.scaling", environment())


def worker_row(each: Share) -> dict[str, str]:
    return {
        "workers": str(each.workers),
        "records per second": thousands(each.records / each.seconds),
        "CPU µs per record": f"{1e6 * each.cpu_seconds / each.records:.1f}",
    }


def cost_row(each: Cost) -> dict[str, str]:
    stages = {stage: f"{getattr(each, stage):.1f}" for stage in (*STAGES, "all")}
    varied = {"varied": each.varied, "value": thousands(each.value), "nodes": thousands(each.nodes)}
    return varied | stages


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.scaling")
