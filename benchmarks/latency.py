"""Time from a record to its score in the log, under load: ``python -m benchmarks.latency``."""

from __future__ import annotations

import asyncio
import itertools
import re
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import numpy as np
import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from faust_oslrau.app.brokers import KafkaBroker

from .pipeline import TOPIC, environment, reader_environment, topic_name
from .pipeline_process import BARE, WORKER, Reader, ReaderProcess
from .pipeline_topic import PARTITIONS, create_topics, fill, grown, rows
from .plan import RESULTS
from .plots import plot_latency
from .report import WAITING, markdown, thousands, write_page

READERS = (replace(WORKER, command=("-m", "benchmarks.latency_worker")), BARE)
LOADS = (1_000, 5_000, 10_000, 20_000, 30_000, 40_000, 50_000, 75_000, 100_000)
GOAL_LOAD = 10_000
_SETTLE_SECONDS = 2.0
_WARM_UP_SECONDS = 300.0
_DRAIN_SECONDS = 60.0
_TICK_SECONDS = 0.005
_BATCH_BYTES = 2**19
_BATCH_ROWS = 1_000
_PER_TICK = 2  # partitions that get records at a tick: few, full batches, as producers send them
# If scores come later than this, the reader does not keep up.
_SATURATED_MS = 2000.0

TEXT = """\
A reader works off {filled} records first, so that its networks have grown. Then records come at a
constant rate to 16 partitions, each with its time of sending as timestamp; the topic of scores
takes the broker's time of appending as timestamp, and the difference is the latency. Broker,
sender and reader share the machine; the first {settle:g} of {seconds:g} seconds of a load are left
out. *Late* is how late the worker's event loop was at the most. A reader whose median is above
{saturated:g} s is saturated and gets no higher load."""


@dataclass(frozen=True)
class Latency:
    """Latencies of one reader under one load, in milliseconds."""

    reader: str
    load: int
    records: int
    p50: float
    p99: float
    longest: float
    late: float | None


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seconds", default=12.0, show_default=True, help="Seconds of each load.")
@click.option("--filled", default=400_000, show_default=True, help="Records before the loads.")
@click.option("--load", "loads", multiple=True, default=LOADS, type=int, help="Records per second.")
@click.option(
    "--out", default=RESULTS, help="Folder of the result.", type=click.Path(path_type=Path)
)
def main(seconds: float, filled: int, loads: Sequence[int], out: Path) -> None:
    """Measure the latency of the worker beside a bare aiokafka loop. Needs Java 17 and Maven."""
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as logs:
        found = [
            latency
            for reader in READERS
            for latency in asyncio.run(
                measure(broker.bootstrap_servers, reader, loads, seconds, filled, Path(logs))
            )
        ]
    write(out, found, seconds, filled)


async def measure(
    servers: str, reader: Reader, loads: Sequence[int], seconds: float, filled: int, logs: Path
) -> list[Latency]:
    """Measure a reader at increasing loads until it is saturated."""
    source = f"{TOPIC}.{topic_name(reader)}"
    settings = reader_environment(servers, topic_name(reader)) | {"OSLRAU_SOURCE_TOPICS": source}
    scores = settings["OSLRAU_SCORES_TOPIC"]
    await create_topics(servers, source, settings["OSLRAU_ANOMALIES_TOPIC"])
    await create_topics(servers, scores, **{"message.timestamp.type": "LogAppendTime"})
    await fill(servers, source, filled)
    found: list[Latency] = []
    with ReaderProcess(reader, settings, logs / f"{topic_name(reader)}.log") as process:
        async with Load(servers, source, scores, process) as load:
            await load.drained(_WARM_UP_SECONDS)
            for rate in loads:
                click.echo(f"running: {reader.name}, {thousands(rate)} a second", err=True)
                found.append(await load.run(reader.name, rate, seconds))
                if found[-1].p50 > _SATURATED_MS:
                    break
    return found


