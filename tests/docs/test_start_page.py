"""docs/start.md: its commands, one after the other, on a real Kafka."""

import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from doc_pages import texts
from post_server import PostServer

from faust_oslrau.app.brokers.ports import free_ports

PAGE = "docs/start.md"
PATIENCE_SECONDS = 300.0

pytestmark = pytest.mark.real_kafka


class Reader:
    """A terminal in a folder, with the page's Kafka."""

    def __init__(self, folder, broker, port):
        programs = Path(sys.executable).parent
        self.folder = folder
        self.environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "OSLRAU_BROKER": broker,
            "OSLRAU_WEB_PORT": str(port),
        }

    def run(self, line):
        """Run a line of the page, and return what it prints."""
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}: {done.stderr}"
        return done.stdout

    def start(self, line, output):
        """Start a command that goes on, and write what it prints to a file."""
        with (self.folder / output).open("w") as file:
            return subprocess.Popen(
                ["bash", "-c", f"exec {line}"], cwd=self.folder, env=self.environment,
                stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def wait_for(self, text, output):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in (self.folder / output).read_text():
            assert time.monotonic() < deadline, (self.folder / output).read_text()[-3000:]
            time.sleep(0.3)


def test_a_reader_gets_from_a_file_to_an_incident(kafka, tmp_path):
    (port,) = free_ports(1)
    reader = Reader(tmp_path, kafka.bootstrap_servers, port)
    (script,), (settings,) = texts(PAGE, "python"), texts(PAGE, "toml")
    (tmp_path / "pumps.py").write_text(script)
    make, advise, try_it, first, watch, tell, later = (
        block.splitlines() for block in texts(PAGE, "")
    )
    for line in (*make, *advise[1:]):
        reader.run(line)
    assert tomllib.loads((tmp_path / "pumps.toml").read_text()) == tomllib.loads(settings)
    for line in try_it[:-1]:
        reader.run(line)
    assert "incident opened" in (found := reader.run(try_it[-1]))
    assert "flow 1 (expected 1" in found and "pump-3" in found
    export, produce, worker = first
    assert export.startswith("export OSLRAU_BROKER=")
    reader.run(produce)
    programs = [reader.start(worker, "worker.log")]
    try:
        reader.wait_for("reading pumps/", "worker.log")
        programs.append(reader.start(f"{watch[0]} --since earliest", "tail.txt"))
        server = PostServer()
        line = f"env {tell[0].replace('https://chat.example/hook', server.address)}"
        programs.append(reader.start(line, "notify.log"))
        reader.wait_for("reading anomalies", "notify.log")
        reader.run(later[0])
        reader.wait_for("incident opened", "tail.txt")
        assert "flow 1 (expected 1" in (tmp_path / "tail.txt").read_text()
        reader.wait_for("told, opened: pump-3: flow is 1, expected 1", "notify.log")
        assert [body["entities"] for body in server.bodies][:1] == [["pump-3"]]
    finally:
        for program in programs:
            program.terminate()
            program.wait()
