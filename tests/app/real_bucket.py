"""A real S3 server, moto's, in a process of its own, and a door in front of it that can fail."""

from __future__ import annotations

import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from itertools import count

from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.brokers.process import die_with_parent

# What must not be seen anywhere.
SECRET = "wJalrXUtnFEMI-not-to-be-logged"
_READY_SECONDS = 120.0
_FULL = b"HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Door(socketserver.ThreadingTCPServer):
    """Passes connections on to a port, as far as the test lets it.

    Attributes
    ----------
    room
        How many bytes of requests still pass, the rest waits; None for all.
    holds
        Requests with these bytes wait.
    deaf_to
        Requests with these bytes pass, and the connection ends in place of an answer.
    is_full
        Whether each request is answered that there is no room for it.
    stuck
        Set while something waits.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, back: int, front: int = 0) -> None:
        super().__init__(("127.0.0.1", front), _Passage)
        self.port: int = self.server_address[1]
        self.back = back
        self.stuck = threading.Event()
        self.open()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def open(self) -> None:
        """Let everything pass."""
        self.is_full = False
        self.room: int | None = None
        self.holds: bytes | None = None
        self.deaf_to: bytes | None = None

    def shut(self) -> None:
        self.shutdown()
        self.server_close()

    def wait(self, found: bytes) -> None:
        while self._stops(found):
            self.stuck.set()
            time.sleep(0.05)
        self.stuck.clear()
        if self.room is not None:
            self.room -= len(found)

    def _stops(self, found: bytes) -> bool:
        is_held = self.holds is not None and self.holds in found
        return is_held or (self.room is not None and self.room < len(found))


class _Passage(socketserver.BaseRequestHandler):
    server: Door

    def handle(self) -> None:
        self._is_deaf = False
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.server.back)) as inside:
            answers = threading.Thread(target=self._answer, args=(inside,), daemon=True)
            answers.start()
            self._request(inside)
            answers.join()

    def _request(self, inside: socket.socket) -> None:
        with suppress(OSError):
            while found := self.request.recv(65_536):
                if self.server.is_full:
                    self.request.sendall(_FULL)
                    break
                self.server.wait(found)
                self._is_deaf = self.server.deaf_to is not None and self.server.deaf_to in found
                inside.sendall(found)
        _end(inside, self.request)

    def _answer(self, inside: socket.socket) -> None:
        with suppress(OSError):
            while (found := inside.recv(65_536)) and not self._is_deaf:
                self.request.sendall(found)
        _end(inside, self.request)


def _end(*connections: socket.socket) -> None:
    for connection in connections:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


class RealBuckets:
    """An S3 server that keeps nothing after its end."""

    def __init__(self) -> None:
        self._names = count()
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RealBuckets:
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
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "oslrau",
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
