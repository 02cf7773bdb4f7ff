"""What 100,000 entities cost a worker in memory: ``python -m benchmarks.entity_memory``."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from aiokafka import AIOKafkaProducer

from .pipeline_topic import FIELDS, rows
from .plan import RESULTS
from .report import environment, markdown, thousands, write_page
from .worker_memory import Row, memory, send, settled_worker, table

TEXT = """\
A worker with `entity = "key"` and otherwise default settings scores {records} records of {fields}
fields, of each entity by turns, in one partition of a real Kafka. They wait there when it starts.
*Memory* is the resident memory of the whole process 20 seconds after the last record, *peak* the
largest, also while snapshots are made. *Restored* is the peak of a worker that then starts from the
last snapshot."""


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
    found = table(counts, "entities", partial(measure, records))
    text = TEXT.format(records=thousands(records), fields=len(FIELDS))
    blocks = ["Memory by entities", text, markdown(found)]
    figures = {"peak_MB": found[-1]["peak MB"], "restored_MB": found[-1]["restored: peak MB"]}
    write_page(out, "entity-memory", blocks, figures, "benchmarks.entity_memory", environment())


def measure(records: int, servers: str, count: int, logs: Path) -> Row:
    """Run a worker on a topic of so many entities, then another one from its last snapshot."""
    topic = f"entities-{count}"
    asyncio.run(fill(servers, topic, count, records))
    with settled_worker(servers, topic, records, logs, OSLRAU_ENTITY="key") as worker:
        row = {"entities": thousands(count), **memory(worker)}
    with settled_worker(servers, topic, 0, logs, OSLRAU_ENTITY="key") as worker:
        return row | {"restored: peak MB": memory(worker)["peak MB"]}


async def fill(servers: str, topic: str, count: int, records: int) -> None:
    """Write so many records, of each entity by turns, to one partition."""
    keys = itertools.cycle([b"machine-%d" % number for number in range(count)])
    async with AIOKafkaProducer(bootstrap_servers=servers, max_batch_size=2**19) as producer:
        for chunk in rows(0, records):
            await send(producer, topic, 0, chunk, keys)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.entity_memory")
