"""Restoring a partition, and taking over from a killed worker: ``python -m benchmarks.restore``."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import orjson
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from faust.types import TP

from faust_oslrau.app.brokers import KafkaBroker
from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.kafka.transactions import Producers
from faust_oslrau.app.pipeline import PartitionPipeline, Snapshot
from faust_oslrau.app.settings import LearnerSettings, Settings
from faust_oslrau.app.snapshots.topic import TopicStore
from faust_oslrau.learner.state import Extent
from faust_oslrau.topics import Record

from .pipeline import environment
from .pipeline_process import WORKER, ReaderProcess
from .pipeline_topic import PARTITIONS, create_topics, fill
from .plan import RESULTS
from .report import WAITING, markdown, thousands, write_page

_SOURCE = "features"
_TP = TP(_SOURCE, 0)
_SESSION_SECONDS = 6.0
_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 300.0

TEXT = """\
A partition's snapshot is written so many times to the compacted topic of a real Kafka (one node,
same machine; compaction has not run). Then a new owner of the partition takes it over: a
transactional producer is opened, which fences the last owner, the newest snapshot is found and
read, and the pipeline is made from it. The median of {repeats} times is shown. Networks are made
of components at once; how they grew makes no difference here."""

TAKE_OVER_TEXT = """\
Two workers share the 16 partitions of a topic of {records} rows. One is killed with SIGKILL when
all are scored and in snapshots. It takes {seconds:.1f} s until the other holds all partitions with
their models: the session timeout of {timeout:g} s, the rebalance, and the restore of eight
partitions. What came after the last snapshots would be learned again on top."""


@dataclass(frozen=True)
class Model:
    """A network of `components` Gaussians of independent fields, with a limit of nodes."""

    name: str
    fields: int
    components: int
    max_nodes: int

    @property
    def settings(self) -> Settings:
        learner = LearnerSettings(
            max_nodes=self.max_nodes,
            oslrau=(("n_init_components", self.components), ("background", False)),
        )
        return Settings(learner=learner)

    def snapshot(self) -> Snapshot:
        """Return the state after a few hundred records."""
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(self.components + 300, self.fields))
        records = [
            Record(*_TP, offset, 0, None, orjson.dumps({f"x{i}": x for i, x in enumerate(row)}))
            for offset, row in enumerate(rows.tolist())
        ]
        pipeline = PartitionPipeline(*_TP, self.settings)
        pipeline.process(records)
        return pipeline.snapshot(0, len(records))


DEFAULT = Model("default budget", fields=16, components=117, max_nodes=2000)
LARGE = Model("large", fields=38, components=500, max_nodes=20_000)


@dataclass(frozen=True)
class Restored:
    model: str
    nodes: int
    bytes: int
    snapshots: int
    restore_seconds: float


class Owner:
    """A worker's part in a partition's snapshots, in a topic of the model's own."""

    def __init__(self, servers: str, topic: str) -> None:
        arguments = {"bootstrap_servers": servers}
        self.producers = Producers(topic, arguments)
        self.store = TopicStore(topic, "app", self.producers, arguments)

    async def __aenter__(self) -> TopicStore:
        await self.producers.open(_TP)
        await self.store.open(_TP)
        return self.store

    async def __aexit__(self, *_: object) -> None:
        await self.store.close()
        await self.producers.close()


async def restore(servers: str, model: Model, snapshots: int, repeats: int) -> Restored:
    """Write snapshots, then read the newest one several times."""
    topic = f"snapshots-{model.fields}"
    await _create_compacted(servers, topic)
    snapshot = model.snapshot()
    data = snapshot.to_bytes()
    async with Owner(servers, topic) as store:
        for number in range(snapshots):
            await store.save(_TP, snapshot.next_offset + number, Extent.of(data))
    seconds = [await _restore_once(servers, topic, model.settings) for _ in range(repeats)]
    return Restored(model.name, snapshot.nodes, len(data), snapshots, round(median(seconds), 3))


