"""Throughput of the worker on a real Kafka: ``python -m benchmarks.pipeline``."""

from __future__ import annotations

import asyncio
import platform
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from statistics import median

import click
from aiokafka import AIOKafkaConsumer

from faust_oslrau.app.brokers import KafkaBroker
from faust_oslrau.app.brokers.ports import free_ports

from .floor import library_us
from .pipeline_process import (
    BARE,
    EXACTLY_ONCE,
    MIXTURES,
    QUIX,
    STOCK,
    WORKER,
    Metrics,
    Reader,
    ReaderProcess,
)
from .pipeline_topic import PARTITIONS, create_topics, fill, grown, rows
from .plan import RESULTS
from .report import NOISE, markdown, processor, thousands, write_page

TOPIC = "features"
STAGES = ("decode", "score", "learn")
_POLL_SECONDS = 0.1
_START_SECONDS = 300.0  # kernels may have to be compiled
_WARM_UP = 0.05

TEXT = """\
A topic of 16 partitions on a real Kafka (one node, same machine) is filled beforehand with JSON
rows of 16 correlated numbers, about 260 bytes. Then one reader at a time decodes, scores, learns
and emits a score for each, all with the same decoder, default learner and encoder. CPU is that of
the reader's process, all threads, user and system; start-up, compilation and the first 5 % of the
records are left out. All compress what they send as the worker does by default. A reader that is
not through after {seconds} s is stopped: *records* is what it is measured on. It saw smaller
networks then, which is to its favour."""

READERS_TEXT = """\
*mixtures* is the worker with mixtures. *Exactly once* is the worker
with that delivery, by its own count of records. The bare loop is `getmany`, the same work,
`send_batch`. Quix Streams hands records to a `BatchingSink`, which scores them and produces each
score. The stock agent takes events with `take_events` and awaits `send` for each score. All take up
to 4096 records at a time. *Ratio* is records per CPU-second in units of the stock agent's."""

STAGES_TEXT = """\
CPU microseconds per record of the workers. Decode, score and learn are what `oslrau_stage_seconds`
says when its clock is the CPU clock of the computing thread. *The rest* is what remains of all
CPU: fetch, Faust, encoding and sending scores, metrics, commits. *Plumbing* is decode and the
rest. *The floor* is what aiokafka, msgspec and orjson take for a record with nothing around them
(`python -m benchmarks floor`), {floor:.1f} µs while the readers ran, the median: it tells how fast
the machine was."""


@dataclass(frozen=True)
class Sample:
    """Records and CPU time of a reader so far."""

    seconds: float
    cpu_seconds: float
    records: int
    metrics: Metrics


@dataclass(frozen=True)
class Usage:
    """Records and CPU time of a reader between two samples."""

    reader: str
    begin: Sample
    end: Sample
    nodes: Mapping[str, float]

    @property
    def records(self) -> int:
        return self.end.records - self.begin.records

    @property
    def cpu_seconds(self) -> float:
        return self.end.cpu_seconds - self.begin.cpu_seconds

    @property
    def records_per_second(self) -> float:
        """Records per CPU-second."""
        return self.records / self.cpu_seconds

    @property
    def cpu_us(self) -> float:
        """CPU microseconds per record."""
        return 1e6 * self.cpu_seconds / self.records

    @property
    def wall_records_per_second(self) -> float:
        return self.records / (self.end.seconds - self.begin.seconds)

    @property
    def leaves(self) -> float:
        """Leaves of a partition's network, of either kind."""
        return (self.nodes["leaf"] + self.nodes["multivariate_leaf"]) / PARTITIONS

    def parts_us(self) -> dict[str, float]:
        """CPU microseconds per record by stage, by the worker's metrics, and all the rest."""
        stages = {stage: self._stage_us(stage) for stage in STAGES}
        rest = self.cpu_us - sum(stages.values())
        return {**stages, "rest": rest, "plumbing": rest + stages["decode"]}

    def _stage_us(self, stage: str) -> float:
        begin, end = self.begin.metrics, self.end.metrics
        seconds = end.stages[stage] - begin.stages.get(stage, 0.0)
        return 1e6 * seconds / (end.records - begin.records)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--records", default=1_000_000, show_default=True, help="Rows in the topic.")
