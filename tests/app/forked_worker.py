"""Workers in processes that are forked from one that has loaded the program.

To load it takes more than two CPU seconds, and the tests start hundreds of workers.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver, get_context
from pathlib import Path

from worker_settings import take_pace

from faust_oslrau.app.cli import main

_context = get_context("forkserver")


class ForkedWorker:
    """What the tests use of `subprocess.Popen`, for `faust-oslrau` with these arguments."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        _start_server()
        self._process = _context.Process(target=_run, args=(arguments, dict(environment), log))
        self._process.start()

    @property
    def pid(self) -> int:
        """The worker's process id."""
        pid = self._process.pid
        if pid is None:
            raise RuntimeError("not started")
        return pid

    def poll(self) -> int | None:
        """Return the exit code, None while the worker runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the worker has ended; TimeoutExpired if it does not."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("faust-oslrau", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the worker has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless the worker has ended."""
        self._process.kill()


def _start_server() -> None:
    """Start the process that is forked, if there is none."""
    _context.set_forkserver_preload(["loaded_worker"])
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), before]))
    try:
        forkserver.ensure_running()
    finally:
        os.environ["PYTHONPATH"] = before


def _run(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    os.environ.clear()
    os.environ.update(environment)
    take_pace(os.environ)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    main(arguments, prog_name="faust-oslrau")
