"""Fixtures for workers: a Kafka client to fill and read topics, and workers as processes."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from forked_worker import ForkedWorker
from real_registry import RealRegistry
from worker_settings import pace_variable, snapshots_in, split

from faust_oslrau.app.brokers import EmbeddedBroker, KafkaBroker
from faust_oslrau.app.kafka.topic_ids import topic_ids
from faust_oslrau.app.logs import readable
from faust_oslrau.app.settings import Settings

_READY_SECONDS = 120.0
# What ends a worker: a line of its own on a terminal.
_REFUSAL = re.compile(r"^\S+ CRITICAL faust_oslrau\.app\.commands\.worker: ")
_POLL_SECONDS = 0.05
_LONGEST_SECONDS = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test in an event loop of its own, in which its fixture `worker` is at work."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def run() -> None:
        async with pyfuncitem.funcargs.get("worker", AsyncExitStack()):
            await test(**arguments)

    asyncio.run(asyncio.wait_for(run(), _LONGEST_SECONDS))
    return True


class _Row(NamedTuple):
    partition: int
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    timestamp: int | None = None


class KafkaClient:
    """Blocking calls on a broker, each with a connection of its own."""

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def create(self, topic: str, partitions: int = 1, replicas: int = 1, **config: str) -> None:
        new = NewTopic(topic, partitions, replicas, topic_configs=config)

        async def create() -> None:
            async with _Admin(self.servers) as admin:
                await admin.create_topics([new])
                while topic not in await admin.list_topics():
                    await asyncio.sleep(_POLL_SECONDS)

        asyncio.run(create())

    def topics(self) -> set[str]:
        """Return the names of all topics, without a request that names one."""

        async def topics() -> set[str]:
            async with _Admin(self.servers) as admin:
                return set(await admin.list_topics())

        return asyncio.run(topics())

    def partitions(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions."""
        return [each["partition"] for each in self._described_partitions(topic)]

    def configure(self, topic: str, **config: str) -> None:
        """Change the configuration of a topic to these values and the broker's defaults."""

        async def configure() -> None:
            async with _Admin(self.servers) as admin:
                changed = ConfigResource(ConfigResourceType.TOPIC, topic, config)
                await admin.alter_configs([changed])

        asyncio.run(configure())

    def send(
        self,
        topic: str,
        rows: Iterable[tuple[Any, ...]],
        abort: bool | None = None,
        compression: str | None = None,
    ) -> None:
        """Send rows (partition, value, key, headers, timestamp), those of a partition in order.

        With `abort` in a transaction, which is aborted or committed.
        """
        options = {} if abort is None else {"transactional_id": f"{topic}-{time.monotonic_ns()}"}

        async def send() -> None:
            async with AIOKafkaProducer(
                bootstrap_servers=self.servers,
                max_batch_size=2**18,
                max_request_size=2**22,
                compression_type=compression,
                enable_idempotence=True,  # a change of leaders neither loses nor repeats records
                **options,
            ) as producer:
                if abort is not None:
                    await producer.begin_transaction()
                await asyncio.gather(
                    *[
                        await producer.send(
                            topic,
                            row.value,
                            key=row.key,
                            partition=row.partition,
                            headers=list(row.headers),
                            timestamp_ms=row.timestamp,
                        )
                        for row in starmap(_Row, rows)
                    ]
                )
                if abort is not None:
                    await (producer.abort_transaction if abort else producer.commit_transaction)()

        asyncio.run(send())

    def read(self, topic: str) -> list[Any]:
        """Return all committed records that the topic holds now, partition by partition."""

        async def read() -> list[Any]:
            found: dict[TopicPartition, list[Any]] = {}
            async with AIOKafkaConsumer(
                bootstrap_servers=self.servers,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
            ) as consumer:
                numbers = await consumer._client._wait_on_metadata(topic)
                partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
                consumer.assign(partitions)
                ends = await consumer.end_offsets(partitions)
                found = {tp: [] for tp in partitions}
                while not all([await consumer.position(tp) >= ends[tp] for tp in partitions]):
                    for tp, records in (await consumer.getmany(timeout_ms=100)).items():
                        found[tp] += records
            return [record for tp in partitions for record in found[tp]]

        return asyncio.run(read())

    def wait_messages(self, topic: str, count: int) -> int:
        """Wait until a topic has so many messages, and return their number.

        Those of open and aborted transactions count as well. The pages of a worker are made once a
        second, which is too late to catch it in the middle of its work.
        """

        async def wait() -> int:
            async with AIOKafkaConsumer(bootstrap_servers=self.servers) as consumer:
                deadline = time.monotonic() + _READY_SECONDS
                while (found := await _count(consumer, topic)) < count:
                    assert time.monotonic() < deadline, f"{topic} still has {found} messages"
                    await asyncio.sleep(_POLL_SECONDS)
            return found

        return asyncio.run(wait())

    def leader(self, topic: str, partition: int) -> int:
        """Return the number of the node that leads a partition."""
        return next(
            int(each["leader"])
            for each in self._described_partitions(topic)
            if each["partition"] == partition
        )

    def is_led_as_preferred(self, topic: str) -> bool:
        """Return whether the first replica of each partition leads it."""
        return all(
            each["leader"] == each["replicas"][0] for each in self._described_partitions(topic)
        )

    def _described_partitions(self, topic: str) -> list[dict[str, Any]]:
        async def described() -> list[dict[str, Any]]:
            async with _Admin(self.servers) as admin:
                (found,) = await admin.describe_topics([topic])
                partitions: list[dict[str, Any]] = found["partitions"]
                return partitions

        return asyncio.run(described())

    def delete(self, topic: str) -> None:
        """Delete a topic, and return when the brokers know it no more."""

        async def delete() -> None:
            async with _Admin(self.servers) as admin:
                deleted = await topic_ids(admin._client, [topic])
                await admin.delete_topics([topic])
                while deleted.items() & (await topic_ids(admin._client, [topic])).items():
                    await asyncio.sleep(_POLL_SECONDS)

        asyncio.run(delete())

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        async def delete() -> None:
            async with _Admin(self.servers) as admin:
                tp = TopicPartition(topic, partition)
                await admin.delete_records({tp: RecordsToDelete(before_offset=offset)})

        asyncio.run(delete())

    def add_partitions(self, topic: str, total: int) -> None:
        async def add() -> None:
            async with _Admin(self.servers) as admin:
                await admin.create_partitions({topic: NewPartitions(total)})

        asyncio.run(add())


