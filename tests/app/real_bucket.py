"""A real S3 server, moto's, in a process of its own, and a door in front of it that can fail."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from itertools import count
from typing import Self

from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.brokers.process import die_with_parent

# What must not be seen anywhere.
SECRET = "wJalrXUtnFEMI-not-to-be-logged"
_READY_SECONDS = 120.0


class RealBuckets:
    """An S3 server that keeps nothing after its end."""

    def __init__(self) -> None:
        self._names = count()
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        deadline = time.monotonic() + _READY_SECONDS
        while not self._answers():
            assert self._process.poll() is None, "the S3 server has ended"
            assert time.monotonic() < deadline, "the S3 server does not answer"
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def create(self) -> str:
        """Return the name of a new bucket."""
        name = f"bucket-{next(self._names)}"
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")
        urllib.request.urlopen(request, timeout=60).close()
        return name

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/moto-api/", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def environment(port: int) -> dict[str, str]:
    """Return the environment of a client that reaches the server by a port."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "oslrau", "AWS_SECRET_ACCESS_KEY": SECRET,
    }  # fmt: skip
