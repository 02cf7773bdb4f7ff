"""Fixtures for workers: clients of brokers, settings, and workers as processes; async tests."""

import asyncio
import inspect
import signal
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from subprocess import Popen
from typing import Any

import command_line
import pytest
from door import Door
from kafka_client import KafkaClient
from real_bucket import RealBuckets, environment, real_buckets
from real_registry import RealRegistry, real_registry
from worker_process import WorkerProcess
from workers import Workers, settings_of

from faust_oslrau.app.brokers import EmbeddedBroker, KafkaBroker
from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.settings import Settings

_LONGEST_SECONDS = 240.0

# A shell starts its background commands with it ignored, which processes of tests would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
    return lambda: free_ports(1)[0]


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
def settings(servers: str, topic_name: str) -> Settings:
    """Settings with topics, a group and a port of the test's own."""
    return settings_of(servers, topic_name)


@pytest.fixture
def start_worker(settings: Settings, tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    """A function that starts a worker with the test's settings, changed by its arguments."""
    workers = Workers(settings, tmp_path)
    yield workers.start
    workers.kill()


@pytest.fixture
def start_command() -> Iterator[Callable[..., Popen[bytes]]]:
    """A function that starts a command in a process, which is killed in the end."""
    started: list[Popen[bytes]] = []

    def start(*arguments: object, **options: Any) -> Popen[bytes]:
        started.append(command_line.start(*arguments, **options))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def buckets() -> Iterator[RealBuckets]:
    """A real S3 server for the whole session."""
    with real_buckets() as server:
        yield server


@pytest.fixture
def door(buckets: RealBuckets, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    """The way to the S3 server, which the environment names."""
    way = Door(buckets.port)
    for name, value in environment(way.port).items():
        monkeypatch.setenv(name, value)
    yield way
    way.open()
    way.shut()


@pytest.fixture
def address(buckets: RealBuckets, door: Door) -> str:
    """A bucket of the test's own, as the setting `snapshots` names it."""
    return f"s3://{buckets.create()}/some/prefix"


@pytest.fixture(scope="session")
def _running_registry() -> Iterator[RealRegistry]:
    with real_registry() as server:
        yield server


@pytest.fixture
def registry(_running_registry: RealRegistry) -> RealRegistry:
    """A real registry for the whole session, which is there whatever the test before has done."""
    _running_registry.open()
    return _running_registry
