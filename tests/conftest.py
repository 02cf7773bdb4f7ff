"""Fixtures shared by all tests, and the account of those that need a real Kafka."""

import os
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from faust_oslrau.app.brokers import KafkaBroker
from faust_oslrau.app.brokers.jars import find_java, kafka_jars
from faust_oslrau.app.errors import BrokerError
from faust_oslrau.learner import compile_kernels

# the first example of a test may compile kernels, and the machine may be busy
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

_DATASETS = Path(__file__).parents[2] / "shared" / "datasets"


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Compile the kernels into their cache, so that processes which tests wait for find them."""
    if not numba.config.DISABLE_JIT:
        compile_kernels()


@pytest.fixture(scope="session")
def kafka_installed() -> None:
    """Skip where Java, Maven or the jars are missing; a Kafka that does not start is a failure."""
    try:
        find_java()
        kafka_jars()
    except BrokerError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def kafka(kafka_installed: None) -> Iterator[KafkaBroker]:
    """One real Kafka node for the whole session."""
    # The records of some tests have old times, and a broker looks for those every five minutes.
    with KafkaBroker(properties={"log.retention.ms": "-1"}) as broker:
        yield broker


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name no other test uses, for a topic or as the prefix of several."""
    test = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name)[:60].strip("-")
    return f"{test}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def dataset_file() -> Callable[[str], Path]:
    """A finder of the paper's data sets by name: npz files with ``x`` and ``fold``."""
    folder = Path(os.environ.get("OSLRAU_DATASETS", _DATASETS))

    def find(name: str) -> Path:
        path = folder / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"no data set {path}; OSLRAU_DATASETS may name another folder")
        return path

    return find


@pytest.fixture(scope="session")
def dataset(dataset_file: Callable[[str], Path]) -> Callable[[str], NDArray[np.float64]]:
    """A loader of the paper's data sets by name: rows x variables."""

    def load(name: str) -> NDArray[np.float64]:
        with np.load(dataset_file(name)) as arrays:
            return np.ascontiguousarray(arrays["x"], dtype=np.float64)

    return load


# Files that take longest. Those of the learner compute while the others wait for workers.
_LONGEST = (
    "worker/test_worker_outages.py", "worker/test_worker_cluster.py",
    "benchmarks/test_commands.py", "worker/test_snapshots.py", "partitions/test_log_changes.py",
    "chaos/test_chaos.py", "worker/test_worker.py", "worker/test_schemas.py",
    "offline/test_inspection.py", "partitions/test_delivery.py", "worker/test_security.py",
    "learner/test_seasons.py",
)  # fmt: skip


def _rank(item: pytest.Item) -> tuple[int, bool]:
    path = item.path.as_posix()
    ranks = [rank for rank, name in enumerate(_LONGEST) if path.endswith(f"/{name}")]
    return (*ranks, len(_LONGEST))[0], item.get_closest_marker("real_kafka") is None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest: later it would keep one process busy after the others' end."""
    items.sort(key=_rank)


# Tests of what may be missing on a machine, by mark, and what the account calls them.
_NEEDS = {"real_kafka": "real-kafka", "browser": "browser"}


def _number(config: pytest.Config, mark: str, outcome: str) -> int:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    reports = reporter.stats.get(outcome, []) if reporter else []
    return sum(mark in getattr(report, "keywords", ()) for report in reports)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """On CI everything is installed, so that a skipped test of a real part is a failure."""
    if os.environ.get("CI") != "true":
        return
    for mark, name in _NEEDS.items():
        if _number(session.config, mark, "skipped"):
            print(f"\n{name}: skipped tests are failures under CI=true")
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End the output with how many tests ran in a browser, and on a real Kafka."""
    if hasattr(config, "workerinput"):
        return  # one of several processes, which report to the first
    for mark, name in reversed(_NEEDS.items()):
        passed, skipped = _number(config, mark, "passed"), _number(config, mark, "skipped")
        failed = _number(config, mark, "failed") + _number(config, mark, "error")
        print(f"{name}: {passed} passed, {skipped} skipped" + f", {failed} failed" * bool(failed))
