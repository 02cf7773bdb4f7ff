"""A worker in a process, seen from outside: its pages, its log, its end."""

import json
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from forked_worker import ForkedWorker

from faust_oslrau.app.logs import readable

_READY_SECONDS = 300.0
_POLL_SECONDS = 0.05
# What ends a worker: a line of its own on a terminal.
_REFUSAL = re.compile(r"^\S+ CRITICAL faust_oslrau\.app\.commands\.worker: ")


class WorkerProcess:
    """A worker in a process of its own."""

    def __init__(
        self, process: ForkedWorker | subprocess.Popen[bytes], port: int, log: Path
    ) -> None:
        self._process, self.port, self._log = process, port, log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def get(self, page: str) -> tuple[int, str]:
        """Return status and text of a page, status 0 where nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{page}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def content(self, page: str) -> dict[str, Any]:
        """Return what a page of JSON has, nothing where it does not answer in time."""
        status, text = self.get(page)
        found: dict[str, Any] = json.loads(text) if status == 200 else {}
        return found

    def model(self) -> list[dict[str, Any]]:
        """Return the partitions of the model's page, none where it does not answer in time."""
        partitions: list[dict[str, Any]] = self.content("/model").get("partitions", [])
        return partitions

    def offsets(self) -> dict[int, int]:
        """Return the next offset of each partition of the only topic, none if nobody answers."""
        return {each["partition"]: each["next_offset"] for each in self.model()}

    def metric(self, name: str, **labels: str) -> float | None:
        """Return the sum of a metric's series that have these labels, None where none has them."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        lines = self.get("/metrics")[1].splitlines()
        series = [line for line in lines if re.match(rf"{name}[{{ ]", line)]
        values = [float(s.rsplit(" ", 1)[1]) for s in series if all(w in s for w in wanted)]
        return sum(values) if values else None

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not condition():
            assert self.is_running, f"the worker ended:\n{self.log()}"
            assert time.monotonic() < deadline, f"still not {what}:\n{self.log()}"
            time.sleep(_POLL_SECONDS)

    def wait_ready(self) -> Self:
        self.wait_until(lambda: self.get("/readyz")[0] == 200, "ready")
        return self

    def wait_records(self, count: int) -> Self:
        """Wait until so many records of any outcome are done with."""
        done = lambda: (self.metric("oslrau_records_total") or 0) >= count  # noqa: E731
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

    def last_words(self) -> str:
        """Return the end of the log, without the frames of tracebacks, and the exit code."""
        lines = [line for line in self.raw_log().splitlines() if not line.startswith("  ")]
        return "\n".join([*lines[-60:], f"exit code {self._process.poll()}"])
