"""A real schema registry, Apicurio, which Maven downloads once (142 MB)."""

import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from door import Door
from server_process import server_process

from faust_oslrau.app.brokers.jars import cache_folder, find_java
from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.errors import BrokerError

_VERSION = "2.6.13.Final"
_API = "/apis/ccompat/v7"
# It starts in a third of the time, and serves a test only.
_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def _program() -> Path:
    """Return the registry's folder, skip where it cannot be had."""
    folder = cache_folder() / f"apicurio-registry-{_VERSION}"
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("a real registry is fetched through Maven, but no mvn was found")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        artifact = f"io.apicurio:apicurio-registry-app:{_VERSION}:tar.gz:all"
        fetched = subprocess.run(
            [maven, "-B", "-ntp", "-q", "dependency:copy", f"-Dartifact={artifact}",
             f"-DoutputDirectory={place}"], capture_output=True, text=True,
        )  # fmt: skip
        if fetched.returncode != 0:
            pytest.skip(f"Maven could not fetch a registry: {fetched.stdout.strip()[:200]}")
        (archive,) = Path(place).glob("*.tar.gz")
        unpacked = Path(place) / "unpacked"
        shutil.unpack_archive(archive, unpacked)
        if not folder.is_dir():  # another process may have been faster
            unpacked.rename(folder)
    return folder


class RealRegistry:
    """A registry in a process of its own, which keeps nothing after its end.

    Others reach it through a door: while that is shut, the registry is away for them, and the test
    may fill it.
    """

    def __init__(self, front: int, port: int) -> None:
        self._front, self._port = front, port
        self._door: Door | None = None
        self.url = f"http://127.0.0.1:{front}{_API}"
        self._own_url = f"http://127.0.0.1:{port}{_API}"

    def open(self) -> None:
        """Let others reach it."""
        if self._door is None:
            self._door = Door(self._port, self._front)

    def shut(self) -> None:
        """Be away for others."""
        if self._door is not None:
            self._door.shut()
            self._door = None

    def register(self, subject: str, schema: Any, kind: str = "AVRO", **more: Any) -> int:
        """Return the id of a schema, a text or what is written as JSON."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": kind, **more}
        return int(self._ask("POST", f"/subjects/{subject}/versions", body)["id"])

    def latest(self, subject: str) -> tuple[str, int]:
        """Return text and id of the latest schema of a subject."""
        found = self._ask("GET", f"/subjects/{subject}/versions/latest")
        return found["schema"], int(found["id"])

    def refuse_incompatible(self, subject: str) -> None:
        """Have a subject take only schemas that read what an earlier one wrote."""
        self._ask("PUT", f"/config/{subject}", {"compatibility": "BACKWARD"})

    def _ask(self, method: str, place: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._own_url + place, content, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())


@contextmanager
def real_registry() -> Iterator[RealRegistry]:
    """Run a registry that others can reach."""
    try:
        java = find_java()
    except BrokerError as missing:
        pytest.skip(str(missing))
    (jar,) = _program().glob("*-runner.jar")
    front, port = free_ports(2)
    options = [f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1"]
    command = [java, "-Xmx512m", *_QUICK, *options, "-jar", str(jar)]
    with server_process(command, f"http://127.0.0.1:{port}{_API}/subjects", 240.0):
        registry = RealRegistry(front, port)
        registry.open()
        yield registry
        registry.shut()
