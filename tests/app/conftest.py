"""Fixtures for workers: clients of brokers, settings, and workers as processes; async tests."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from forked_worker import ForkedWorker
from kafka_client import KafkaClient
from real_registry import RealRegistry
from worker_process import WorkerProcess
from worker_settings import pace_variable, snapshots_in, split

from faust_oslrau.app.brokers import EmbeddedBroker, KafkaBroker
from faust_oslrau.app.settings import Settings

_LONGEST_SECONDS = 240.0


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