async def _restore_once(servers: str, topic: str, settings: Settings) -> float:
    began = time.perf_counter()
    async with Owner(servers, topic) as store:
        async for stored in store.load(_TP):
            snapshot, scorer, _ = Snapshot.read(stored.data)
            PartitionPipeline.restored(snapshot, settings, scorer)
            return time.perf_counter() - began
    raise RuntimeError("no snapshot was found")


async def _create_compacted(servers: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        config = {"cleanup.policy": "compact"}
        await admin.create_topics([NewTopic(topic, 1, 1, topic_configs=config)])
    finally:
        await admin.close()


async def take_over(servers: str, records: int, logs: Path) -> float:
    """Return the seconds from the kill of one of two workers until the other has processed all."""
    await create_topics(servers, _SOURCE)
    await fill(servers, _SOURCE, records)
    first, second = (_worker(servers, logs / f"{name}.log") for name in ("first", "second"))
    with first, second:
        half = {PARTITIONS // 2}
        _wait(lambda: {len(first.offsets()), len(second.offsets())} == half, first, second)
        _wait(lambda: sum((first.offsets() | second.offsets()).values()) == records, first, second)
        _wait(lambda: sum(map(_snapshots, (first, second))) == records, first, second)
        began = time.monotonic()
        first.kill()
        _wait(lambda: sum(second.offsets().values()) == records, second)
        return time.monotonic() - began


def _worker(servers: str, log: Path) -> ReaderProcess:
    own = {"BROKER": servers, "SESSION_TIMEOUT": _SESSION_SECONDS, "SNAPSHOT_INTERVAL": 1}
    own["WEB_PORT"] = free_ports(1)[0]
    return ReaderProcess(WORKER, {f"OSLRAU_{name}": str(value) for name, value in own.items()}, log)


def _snapshots(worker: ReaderProcess) -> float:
    """Return the sum of the offsets of the last snapshots."""
    found = orjson.loads(worker.page("/model") or b'{"partitions": []}')["partitions"]
    return float(sum(part["snapshot_offset"] or 0 for part in found))


def _wait(condition: Callable[[], bool], *workers: ReaderProcess) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        for worker in workers:
            worker.check()
        if time.monotonic() > deadline:
            raise RuntimeError("the workers take too long")
        time.sleep(_POLL_SECONDS)


def write(out: Path, restored: list[Restored], seconds: float, records: int, repeats: int) -> None:
    """Write ``restore.md``: the command, text and table, then the figures as JSON."""
    figures: dict[str, Any] = {
        "restores": [asdict(each) for each in restored],
        "take_over_seconds": round(seconds, 2),
        "session_timeout": _SESSION_SECONDS,
    }
    rows = [
        {
            "model": each.model,
            "nodes": thousands(each.nodes),
            "bytes": thousands(each.bytes),
            "snapshots in the topic": thousands(each.snapshots),
            "restore s": f"{each.restore_seconds:.3f}",
        }
        for each in restored
    ]
    told = TAKE_OVER_TEXT.format(
        records=thousands(records), seconds=seconds, timeout=_SESSION_SECONDS
    )
    blocks = [
        "Restore and take-over",
        WAITING,
        TEXT.format(repeats=repeats),
        markdown(rows),
        told,
    ]
    write_page(out, "restore", blocks, figures, "benchmarks.restore", environment())


@click.command()
@click.option("--snapshots", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--records", type=click.IntRange(PARTITIONS), default=160_000, show_default=True)
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=RESULTS)
def main(snapshots: int, records: int, repeats: int, out: Path) -> None:
    """Measure restores from the snapshots topic and the take-over after a kill."""
    records = records // PARTITIONS * PARTITIONS
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as logs:
        servers = broker.bootstrap_servers

        async def measure() -> tuple[list[Restored], float]:
            restored = [
                await restore(servers, DEFAULT, snapshots, repeats),
                # Each needs some megabytes of disk.
                await restore(servers, LARGE, max(2, snapshots // 10), repeats),
            ]
            return restored, await take_over(servers, records, Path(logs))

        restored, seconds = asyncio.run(measure())
    write(out, restored, seconds, records, repeats)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.restore")
