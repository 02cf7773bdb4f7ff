"""A server in a process of its own, which ends with the tests."""

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from faust_oslrau.app.brokers.process import die_with_parent


@contextmanager
def server_process(command: Sequence[str], page: str, seconds: float) -> Iterator[None]:
    """Run a server that is there once it answers for a page."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent,
    )
    try:
        deadline = time.monotonic() + seconds
        while not _answers(page):
            assert process.poll() is None, f"{command} has ended"
            assert time.monotonic() < deadline, f"{command} does not answer"
            time.sleep(0.1)
        yield
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def _answers(page: str) -> bool:
    try:
        with urllib.request.urlopen(page, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
