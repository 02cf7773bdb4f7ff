"""Runs a reader in a process of its own, and measures its CPU time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from faust_oslrau.app.brokers.process import die_with_parent

_ROOT = Path(__file__).parents[1]
_STOP_SECONDS = 25.0


@dataclass(frozen=True)
class Reader:
    """What a Python is told to run, with what settings beside the common ones.

    A reader that is a worker has pages; one that is `transactional` leaves marks of its
    transactions among the scores, so that its own count of records is taken.
    """

    name: str
    command: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    has_pages: bool = False
    transactional: bool = False
    python: str = sys.executable


_WORKER = ("-m", "benchmarks.pipeline_worker")
WORKER = Reader("worker", _WORKER, has_pages=True)
EXACTLY_ONCE = Reader(
    "worker, exactly once",
    _WORKER,
    {"OSLRAU_DELIVERY": "exactly_once"},
    has_pages=True,
    transactional=True,
)
MIXTURES = Reader("worker, mixtures", _WORKER, {"OSLRAU_LEARNER_MIXTURES": "true"}, has_pages=True)
BARE = Reader("bare aiokafka loop", ("-m", "benchmarks.pipeline_readers", "bare"))
QUIX = Reader("Quix Streams", ("-m", "benchmarks.pipeline_quix"))
STOCK = Reader("stock Faust agent", ("-m", "benchmarks.pipeline_readers", "stock"))


@dataclass(frozen=True)
class Metrics:
    """The worker's own account, summed over its partitions; nodes by kind."""

    records: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict)
    nodes: Mapping[str, float] = field(default_factory=dict)


class ReaderProcess:
    """A reader with the settings of an environment; its log goes to a file."""

    def __init__(self, reader: Reader, environment: Mapping[str, str], log: Path) -> None:
        self._command = [reader.python, *reader.command]
        self._environment = {**os.environ, **environment, **reader.settings}
        self.has_pages = reader.has_pages
        self._log = log

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                cwd=_ROOT,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        self._process.kill()
        self._process.wait()

    def check(self) -> None:
        """Raise RuntimeError with the end of the log if the process has ended."""
        if self._process.poll() is not None:
            lines = self._log.read_text(errors="replace").splitlines()[-20:]
            raise RuntimeError("\n".join([f"{self._command} has ended:", *lines]))

    def kill(self) -> None:
        """Kill the process, like a crash."""
        self._process.kill()
        self._process.wait()

    def offsets(self) -> dict[int, int]:
        """Return the next offset of each partition that a worker holds, as its page says."""
        partitions = json.loads(self._get("/model") or '{"partitions": []}')["partitions"]
        return {each["partition"]: each["next_offset"] for each in partitions}

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def cpu_seconds(self) -> float:
        """Return the CPU time of all threads, those that have ended too."""
        return cpu_seconds(self.pid)

    def metrics(self) -> Metrics:
        """Return the content of the worker's page; empty if there is none yet."""
        return parse(self.page())

    def page(self, path: str = "/metrics") -> str:
        """Return a page, that of metrics unless told otherwise; empty if there is none yet."""
        return self._get(path) if self.has_pages else ""

    def _get(self, page: str) -> str:
        url = f"http://127.0.0.1:{self._environment['OSLRAU_WEB_PORT']}{page}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, by Linux's number for its clock."""
    return time.clock_gettime((~pid << 3) | 2)


def parse(page: str) -> Metrics:
    """Read the worker's metrics."""
    records, stages, nodes = 0.0, defaultdict[str, float](float), defaultdict[str, float](float)
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            match sample.name:
                case "oslrau_records_total":
                    records += sample.value
                case "oslrau_stage_seconds_sum":
                    stages[sample.labels["stage"]] += sample.value
                case "oslrau_network_nodes":
                    nodes[sample.labels["kind"]] += sample.value
    return Metrics(records, dict(stages), dict(nodes))
