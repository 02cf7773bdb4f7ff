"""Runs one node of a Kafka cluster as a child process."""

from __future__ import annotations

import signal
import subprocess
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from .jars import find_java, kafka_jars
from .process import die_with_parent

_LOG4J = Path(__file__).with_name("log4j2.properties")
# A serial collector and the first compiler only: a quick start, and 300 MB of memory.
_JVM = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Node:
    """A combined broker and controller with its data, configuration and log in one folder."""

    def __init__(self, folder: Path, cluster_id: str, number: int) -> None:
        self.folder = folder
        self.log_dir = folder / "log"
        self._log = folder / "server.log"
        self._log_start = 0
        self._process: subprocess.Popen[bytes] | None = None
        _format(self.log_dir, cluster_id, number)

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self, properties: Mapping[str, str]) -> None:
        """Start the process; it is not ready yet when this returns."""
        configuration = self.folder / "server.properties"
        configuration.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        command = [find_java(), *_JVM, f"-Dlog4j2.configurationFile={_LOG4J}"]
        command += ["-cp", f"{kafka_jars()}/*", "kafka.Kafka", str(configuration)]
        with self._log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C stops this process, which then stops the node
                preexec_fn=die_with_parent,
            )

    def terminate(self) -> None:
        """Send SIGTERM."""
        if self._process is not None:
            self._process.terminate()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the process, like a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def wait(self, timeout: float) -> None:
        """Wait for the end of a terminated process; kill it after `timeout` seconds."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def output(self) -> str:
        """Return what the process wrote since its last start."""
        with self._log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def last_lines(self) -> str:
        """Return the last lines of the output, for an error message."""
        return "\n".join(deque(self.output().splitlines(), maxlen=12))


def _format(log_dir: Path, cluster_id: str, number: int) -> None:
    """Do what `kafka-storage.sh format` does, without a second JVM."""
    log_dir.mkdir(parents=True, exist_ok=True)
    meta = log_dir / "meta.properties"
    if not meta.exists():
        meta.write_text(f"version=1\ncluster.id={cluster_id}\nnode.id={number}\n")