async def _count(consumer: AIOKafkaConsumer, topic: str) -> int:
    if topic not in await consumer.topics():
        return 0
    numbers = await consumer._client._wait_on_metadata(topic)
    partitions = [TopicPartition(topic, number) for number in numbers]
    first = await consumer.beginning_offsets(partitions)
    ends = await consumer.end_offsets(partitions)
    return sum(ends[tp] - first[tp] for tp in partitions)


class _Admin(AIOKafkaAdminClient):
    def __init__(self, servers: str) -> None:
        super().__init__(bootstrap_servers=servers)

    async def __aenter__(self) -> _Admin:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class WorkerProcess:
    """A worker in a process of its own."""

    def __init__(
        self, process: ForkedWorker | subprocess.Popen[bytes], port: int, log: Path
    ) -> None:
        self._process, self.port, self._log = process, port, log

    @property
    def pid(self) -> int:
        return self._process.pid

    def get(self, page: str) -> tuple[int, str]:
        """Return status and text of a page, status 0 where nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{page}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def model(self) -> list[dict[str, Any]]:
        partitions: list[dict[str, Any]] = json.loads(self.get("/model")[1])["partitions"]
        return partitions

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's series that have these labels."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        lines = self.get("/metrics")[1].splitlines()
        series = [line for line in lines if re.match(rf"{name}[{{ ]", line)]
        return sum(float(s.rsplit(" ", 1)[1]) for s in series if all(w in s for w in wanted))

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not condition():
            assert self._process.poll() is None, f"the worker ended:\n{self.log()}"
            assert time.monotonic() < deadline, f"still not {what}:\n{self.log()}"
            time.sleep(_POLL_SECONDS)

    def wait_ready(self) -> WorkerProcess:
        self.wait_until(lambda: self.get("/readyz")[0] == 200, "ready")
        return self

    def wait_records(self, count: int) -> WorkerProcess:
        """Wait until so many records of any outcome are done with."""
        done = lambda: self.metric("oslrau_records_total") >= count  # noqa: E731
        self.wait_until(done, f"done with {count} records")
        return self

    def wait_metric(self, value: float, name: str, **labels: str) -> None:
        """Wait until a metric has this value: each page is made on its own, once a second."""
        shown = lambda: self.metric(name, **labels) == value  # noqa: E731
        self.wait_until(shown, f"showing {name} {value}")

    def wait_offsets(self, offset: int) -> None:
        """Wait until the worker has partitions and each is done up to this offset."""
        done = lambda: {p["next_offset"] for p in self.model()} == {offset}  # noqa: E731
        self.wait_until(done, f"at offset {offset} everywhere")

    def wait_saved(self, offset: int) -> None:
        """Wait until the worker has partitions and each has a snapshot at this offset.

        The last snapshot of a worker that stops is tried once: a cluster whose nodes have just
        come back may refuse it.
        """
        saved = lambda: {p["snapshot_offset"] for p in self.model()} == {offset}  # noqa: E731
        self.wait_until(saved, f"saved at offset {offset} everywhere")

    def terminate(self, seconds: float = _READY_SECONDS) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def wait(self, seconds: float = _READY_SECONDS) -> int:
        return self._process.wait(seconds)

    def log(self) -> str:
        """Return what the worker has logged, as it would be on a terminal."""
        lines = map(readable, self.raw_log().splitlines())
        return "".join(_REFUSAL.sub("Error: ", line) + "\n" for line in lines)

    def raw_log(self) -> str:
        return self._log.read_text()


@pytest.fixture
def free_port() -> Callable[[], int]:
    return _free_port


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """An embedded broker for the module."""
    with EmbeddedBroker() as embedded:
        yield embedded


@pytest.fixture
def servers(kafka: KafkaBroker) -> str:
    """Where the broker is; a module may put another one here."""
    return kafka.bootstrap_servers


@pytest.fixture
def client(servers: str) -> KafkaClient:
    return KafkaClient(servers)


@pytest.fixture
def settings(servers: str, topic_name: str, tmp_path: Path) -> Settings:
    """Settings with topics, a group and a port of the test's own."""
    return Settings(
        broker=servers,
        app_id=topic_name,
        source_topics=(topic_name,),
        scores_topic=f"{topic_name}.scores",
        anomalies_topic=f"{topic_name}.anomalies",
        dead_letter_topic=f"{topic_name}.dead",
        snapshots=f"topic:{topic_name}.snapshots",
        web_port=_free_port(),
        session_timeout=6.0,
    )