@click.option("--seconds", default=60.0, show_default=True, help="Longest run of one reader.")
@click.option("--quix", help="A Python that has Quix Streams, which is left out without.")
@click.option(
    "--out", default=RESULTS, help="Folder of the result.", type=click.Path(path_type=Path)
)
def main(records: int, seconds: float, quix: str | None, out: Path) -> None:
    """Measure the worker beside a bare aiokafka loop, Quix Streams and a stock Faust agent.

    Settings of the environment (OSLRAU_...) hold for all of them. Needs Java 17 and Maven.
    """
    records = max(1, records // PARTITIONS) * PARTITIONS
    peers = (BARE, *([replace(QUIX, python=quix)] if quix else []), STOCK)
    readers = (WORKER, MIXTURES, EXACTLY_ONCE, *peers)
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as logs:
        usages, floor = asyncio.run(
            measure_all(broker.bootstrap_servers, readers, records, seconds, Path(logs))
        )
    write(out, usages, floor, seconds)


async def measure_all(
    servers: str, readers: Sequence[Reader], records: int, seconds: float, logs: Path
) -> tuple[list[Usage], float]:
    """Fill the topic, then run one reader after the other, and the floor before each."""
    click.echo(f"writing {thousands(records)} rows", err=True)
    await create_topics(servers, TOPIC)
    await fill(servers, TOPIC, records)
    usages, floors, values = [], [], next(rows(0, records))
    for reader in readers:
        floors.append(sum(library_us(values).values()))
        usages.append(await measure(servers, reader, records, seconds, logs))
    return usages, median(floors)


async def measure(servers: str, reader: Reader, records: int, seconds: float, logs: Path) -> Usage:
    """Run a reader until it has scored all records, for at most some seconds."""
    click.echo(f"running: {reader.name}", err=True)
    async with watched(servers, reader, logs) as watch:
        begin = await watch.warm_up(_WARM_UP * records)
        await watch.wait(records, begin.seconds + seconds)
        end = await watch.sample()
        return Usage(reader.name, begin, end, await watch.nodes() if reader.has_pages else {})


@asynccontextmanager
async def watched(servers: str, reader: Reader, logs: Path) -> AsyncIterator[Watch]:
    """Run a reader of the topic, with its own group and outputs, and sample it."""
    environment = reader_environment(servers, topic_name(reader))
    scores = environment["OSLRAU_SCORES_TOPIC"]
    await create_topics(servers, scores, environment["OSLRAU_ANOMALIES_TOPIC"])
    async with AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
        with ReaderProcess(reader, environment, logs / f"{topic_name(reader)}.log") as process:
            yield Watch(process, consumer, None if reader.transactional else scores)


def topic_name(reader: Reader) -> str:
    """Return the reader's name as a part of topic names."""
    return reader.name.replace(",", "").replace(" ", "-")


def reader_environment(servers: str, name: str) -> dict[str, str]:
    """Return settings with a group and outputs of the reader's own."""
    return {
        "OSLRAU_BROKER": servers,
        "OSLRAU_APP_ID": name,
        "OSLRAU_SOURCE_TOPICS": TOPIC,
        "OSLRAU_SCORES_TOPIC": f"{name}.scores",
        "OSLRAU_ANOMALIES_TOPIC": f"{name}.anomalies",
        "OSLRAU_DEAD_LETTER_TOPIC": f"{name}.dead-letters",
        "OSLRAU_WEB_PORT": str(free_ports(1)[0]),
    }


class Watch:
    """Looks at a reader, and at how far its scores have come: from outside, by their topic.

    Without a topic the reader's own count is taken.
    """

    def __init__(
        self, reader: ReaderProcess, consumer: AIOKafkaConsumer, scores: str | None
    ) -> None:
        self.reader = reader
        self._consumer = consumer
        self._scores = scores

    async def sample(self) -> Sample:
        records, seconds = await self._scored(), time.monotonic()
        cpu_seconds = self.reader.cpu_seconds()
        return Sample(seconds, cpu_seconds, records, await self._metrics(records))

    async def _metrics(self, records: int) -> Metrics:
        """Return metrics that count so many records: the page may be some moments old."""
        found = self.reader.metrics()
        while self.reader.has_pages and found.records < records:
            await self._pause()
            found = self.reader.metrics()
        return found

    async def _scored(self) -> int:
        if self._scores is None:
            return round(self.reader.metrics().records)
        return await grown(self._consumer, self._scores)

    async def warm_up(self, records: float) -> Sample:
        """Return the last sample with at most this many records."""
        last = found = await self.sample()
        deadline = last.seconds + _START_SECONDS
        while found.records <= records and found.seconds < deadline:
            last = found
            await self._pause()
            found = await self.sample()
        return last

    async def wait(self, records: int, deadline: float) -> None:
        """Wait for so many records or until the deadline, and leave the reader alone."""
        while await self._scored() < records and time.monotonic() < deadline:
            await self._pause()

    async def nodes(self) -> Mapping[str, float]:
        """Return the nodes by kind; the worker measures its networks now and then."""
        while not (nodes := self.reader.metrics().nodes):
            await self._pause()
        return nodes

    async def _pause(self) -> None:
        self.reader.check()
        await asyncio.sleep(_POLL_SECONDS)


def write(out: Path, usages: Sequence[Usage], floor: float, seconds: float) -> None:
    """Write ``pipeline.md``: the command, text and tables, then the figures as JSON."""
    workers = [usage for usage in usages if usage.reader in (WORKER.name, MIXTURES.name)]
    blocks = [
        "The worker's throughput",
        NOISE,
        TEXT.format(seconds=f"{seconds:g}"),
        READERS_TEXT,
        markdown([table_row(usage, usages[-1]) for usage in usages]),
        STAGES_TEXT.format(floor=floor),
        markdown([stages_row(usage, floor) for usage in workers]),
    ]
    figures = figures_of(usages, floor)
    write_page(out, "pipeline", blocks, figures, "benchmarks.pipeline", environment())


def figures_of(usages: Sequence[Usage], floor: float) -> dict[str, float]:
    """Return the figures of the readers."""
    by_name = {usage.reader: usage for usage in usages}
    worker, mixtures = by_name[WORKER.name], by_name[MIXTURES.name]
    ratios = {
        f"ratio_to_{name}": worker.records_per_second / by_name[peer.name].records_per_second
        for name, peer in (("stock_agent", STOCK), ("quix_streams", QUIX), ("bare_loop", BARE))
        if peer.name in by_name
    }
    figures = {
        "records_per_second": worker.records_per_second,
        **ratios,
        "exactly_once_records_per_second": by_name[EXACTLY_ONCE.name].records_per_second,
        "cpu_us": worker.cpu_us,
        **{f"{name}_us": us for name, us in worker.parts_us().items()},
        "network_leaves": worker.leaves,
        "mixtures_records_per_second": mixtures.records_per_second,
        **{f"mixtures_{name}_us": us for name, us in mixtures.parts_us().items()},
        "mixtures_network_leaves": mixtures.leaves,
        "floor_us": floor,
    }
    return {name: round(value, 3) for name, value in figures.items()}


def stages_row(usage: Usage, floor: float) -> dict[str, str]:
    parts = usage.parts_us()
    row = {"reader": usage.reader, "leaves": thousands(usage.leaves)}
    row |= {name: f"{us:.1f}" for name, us in parts.items()}
    return row | {"plumbing / floor": f"{parts['plumbing'] / floor:.1f}"}


def table_row(usage: Usage, stock: Usage) -> dict[str, str]:
    return {
        "reader": usage.reader,
        "records": thousands(usage.records),
        "CPU s": f"{usage.cpu_seconds:.1f}",
        "CPU µs per record": f"{usage.cpu_us:.1f}",
        "records per CPU-second": thousands(usage.records_per_second),
        "records per second of wall time": thousands(usage.wall_records_per_second),
        "ratio": f"{usage.records_per_second / stock.records_per_second:.1f}",
    }


def environment() -> str:
    """Name the processor and the versions that figures depend on."""
    names = ("faust-streaming", "aiokafka", "msgspec", "orjson", "numpy", "numba")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    return f"{processor()}, Python {platform.python_version()}, {versions}."


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.pipeline")
