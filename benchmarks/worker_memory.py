"""A worker's memory after it has scored topics of several sizes."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

import click
from aiokafka import AIOKafkaProducer

from faust_oslrau.app.brokers import KafkaBroker

from .pipeline import reader_environment
from .pipeline_process import WORKER, ReaderProcess, parse

_START_SECONDS = 600.0
_SETTLE_SECONDS = (
    20.0  # no page is a copy of an earlier one, and the garbage of the records is gone
)
_CHUNK = 500

Row = dict[str, object]
"""A row of a table of results."""


def table(counts: Sequence[int], what: str, measure: Callable[[str, int, Path], Row]) -> list[Row]:
    """Return a row for each count, which `measure` makes from a broker, the count and a folder."""
    rows = []
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as logs:
        for count in counts:
            click.echo(f"running: {count} {what}", err=True)
            rows.append(measure(broker.bootstrap_servers, count, Path(logs)))
    return rows


@contextmanager
def settled_worker(
    servers: str, topic: str, records: int, logs: Path, **settings: str
) -> Iterator[ReaderProcess]:
    """Start a worker on a topic, and yield it some time after it has scored so many records."""
    environment = reader_environment(servers, topic) | {"OSLRAU_SOURCE_TOPICS": topic} | settings
    with ReaderProcess(WORKER, environment, logs / f"{topic}.log") as worker:
        deadline = time.monotonic() + _START_SECONDS
        while parse(worker.page()).records < records:
            worker.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"fewer than {records} records in {_START_SECONDS:g} s")
            time.sleep(1)
        time.sleep(_SETTLE_SECONDS)
        yield worker


def memory(worker: ReaderProcess) -> Row:
    """Return a worker's resident memory, now and at its peak."""
    return {"memory MB": megabytes("VmRSS", worker.pid), "peak MB": megabytes("VmHWM", worker.pid)}


def megabytes(name: str, pid: int | str = "self") -> int:
    """Return a number of a process's status, which Linux writes in kB."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"no {name} in the status of a process")
    return int(found[1]) // 1000


async def send(
    producer: AIOKafkaProducer,
    topic: str,
    partition: int,
    rows: Sequence[bytes],
    keys: Iterable[bytes | None] = repeat(None),
) -> None:
    """Write rows to a partition, in batches, with the next ones of some keys."""
    for start in range(0, len(rows), _CHUNK):
        batch = producer.create_batch()
        for row, key in zip(rows[start : start + _CHUNK], keys, strict=False):
            batch.append(key=key, value=row, timestamp=None)
        await producer.send_batch(batch, topic, partition=partition)
