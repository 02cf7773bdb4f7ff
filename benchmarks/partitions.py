"""What partitions cost a worker in memory and pages: ``python -m benchmarks.partitions``."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import time
import urllib.request
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from faust_oslrau.app.brokers.ports import free_ports

from .pipeline_topic import FIELDS, rows
from .plan import RESULTS
from .report import WAITING, environment, markdown, thousands, write_page
from .worker_memory import Row, memory, send, settled_worker, table

TEXT = """\
A worker with default settings scores {records} records of {fields} fields in each partition, from a
real Kafka (one node, same machine). *Memory* is its resident memory afterwards, *peak* the largest.
The pages are asked for once, `/live` for all that is known; *compressed* is by gzip, which
Prometheus and browsers ask for. The history for the page grows for five minutes, to 0.3 MB for each
partition; it is not part of the figures."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--partitions", "counts", multiple=True, default=(1, 50, 100), help="Partitions, repeatable."
)
@click.option("--records", default=20_000, show_default=True, help="Records of each partition.")
@click.option(
    "--out", default=RESULTS, help="Folder of the result.", type=click.Path(path_type=Path)
)
def main(counts: Sequence[int], records: int, out: Path) -> None:
    """Measure a worker's memory and pages by partitions. Needs Java 17 and Maven."""
    found = table(counts, "partitions", partial(measure, records))
    text = TEXT.format(records=thousands(records), fields=len(FIELDS))
    blocks = ["Memory and pages by partitions", WAITING, text, markdown(found)]
    figures = {"MB_per_partition": slope(found)}
    blocks.append(f"Each further partition takes {figures['MB_per_partition']} MB.")
    write_page(out, "partitions", blocks, figures, "benchmarks.partitions", environment())


def measure(records: int, servers: str, count: int, logs: Path) -> Row:
    """Run a worker on a topic of so many partitions."""
    topic, port = f"partitions-{count}", str(free_ports(1)[0])
    asyncio.run(fill(servers, topic, count, records))
    with settled_worker(servers, topic, count * records, logs, OSLRAU_WEB_PORT=port) as worker:
        pages = {page: read(port, page) for page in ("live", "metrics")}
        return {
            "partitions": count,
            **memory(worker),
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


async def fill(servers: str, topic: str, count: int, records: int) -> None:
    """Create a topic, and write the same rows to each partition."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    await admin.create_topics([NewTopic(topic, count, 1)])
    await admin.close()
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