@pytest.fixture
def start_worker(settings: Settings, tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    """A function that starts a worker with the test's settings, changed by its arguments.

    `command` are arguments of a new Python process; without it, the worker is a forked one.
    """
    started: list[WorkerProcess] = []

    def start(*, command: Sequence[str] = (), **changes: object) -> WorkerProcess:
        own, pace = split({"commit_seconds": 0.2, **changes})
        if "snapshots" in own:
            own["snapshots"] = snapshots_in(str(own["snapshots"]), settings, tmp_path)
        changed = {f"OSLRAU_{name.upper()}": str(value) for name, value in own.items()}
        environment = {**os.environ, **_environment(settings), **changed, **pace_variable(pace)}
        log = tmp_path / f"worker-{len(started)}.log"
        log.touch()
        process = (
            _run([sys.executable, *command], environment, log)
            if command
            else ForkedWorker(["worker"], environment, log)
        )
        started.append(WorkerProcess(process, int(environment["OSLRAU_WEB_PORT"]), log))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()


def _run(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(command, env=environment, stderr=output, stdout=output)


def _environment(settings: Settings) -> dict[str, str]:
    names = (
        *("broker", "app_id", "scores_topic", "anomalies_topic", "dead_letter_topic"),
        *("web_port", "session_timeout", "snapshots", "delivery"),
    )
    found = {f"OSLRAU_{name.upper()}": str(getattr(settings, name)) for name in names}
    return found | {"OSLRAU_SOURCE_TOPICS": ",".join(settings.source_topics)}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="session")
def registry() -> Iterator[RealRegistry]:
    """A real registry for the whole session."""
    with RealRegistry() as server:
        yield server


@pytest.fixture
def fresh_registry() -> Iterator[RealRegistry]:
    """A real registry without schemas, whose first one gets the id 1."""
    with RealRegistry() as server:
        yield server
