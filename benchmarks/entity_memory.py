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
A worker with `entity = "key"` and otherwise default settings scores {records} records of {fields}
fields, of each entity by turns, in one partition of a real Kafka. They wait there when it starts.
*Memory* is the resident memory of the whole process 20 seconds after the last record, *peak* the
largest."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--entities", "counts", multiple=True, default=(1000, 100_000), help="Entities, repeatable."
)
@click.option("--records", default=300_000, show_default=True, help="Records of all entities.")
@click.option(
    "--out", default=RESULTS, help="Folder of the result.", type=click.Path(path_type=Path)
)
def main(counts: Sequence[int], records: int, out: Path) -> None:
    """Measure a worker's memory by entities. Needs Java 17 and Maven."""
    table = []
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as logs:
        for count in counts:
            click.echo(f"running: {count} entities", err=True)
            table.append(measure(broker.bootstrap_servers, count, records, Path(logs)))
    text = TEXT.format(records=thousands(records), fields=len(FIELDS))
    blocks = ["Memory by entities", text, markdown(table)]
    figures = {"peak_MB": table[-1]["peak MB"]}
    write_page(out, "entity-memory", blocks, figures, "benchmarks.entity_memory", environment())


def measure(servers: str, count: int, records: int, logs: Path) -> dict[str, object]:
    """Run a worker on a topic of so many entities."""
    name = f"entities-{count}"
    settings = reader_environment(servers, name)
    settings |= {"OSLRAU_SOURCE_TOPICS": name, "OSLRAU_ENTITY": "key"}
    asyncio.run(fill(servers, name, count, records))
    with ReaderProcess(WORKER, settings, logs / f"{name}.log") as worker:
        wait(worker, records)
        return {
            "entities": thousands(count),
            "memory MB": megabytes(worker.pid, "VmRSS"),
            "peak MB": megabytes(worker.pid, "VmHWM"),
        }


async def fill(servers: str, topic: str, count: int, records: int) -> None:
    """Write so many records, of each entity by turns, to one partition."""
    keys = itertools.cycle([b"machine-%d" % number for number in range(count)])
    async with AIOKafkaProducer(bootstrap_servers=servers, max_batch_size=2**19) as producer:
        for chunk in rows(0, records):
            for start in range(0, len(chunk), _CHUNK):
                batch = producer.create_batch()
                for row in chunk[start : start + _CHUNK]:
                    batch.append(key=next(keys), value=row, timestamp=None)
                await producer.send_batch(batch, topic, partition=0)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.entity_memory")
