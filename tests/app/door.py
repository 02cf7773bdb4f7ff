"""A door in front of a server, behind which it is away, and which can fail."""

import socket
import socketserver
import threading
import time
from contextlib import suppress

_FULL = b"HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Door(socketserver.ThreadingTCPServer):
    """Passes connections on to a port, as far as the test lets it."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, back: int, front: int = 0) -> None:
        super().__init__(("127.0.0.1", front), _Passage)
        self.port: int = self.server_address[1]
        self.back = back
        self.stuck = threading.Event()  # set while something waits
        self.passing: set[socket.socket] = set()
        self.open()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def open(self) -> None:
        """Let everything pass."""
        self.is_full = False  # whether each request is answered that there is no room for it
        self.late = 0.0  # seconds by which each piece of an answer comes later
        self.room: int | None = None  # bytes of requests that still pass, while the rest waits
        self.holds: bytes | None = None  # requests with these bytes wait
        self.deaf_to: bytes | None = None  # for these, the connection ends in place of an answer

    def shut(self) -> None:
        """Let nothing pass, also of the connections that are open."""
        self.shutdown()
        self.server_close()
        _end(*self.passing)

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
            self.server.passing |= {self.request, inside}
            answers = threading.Thread(target=self._answer, args=(inside,), daemon=True)
            answers.start()
            self._request(inside)
            answers.join()
            self.server.passing -= {self.request, inside}

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
                time.sleep(self.server.late)
                self.request.sendall(found)
        _end(inside, self.request)


def _end(*connections: socket.socket) -> None:
    for connection in connections:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