class Load:
    """Sends records at a constant rate, and reads their scores."""

    def __init__(self, servers: str, source: str, scores: str, process: ReaderProcess) -> None:
        self._source, self._scores, self._process = source, scores, process
        self._producer = AIOKafkaProducer(bootstrap_servers=servers, max_batch_size=_BATCH_BYTES)
        self._consumer = AIOKafkaConsumer(bootstrap_servers=servers)
        self._rows = itertools.cycle(itertools.chain.from_iterable(rows(PARTITIONS, 20_000)))
        self._partitions = itertools.cycle(range(PARTITIONS))

    async def __aenter__(self) -> Load:
        await self._producer.start()
        await self._consumer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.stop()
        await self._consumer.stop()

    async def run(self, name: str, rate: int, seconds: float) -> Latency:
        """Send for some seconds, then measure the scores of all but the first records."""
        places = [TopicPartition(self._scores, number) for number in range(PARTITIONS)]
        before = await self._consumer.end_offsets(places)
        _late(self._process.page())
        settled = 1000 * (time.time() + _SETTLE_SECONDS)
        await self._send(rate, seconds)
        late = _late(self._process.page())
        await self.drained(_DRAIN_SECONDS)
        found = np.array([each async for each in self._latencies(before, settled)])
        p50, p99 = np.quantile(found, (0.5, 0.99)).tolist()
        return Latency(name, rate, len(found), p50, p99, float(found.max()), late)

    async def drained(self, seconds: float) -> None:
        """Wait until each record has a score, for at most some seconds."""
        deadline = time.monotonic() + seconds
        while await grown(self._consumer, self._scores) < await grown(self._consumer, self._source):
            self._process.check()
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.1)

    async def _send(self, rate: int, seconds: float) -> None:
        # none is sent before it is due, and all are sent: a busy machine makes them late, not fewer
        began = time.monotonic()
        sent, last = 0, round(rate * seconds)
        while sent < last:
            due = min(round(rate * (time.monotonic() - began)), last) - sent
            for portion in (due // _PER_TICK, due - due // _PER_TICK):
                await self._send_some(portion)
            sent += due
            await asyncio.sleep(_TICK_SECONDS)
        await self._producer.flush()

    async def _send_some(self, count: int) -> None:
        # more than fit a batch where a busy machine has let the sender sleep too long
        for sent in range(0, count, _BATCH_ROWS):
            batch, now = self._producer.create_batch(), round(1000 * time.time())
            for row in itertools.islice(self._rows, min(_BATCH_ROWS, count - sent)):
                if not batch.append(key=None, value=row, timestamp=now):
                    raise RuntimeError(f"expected {_BATCH_ROWS} rows to fit {_BATCH_BYTES} bytes")
            partition = next(self._partitions)
            await self._producer.send_batch(batch, self._source, partition=partition)

    async def _latencies(
        self, before: dict[TopicPartition, int], settled: float
    ) -> AsyncIterator[float]:
        ends = await self._consumer.end_offsets(list(before))
        self._consumer.assign(list(before))
        for place, offset in before.items():
            self._consumer.seek(place, offset)
        while any([await self._consumer.position(place) < end for place, end in ends.items()]):
            for records in (await self._consumer.getmany(timeout_ms=200)).values():
                for record in records:
                    sent = orjson.loads(record.value)["timestamp"]
                    if sent >= settled:
                        yield float(record.timestamp - sent)


def _late(page: str) -> float | None:
    """Return the longest delay of the event loop since the last call, in milliseconds."""
    found = re.search(r"^benchmark_late_seconds (\S+)$", page, re.MULTILINE)
    return 1000 * float(found[1]) if found else None


def write(out: Path, found: Sequence[Latency], seconds: float, filled: int) -> None:
    """Write ``latency.md`` and its plot."""
    text = TEXT.format(
        filled=thousands(filled), settle=_SETTLE_SECONDS, seconds=seconds,
        saturated=_SATURATED_MS / 1000,
    )  # fmt: skip
    plot_latency(out / "latency.png", [asdict(each) for each in found])
    rows = [table_row(each) for each in found]
    blocks = ["Latency under load", WAITING, text, markdown(rows), "![latency.png](latency.png)"]
    write_page(out, "latency", blocks, figures_of(found), "benchmarks.latency", environment())


def figures_of(found: Sequence[Latency]) -> dict[str, object]:
    """Return the figures at the load of the goal, and those of all loads."""
    at_goal = {each.reader: each for each in found if each.load == GOAL_LOAD}
    figures: dict[str, object] = {"loads": [asdict(each) for each in found]}
    if len(at_goal) == len(READERS):
        worker, bare = (at_goal[reader.name] for reader in READERS)
        figures |= {"p50_ms": worker.p50, "p99_ms": worker.p99}
        figures["p99_above_bare_loop_ms"] = worker.p99 - bare.p99
    return figures


def table_row(each: Latency) -> dict[str, str]:
    return {
        "reader": each.reader,
        "records per second": thousands(each.load),
        "p50 ms": f"{each.p50:.0f}",
        "p99 ms": f"{each.p99:.0f}",
        "longest ms": f"{each.longest:.0f}",
        "late ms": "" if each.late is None else f"{each.late:.0f}",
    }


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.latency")
