"""Runs the demo's worker as a child process."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from faust_oslrau.app.brokers.process import die_with_parent
from faust_oslrau.app.logs import readable

# The worker itself exits at the latest 20 seconds after SIGTERM.
_STOP_SECONDS = 25.0
_PAGE_SECONDS = 5.0
# No proxy for the loopback interface.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_COMMAND = "from faust_oslrau.app.cli import main; main(prog_name='faust-oslrau')"


class WorkerProcess:
    """`faust-oslrau worker` with settings of the environment and a file, and its log in a file."""

    def __init__(
        self, environment: Mapping[str, str], settings: Path | None, web_port: int, log: Path
    ) -> None:
        self._environment = dict(environment)
        self._options = [] if settings is None else ["--settings", str(settings)]
        self._pages = f"http://127.0.0.1:{web_port}"
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def page(self, name: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the content of a JSON page; status 0 without an answer."""
        try:
            with self._open(f"{self._pages}/{name}") as answer:
                return answer.status, json.load(answer)
        except (OSError, ValueError):
            return 0, {}

    def _open(self, url: str) -> Any:
        try:
            return _OPENER.open(url, timeout=_PAGE_SECONDS)
        except urllib.error.HTTPError as error:
            return error  # an answer too, with its status

    def last_lines(self) -> str:
        """Return the end of the log."""
        lines = self._log.read_text(errors="replace").splitlines()[-15:]
        return "\n".join(map(readable, lines))

    def stop(self) -> None:
        """Stop the worker gracefully; kill it if that takes too long."""
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
            self.kill()

    def kill(self) -> None:
        """Kill the process if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        """Start the process."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _COMMAND, "worker", *self._options],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C stops the demo, which then stops the worker
                preexec_fn=die_with_parent,
            )
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process."""
        self.kill()
