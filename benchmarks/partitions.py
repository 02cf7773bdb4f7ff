"""What partitions cost a worker in memory and pages: ``python -m benchmarks.partitions``."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import re
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import click
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from faust_oslrau.app.brokers import KafkaBroker

from .pipeline import reader_environment
from .pipeline_process import WORKER, ReaderProcess, parse
from .pipeline_topic import FIELDS, rows
from .plan import RESULTS
from .report import WAITING, environment, markdown, thousands, write_page

_START_SECONDS = 600.0
_SETTLE_SECONDS = (
    20.0  # no page is a copy of an earlier one, and the garbage of the records is gone
)
_CHUNK = 500

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
    table = []
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as logs:
        for count in counts:
            click.echo(f"running: {count} partitions", err=True)
            table.append(measure(broker.bootstrap_servers, count, records, Path(logs)))
    text = TEXT.format(records=thousands(records), fields=len(FIELDS))
    blocks = ["Memory and pages by partitions", WAITING, text, markdown(table)]
    figures = {"MB_per_partition": slope(table)}
    blocks.append(f"Each further partition takes {figures['MB_per_partition']} MB at the peak.")
    write_page(out, "partitions", blocks, figures, "benchmarks.partitions", environment())


def measure(servers: str, count: int, records: int, logs: Path) -> dict[str, object]:
    """Run a worker on a topic of so many partitions."""
    name = f"partitions-{count}"
    settings = reader_environment(servers, name) | {"OSLRAU_SOURCE_TOPICS": name}
    asyncio.run(fill(servers, name, count, records))
    with ReaderProcess(WORKER, settings, logs / f"{name}.log") as worker:
        wait(worker, count * records)
        pages = {page: read(settings["OSLRAU_WEB_PORT"], page) for page in ("live", "metrics")}
        return {
            "partitions": count,
            "memory MB": megabytes(worker.pid, "VmRSS"),
            "peak MB": megabytes(worker.pid, "VmHWM"),
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
        for partition, start in itertools.product(range(count), range(0, records, _CHUNK)):
            batch = producer.create_batch()
            for row in written[start : start + _CHUNK]:
                batch.append(key=None, value=row, timestamp=None)
            await producer.send_batch(batch, topic, partition=partition)


def wait(worker: ReaderProcess, records: int) -> None:
    """Wait until the worker has scored so many records, and a little longer."""
    deadline = time.monotonic() + _START_SECONDS
    while parse(worker.page()).records < records:
        worker.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"fewer than {records} records in {_START_SECONDS:g} s")
        time.sleep(1)
    time.sleep(_SETTLE_SECONDS)


def read(port: str, page: str) -> tuple[bytes, float]:
    """Return a page and the milliseconds until it was read."""
    began = time.perf_counter()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=60) as answer:
        content: bytes = answer.read()
    return content, 1000 * (time.perf_counter() - began)


def megabytes(pid: int, name: str) -> int:
    """Return a number of a process's status, which Linux writes in kB."""
    found = re.search(
        rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
    )
    if found is None:
        raise RuntimeError(f"no {name} of process {pid}")
    return int(found[1]) // 1000


def slope(table: Sequence[dict[str, object]]) -> float:
    """Return the memory of a further partition at the peak, in MB."""
    first, last = table[0], table[-1]
    memory = int(str(last["peak MB"])) - int(str(first["peak MB"]))
    return round(memory / (int(str(last["partitions"])) - int(str(first["partitions"]))), 2)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.partitions")
