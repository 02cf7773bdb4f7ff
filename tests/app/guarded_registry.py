"""A door of a real registry that speaks TLS, and asks for a password or a token."""

import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import trustme
from real_registry import RealRegistry

TOKEN = "t0ken-9f2"


class GuardedRegistry:
    """Passes requests on that bring what is `wanted` as their authorization."""

    def __init__(self, registry: RealRegistry, folder: Path, wanted: str) -> None:
        authority = trustme.CA()
        self.ca_file = folder / "registry-ca.pem"
        authority.cert_pem.write_to_path(self.ca_file)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(registry.url, wanted))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def at_work(self) -> Iterator[Self]:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        yield self
        self._server.shutdown()
        self._server.server_close()


def _handler(url: str, wanted: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            allowed = self.headers.get("Authorization") == wanted
            self._answer(*(self._passed_on(body or None) if allowed else _REFUSED))

        do_POST = do_GET

        def _passed_on(self, body: bytes | None) -> tuple[int, bytes]:
            headers = {"Content-Type": "application/json"}
            asked = urllib.request.Request(url + self.path, body, headers, method=self.command)
            try:
                with urllib.request.urlopen(asked, timeout=30) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                return error.code, error.read()

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


_REFUSED = (401, json.dumps({"error_code": 40101, "message": "Unauthorized"}).encode())
