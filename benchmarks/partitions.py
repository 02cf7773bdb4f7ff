"""What partitions cost a worker in memory, CPU and pages: ``python -m benchmarks.partitions``."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import time
import urllib.request
from collections.abc import Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from faust_oslrau.app.brokers.ports import free_ports

from .pipeline_process import ReaderProcess
from .pipeline_topic import FIELDS, rows
from .plan import RESULTS
from .report import WAITING, environment, markdown, thousands, write_page
from .worker_memory import Row, memory, send, settled_worker, table

TEXT = """\
A worker with default settings scores {records} records of {fields} fields in each partition, from a
real Kafka (one node, same machine). *Memory* is its resident memory afterwards, *peak* the largest.
The pages are asked for once, `/live` for all that is known; *compressed* is by gzip, which
Prometheus and browsers ask for. The history for the page grows for five minutes, to 0.3 MB for each
partition; it is not part of the figures. *CPU, backlog* is the worker's CPU time for each of
{backlog} further records that are sent at once, *CPU, slow* for each of those that come to every
partition at a rate of {rate} a second for {seconds:.0f} seconds, {tick} at a time. Both
contain the pages of metrics by which the benchmark sees that all are scored, twice a second from
the last one sent on."""

RATE = 50
TICK_RECORDS = 5
SLOW_SECONDS = 20.0
BACKLOG = 160_000


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--partitions",
    "counts",
    multiple=True,
    default=(1, 16, 50, 100, 200),
    help="Partitions, repeatable.",
)
@click.option("--records", default=20_000, show_default=True, help="Records of each partition.")
@click.option(
    "--out", default=RESULTS, help="Folder of the result.", type=click.Path(path_type=Path)
)
def main(counts: Sequence[int], records: int, out: Path) -> None:
    """Measure a worker's memory and pages by partitions. Needs Java 17 and Maven."""
    found = table(counts, "partitions", partial(measure, records))
    text = TEXT.format(
        records=thousands(records), fields=len(FIELDS), backlog=thousands(BACKLOG),
        rate=RATE, seconds=SLOW_SECONDS, tick=TICK_RECORDS,
    )  # fmt: skip
    blocks = ["Memory, CPU and pages by partitions", WAITING, text, markdown(found)]
    figures = {"MB_per_partition": slope(found)}
    blocks.append(f"Each further partition takes {figures['MB_per_partition']} MB.")
    write_page(out, "partitions", blocks, figures, "benchmarks.partitions", environment())


def measure(records: int, servers: str, count: int, logs: Path) -> Row:
    """Run a worker on a topic of so many partitions."""
    topic, port = f"partitions-{count}", str(free_ports(1)[0])
    asyncio.run(create(servers, topic, count))
    asyncio.run(fill(servers, topic, count, records))
    with settled_worker(servers, topic, count * records, logs, OSLRAU_WEB_PORT=port) as worker:
        pages = {page: read(port, page) for page in ("live", "metrics")}
        taken = memory(worker)
        backlog = fill(servers, topic, count, BACKLOG // count)
        slow = send_slowly(servers, topic, count)
        return {
            "partitions": count,
            **taken,
            "CPU us, backlog": cost(worker, backlog, BACKLOG // count * count),
            "CPU us, slow": cost(worker, slow, round(SLOW_SECONDS * RATE) * count),
            **{
                key: value
                for page, (content, milliseconds) in pages.items()
                for key, value in {
                    f"/{page} kB": len(content) // 1000,
                    f"compressed kB, /{page}": len(gzip.compress(content, 1)) // 1000,
                    f"/{page} ms": round(milliseconds),
                }.items()
            },
        }


def cost(worker: ReaderProcess, sending: Coroutine[Any, Any, None], records: int) -> str:
    """Return the CPU time in microseconds that a worker takes for each of some further records."""
    before, cpu = worker.metrics().records, worker.cpu_seconds()
    asyncio.run(sending)
    while worker.metrics().records < before + records:
        worker.check()
        time.sleep(0.5)
    return f"{1e6 * (worker.cpu_seconds() - cpu) / records:.0f}"


async def create(servers: str, topic: str, count: int) -> None:
    """Create a topic of so many partitions."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    await admin.create_topics([NewTopic(topic, count, 1)])
    await admin.close()


async def send_slowly(servers: str, topic: str, count: int) -> None:
    """Write a few records at a time to each partition, at a constant rate."""
    written = itertools.cycle(itertools.chain.from_iterable(rows(0, 20_000)))
    began = time.monotonic()
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for tick in range(round(SLOW_SECONDS * RATE / TICK_RECORDS)):
            await asyncio.sleep(began + tick * TICK_RECORDS / RATE - time.monotonic())
            for partition in range(count):
                some = list(itertools.islice(written, TICK_RECORDS))
                await send(producer, topic, partition, some)


async def fill(servers: str, topic: str, count: int, records: int) -> None:
    """Write the same rows to each partition of a topic."""
    written = list(itertools.chain.from_iterable(rows(0, records)))
    async with AIOKafkaProducer(bootstrap_servers=servers, max_batch_size=2**19) as producer:
        for partition in range(count):
            await send(producer, topic, partition, written)


def read(port: str, page: str) -> tuple[bytes, float]:
    """Return a page and the milliseconds until it was read."""
    began = time.perf_counter()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=60) as answer:
        content: bytes = answer.read()
    return content, 1000 * (time.perf_counter() - began)


def slope(found: Sequence[Row]) -> float:
    """Return the memory of a further partition in MB; the peak may be that of the start."""
    first, last = found[0], found[-1]
    memory = int(str(last["memory MB"])) - int(str(first["memory MB"]))
    return round(memory / (int(str(last["partitions"])) - int(str(first["partitions"]))), 2)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.partitions")
