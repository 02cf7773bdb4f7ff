"""What 100,000 entities cost a worker in memory: ``python -m benchmarks.entity_memory``."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from aiokafka import AIOKafkaProducer

from faust_oslrau.app.brokers import KafkaBroker

from .partitions import megabytes, wait
from .pipeline import reader_environment
from .pipeline_process import WORKER, ReaderProcess
from .pipeline_topic import FIELDS, rows
from .plan import RESULTS
from .report import environment, markdown, thousands, write_page

_CHUNK = 500

TEXT = """\
A worker with `entity = "key"` and otherwise default settings scores {rounds} records of {fields}
fields of each entity by turns, in one partition of a real Kafka. *Memory* is the resident memory of
the whole process {seconds} after the last record, *peak* the largest, with a snapshot of all
entities."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--entities", "counts", multiple=True, default=(1000, 100_000), help="Entities, repeatable."
)
@click.option("--rounds", default=3, show_default=True, help="Records of each entity.")
@click.option(
    "--out", default=RESULTS, help="Folder of the result.", type=click.Path(path_type=Path)
)
def main(counts: Sequence[int], rounds: int, out: Path) -> None:
    """Measure a worker's memory by entities. Needs Java 17 and Maven."""
    table = []
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as logs:
        for count in counts:
            click.echo(f"running: {count} entities", err=True)
            table.append(measure(broker.bootstrap_servers, count, rounds, Path(logs)))
    text = TEXT.format(rounds=rounds, fields=len(FIELDS), seconds="20 seconds")
    blocks = ["Memory by entities", text, markdown(table)]
    figures = {"peak_MB": table[-1]["peak MB"]}
    write_page(out, "entity-memory", blocks, figures, "benchmarks.entity_memory", environment())


def measure(servers: str, count: int, rounds: int, logs: Path) -> dict[str, object]:
    """Run a worker on a topic of so many entities."""
    name = f"entities-{count}"
    settings = reader_environment(servers, name)
    settings |= {"OSLRAU_SOURCE_TOPICS": name, "OSLRAU_ENTITY": "key"}
    settings |= {"OSLRAU_SNAPSHOT_INTERVAL": "5"}
    asyncio.run(fill(servers, name, count, rounds))
    with ReaderProcess(WORKER, settings, logs / f"{name}.log") as worker:
        wait(worker, count * rounds)
        return {
            "entities": thousands(count),
            "memory MB": megabytes(worker.pid, "VmRSS"),
            "peak MB": megabytes(worker.pid, "VmHWM"),
        }


async def fill(servers: str, topic: str, count: int, rounds: int) -> None:
    """Write so many rounds of records, one of each entity by turns, to one partition."""
    keys = itertools.cycle([b"machine-%d" % number for number in range(count)])
    async with AIOKafkaProducer(bootstrap_servers=servers, max_batch_size=2**19) as producer:
        for chunk in rows(0, count * rounds):
            for start in range(0, len(chunk), _CHUNK):
                batch = producer.create_batch()
                for row in chunk[start : start + _CHUNK]:
                    batch.append(key=next(keys), value=row, timestamp=None)
                await producer.send_batch(batch, topic, partition=0)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.entity_memory")
