"""A real S3 server, moto's."""

import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from server_process import server_process

from faust_oslrau.app.brokers.ports import free_ports

# What must not be seen anywhere.
SECRET = "wJalrXUtnFEMI-not-to-be-logged"


class RealBuckets:
    """An S3 server at a port."""

    def __init__(self, port: int) -> None:
        self._names = count()
        self.port, self.url = port, f"http://127.0.0.1:{port}"

    def create(self) -> str:
        """Return the name of a new bucket."""
        name = f"bucket-{next(self._names)}"
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")
        urllib.request.urlopen(request, timeout=60).close()
        return name


@contextmanager
def real_buckets() -> Iterator[RealBuckets]:
    """Run an S3 server, which keeps nothing after its end."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with server_process(command, f"http://127.0.0.1:{port}/moto-api/", 120.0):
        yield RealBuckets(port)


def environment(port: int) -> dict[str, str]:
    """Return the environment of a client that reaches the server by a port."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "oslrau", "AWS_SECRET_ACCESS_KEY": SECRET,
    }  # fmt: skip
