"""A deployment on the embedded broker, whose page a browser looks at, and the rows it scores."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from kafka_client import KafkaClient
from worker_process import WorkerProcess
from worker_settings import snapshots_in
from workers import Workers, settings_of

from faust_oslrau.app.brokers import EmbeddedBroker

Row = tuple[Any, ...]

# A field and a key whose name would be a part of the page, if it were not taken as a text.
STRANGE = '<img src="x" onerror="alert(1)">'
ODD = 5


def usual_rows(number: int, seed: int = 0, keys: list[bytes] | None = None) -> Iterator[Row]:
    """Yield rows of three fields of which the first two go together, with keys in turn."""
    rng = np.random.default_rng(seed)
    for at, (a, noise, c) in enumerate(rng.normal(size=(number, 3)).tolist()):
        key = keys[at % len(keys)] if keys else None
        yield 0, orjson.dumps({"a": a, "b": a + noise / 10, STRANGE: 5 + 2 * c}), key


def odd_rows(key: bytes | None = None, number: int = ODD) -> list[Row]:
    """Return unusual rows; as few as there are open an incident."""
    return [(0, orjson.dumps({"a": 0.1, "b": 0.1, STRANGE: 1e6}), key)] * number


class Scene:
    """Topics of two partitions each, and the workers that read them."""

    def __init__(self, broker: EmbeddedBroker, name: str, folder: Path) -> None:
        settings = settings_of(broker.bootstrap_servers, name)
        folder_of_snapshots = snapshots_in("folder", settings, folder)
        self.settings = replace(settings, snapshots=folder_of_snapshots)
        outputs = (settings.scores_topic, settings.anomalies_topic, settings.dead_letter_topic)
        for topic in (name, *outputs):
            broker.create_topic(topic, 2)
        self.topic, self.port = name, settings.web_port
        self._client = KafkaClient(settings.broker)
        self.workers = Workers(self.settings, folder)
        self._sent = 0

    def send(self, rows: Iterable[Row]) -> None:
        sent = list(rows)
        self._client.send(self.topic, sent)
        self._sent += len(sent)

    def score(self, rows: Iterable[Row], **changes: object) -> WorkerProcess:
        """Start a worker, and return it when it has done with these rows."""
        before = self._sent
        self.send(rows)
        worker = self.workers.start(**changes).wait_ready()
        return worker.wait_records(self._sent - before)

    def score_more(self, worker: WorkerProcess, rows: Iterable[Row]) -> None:
        """Send rows, and return when a worker that has done with all before is done with them."""
        self.send(rows)
        worker.wait_records(self._sent)
