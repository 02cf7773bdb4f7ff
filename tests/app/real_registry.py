"""A real schema registry, Apicurio, which Maven downloads once (142 MB)."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

import pytest
from door import Door

from faust_oslrau.app.brokers.jars import cache_folder, find_java
from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.brokers.process import die_with_parent
from faust_oslrau.app.errors import BrokerError

_VERSION = "2.6.13.Final"
_READY_SECONDS = 240.0
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

    def __init__(self) -> None:
        try:
            self._java = find_java()
        except BrokerError as missing:
            pytest.skip(str(missing))
        self._folder = _program()
        self._front, self._port = free_ports(2)
        self._door: Door | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._front}/apis/ccompat/v7"
        self._own_url = f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def __enter__(self) -> Self:
        options = [f"-Dquarkus.http.port={self._port}", "-Dquarkus.http.host=127.0.0.1"]
        (jar,) = self._folder.glob("*-runner.jar")
        self._process = subprocess.Popen(
            [self._java, "-Xmx512m", *_QUICK, *options, "-jar", str(jar)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        deadline = time.monotonic() + _READY_SECONDS
        while not self._answers():
            assert self._process.poll() is None, "the registry has ended"
            assert time.monotonic() < deadline, "the registry does not answer"
            time.sleep(0.1)
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()

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

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._own_url}/subjects", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False
