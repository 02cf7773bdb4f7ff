"""Fixtures: schemas, and a live worker under a real Prometheus with its Alertmanager."""

import json
import os
import random
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from dashboards import ROOT
from post_server import PostServer
from servers import Alertmanager, Prometheus, wait_for
from worker_process import WorkerProcess
from workers import Workers, settings_of

from faust_oslrau.app.brokers import KafkaBroker
from faust_oslrau.app.brokers.ports import free_ports

FAUST_OSLRAU = str(Path(sys.executable).with_name("faust-oslrau"))
_SCHEMAS = ROOT.parent / "shared" / "schemas"


@pytest.fixture(scope="session")
def schema() -> Callable[[str], Any]:
    """A loader of JSON schemas by file name."""
    folder = Path(os.environ.get("OSLRAU_SCHEMAS", _SCHEMAS))

    def load(name: str) -> Any:
        path = folder / name
        if not path.is_file():
            pytest.skip(f"no schema {path}; OSLRAU_SCHEMAS may name another folder")
        return json.loads(path.read_text())

    return load


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """A finder of programs by name, which skips where one is missing."""

    def find(name: str) -> str:
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"no {name}; Debian's prometheus and prometheus-alertmanager bring it")
        return found

    return find


class Observed(NamedTuple):
    """A worker that scores, and those who look at it."""

    worker: WorkerProcess
    prometheus: Prometheus
    webhook: PostServer


@pytest.fixture(scope="module")
def observed(
    kafka: KafkaBroker, tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Observed]:
    """A worker in the middle of a stream that has a bit of everything."""
    programs = tool("prometheus"), tool("prometheus-alertmanager")
    folder, broker = tmp_path_factory.mktemp("observed"), kafka.bootstrap_servers
    topic = f"observed-{uuid.uuid4().hex[:8]}"
    ports = dict(zip(("worker", "prometheus", "alertmanager"), free_ports(3), strict=True))
    _produce(broker, topic, _rows(folder, 4000), "--create-topic", "--partitions", "2").wait()
    webhook = PostServer()
    workers = Workers(settings_of(broker, topic), folder)
    with (
        Alertmanager(programs[1], folder, ports["alertmanager"], webhook=webhook.port),
        Prometheus(programs[0], folder, ports["prometheus"], **ports) as prometheus,
        ExitStack() as ending,
    ):
        ending.callback(workers.kill)
        scoring = workers.start(
            web_port=ports["worker"],
            snapshot_interval=2,
            entity="key",
            events="records,incidents,unusual_entities,silences",
            rates="1s",
            forecasts=True,
        ).wait_ready()
        prometheus.wait_ready("/-/ready")
        feed = _produce(broker, topic, _rows(folder, 200_000), "--rate", "500")
        ending.callback(feed.wait)
        ending.callback(feed.kill)
        wait_for("recorded series", lambda: prometheus.query("oslrau:log_likelihood:usual_low"))
        yield Observed(scoring, prometheus, webhook)


def _produce(broker: str, topic: str, file: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [FAUST_OSLRAU, "produce", str(file), "--broker", broker, "--topic", topic]
    return subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)


def _rows(folder: Path, number: int) -> Path:
    """Return a file of correlated rows, some far away and 16 together, some no JSON."""
    path = folder / f"{number}.ndjson"
    rng = random.Random(number)
    with path.open("w") as file:
        for i in range(number):
            a = rng.gauss(0, 1) + 1000 * (i % 499 == 498 or i % 1999 >= 1983)
            row = {"a": a, "b": a + rng.gauss(0, 0.1), "c": rng.gauss(5, 2)}
            file.write((json.dumps(row) if i % 97 else "broken") + "\n")
    return path
