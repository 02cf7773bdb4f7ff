"""The embedded broker, and what the real one needs before a process starts."""

import socket
import threading
from pathlib import Path

import pytest

from faust_oslrau.app.brokers import EmbeddedBroker, KafkaBroker
from faust_oslrau.app.brokers.jars import find_java, kafka_jars
from faust_oslrau.app.brokers.metadata import known_brokers
from faust_oslrau.app.brokers.ports import free_ports, reserve
from faust_oslrau.app.errors import BrokerError, TopicError


def _answer_as_http(server: socket.socket) -> None:
    connection, _address = server.accept()
    with connection:
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.recv(1024)


def test_embedded_broker_refuses_a_topic_twice() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("features", 1)
        with pytest.raises(TopicError, match=r"'features' with 2 partitions.*already exists"):
            broker.create_topic("features", 2)


def test_embedded_broker_answers_only_while_it_runs() -> None:
    with EmbeddedBroker() as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        assert known_brokers(port) == 1
    assert known_brokers(port, timeout=0.5) == 0
    with pytest.raises(BrokerError, match="does not run"):
        broker.create_topic("features", 1)


def test_a_reserved_port_is_given_to_nobody_but_can_be_opened(monkeypatch) -> None:
    port, other = free_ports(2)
    monkeypatch.setattr("faust_oslrau.app.brokers.ports._CANDIDATES", (port, other))
    with reserve(port):
        assert free_ports(1) == [other]
        socket.create_server(("127.0.0.1", port)).close()
    assert sorted(free_ports(2)) == sorted([port, other])


def test_another_server_on_a_brokers_port_is_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        answer = threading.Thread(target=_answer_as_http, args=(server,))
        answer.start()
        assert known_brokers(server.getsockname()[1]) == 0
        answer.join()


@pytest.mark.parametrize(
    ("version", "told"), [(None, "no java was found"), ("11.0.2", "java is Java 11")]
)
def test_missing_or_old_java_is_named(
    version: str | None, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    if version is not None:
        java = tmp_path / "java"
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
    with pytest.raises(BrokerError, match=rf"needs Java 17 or newer, .*{told}"):
        find_java()


def test_missing_maven_is_named_and_leaves_no_folder_of_jars(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("FAUST_OSLRAU_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BrokerError, match="no mvn was found"):
        kafka_jars()
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_failed_fetch_quotes_maven_and_the_next_one_starts_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    maven = tmp_path / "mvn"
    half = 'for last; do case "$last" in -DoutputDirectory=*) out="${last#*=}";; esac; done\n'
    write = 'mkdir "$out" || exit 1\necho > "$out/kafka.jar"\n'
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("FAUST_OSLRAU_CACHE", str(tmp_path / "cache"))

    maven.write_text(f"#!/bin/sh\n{half}{write}echo '[ERROR] no route to the repository'\nexit 1\n")
    maven.chmod(0o755)
    with pytest.raises(BrokerError, match=r"could not fetch.*no route to the repository"):
        kafka_jars()

    maven.write_text(f"#!/bin/sh\n{half}{write}")
    assert [jar.name for jar in kafka_jars().iterdir()] == ["kafka.jar"]


def test_a_cluster_has_at_least_one_node() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        KafkaBroker(nodes=0)
