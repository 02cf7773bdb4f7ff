"""A real Apache Kafka: start, stop, failures and other programs as clients."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kafka_client import KafkaClient

from faust_oslrau.app.brokers import KafkaBroker
from faust_oslrau.app.brokers.metadata import known_brokers
from faust_oslrau.app.errors import BrokerError

pytestmark = [pytest.mark.real_kafka, pytest.mark.usefixtures("kafka_installed")]

# A node that was killed may come back when the controller no longer counts on it.
_QUICK = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


def _read(servers: str, topic: str) -> list[bytes]:
    return [record.value for record in KafkaClient(servers).read(topic)]


def _port(servers: str) -> int:
    return int(servers.split(",")[0].rpartition(":")[2])


def _children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(child) for child in listed.split()]


def test_data_outlives_a_stop_and_a_kill(tmp_path: Path, topic_name: str) -> None:
    with KafkaBroker(tmp_path, properties=_QUICK) as broker:
        client = KafkaClient(broker.bootstrap_servers)
        client.create(topic_name)
        client.send(topic_name, [(0, b"kept")])
    with KafkaBroker(tmp_path, properties=_QUICK) as broker:
        assert _read(broker.bootstrap_servers, topic_name) == [b"kept"]
        broker.kill()
        assert known_brokers(_port(broker.bootstrap_servers)) == 0
        broker.start_node()
        assert _read(broker.bootstrap_servers, topic_name) == [b"kept"]


def test_data_of_a_cluster_with_another_number_of_nodes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"cluster_id": "AAAAAAAAAAAAAAAAAAAAAA", "nodes": 3}')
    with pytest.raises(BrokerError, match="holds a cluster of 3 nodes, not of 1"):
        KafkaBroker(tmp_path).start()


def test_a_folder_that_cannot_hold_data_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BrokerError, match=r"cannot keep data in .*/file/data: Not a directory"):
        KafkaBroker(tmp_path / "file" / "data").start()


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(BrokerError, match=f"port {port} is taken"):
            KafkaBroker(port=port).start()


def test_a_failed_start_quotes_the_log_and_keeps_it(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path, properties={"num.network.threads": "many"})
    with pytest.raises(BrokerError, match=r"(?s)node 1 ended while it started.*Invalid value many"):
        broker.start()
    assert "Invalid value many" in (tmp_path / "node-1" / "server.log").read_text()


def test_the_command_prints_its_address_and_ends_with_0() -> None:
    with _command("--port", "0", "--json") as command:
        address = json.loads(command.stdout.readline())  # type: ignore[union-attr]
        assert known_brokers(_port(address["bootstrap_servers"])) == 1
        command.send_signal(signal.SIGTERM)
        assert command.wait(60) == 0
    assert not Path(address["data"]).exists()


def test_the_command_ends_with_3_when_its_node_dies(tmp_path: Path) -> None:
    with _command("--port", "0", "--data", str(tmp_path), stderr=subprocess.PIPE) as command:
        assert str(tmp_path) in command.stdout.readline()  # type: ignore[union-attr]
        (node,) = _children(command.pid)
        os.kill(node, signal.SIGKILL)
        assert command.wait(60) == 3
        assert "Error: Kafka node 1 ended" in command.stderr.read()  # type: ignore[union-attr]


def test_nodes_die_with_a_killed_parent(tmp_path: Path) -> None:
    with _command("--port", "0", "--data", str(tmp_path), "--json") as command:
        port = _port(json.loads(command.stdout.readline())["bootstrap_servers"])  # type: ignore[union-attr]
        command.kill()
        command.wait()
    deadline = time.monotonic() + 240
    while known_brokers(port, timeout=0.5) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert known_brokers(port, timeout=0.5) == 0


def _command(*arguments: str, stderr: int | None = None) -> subprocess.Popen[str]:
    module = [sys.executable, "-c", "from faust_oslrau.app.cli import main; main()", "broker"]
    return subprocess.Popen([*module, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True)
