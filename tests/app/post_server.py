"""A web server that keeps what is posted to it."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Longer than anybody waits for an answer.
_HANG_SECONDS = 12.0


class PostServer:
    """Answers with the given statuses, the last one for good; None hangs."""

    def __init__(self, *statuses: int | None, port: int = 0) -> None:
        self.bodies: list[Any] = []  # what was posted and answered with 200
        self.logins: list[str | None] = []  # and its header `Authorization`
        left, bodies, logins = list(statuses or (200,)), self.bodies, self.logins

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = left.pop(0) if len(left) > 1 else left[0]
                if status is None:
                    time.sleep(_HANG_SECONDS)
                    return
                if status == 200:
                    logins.append(self.headers["Authorization"])
                    bodies.append(body)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.address = f"http://127.0.0.1:{self.port}/token-9f2"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
