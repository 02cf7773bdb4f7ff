"""Runs a real Apache Kafka with one or more nodes on the loopback interface."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import signal
import socket
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn, Self

from faust_oslrau.app.errors import BrokerError

from .jars import find_java, kafka_jars
from .metadata import known_brokers
from .node import Node
from .ports import LOOPBACK, free_ports, is_free, reserve
from .properties import NodePorts, node_properties

_START_SECONDS = (
    300.0  # usually about 2; five nodes that start at once on a busy machine take minutes
)
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.05
_WATCH_SECONDS = 0.5
_PORT_ATTEMPTS = 5


class KafkaBroker:
    """A cluster of `nodes` combined brokers and controllers, numbered from 1.

    Parameters
    ----------
    data_dir
        Folder for the nodes' data and logs; None for a temporary folder, which `stop` deletes.
    port
        Client port of the first node, the others follow; 0 picks free ports.
    nodes
        With 3 nodes or more, topics have three replicas and need two in sync.
    properties
        Server properties, which add to or override the defaults.
    secure
        Security protocols of further client ports beside PLAINTEXT; `properties` configures them.
    """

    def __init__(
        self,
        data_dir: Path | str | None = None,
        *,
        port: int = 0,
        nodes: int = 1,
        properties: Mapping[str, str] | None = None,
        secure: Sequence[str] = (),
    ) -> None:
        if nodes < 1:
            raise ValueError(f"nodes must be at least 1, not {nodes}")
        self._temporary = data_dir is None
        self._data_dir = None if data_dir is None else Path(data_dir).absolute()
        self._port = port
        self._size = nodes
        self._properties = dict(properties or {})
        self._secure = tuple(secure)
        self._ports: list[NodePorts] = []
        self._nodes: list[Node] = []
        # A stopped node finds its port again.
        self._reserved: list[socket.socket] = []

    @property
    def bootstrap_servers(self) -> str:
        """The nodes' addresses, separated by commas."""
        return ",".join(f"{LOOPBACK}:{ports.client}" for ports in self._ports)

    def secure_servers(self, protocol: str) -> str:
        """Return the nodes' addresses for clients of this security protocol."""
        return ",".join(f"{LOOPBACK}:{ports.secure[protocol]}" for ports in self._ports)

    @property
    def data_dir(self) -> Path:
        """The folder with the nodes' data and logs."""
        if self._data_dir is None:
            raise BrokerError("the broker has a data folder only while it runs")
        return self._data_dir

    def start(self) -> None:
        """Start all nodes and wait until each knows all of them.

        Raises
        ------
        BrokerError
            Java or the jars are missing, the port is taken, or a node ends or does not answer.
        """
        find_java()
        kafka_jars()
        try:
            self._open_data_dir()
            self._start_on_free_ports()
        except BaseException:
            self._kill_all()
            self._drop_temporary_data()
            raise

    def stop(self) -> None:
        """Stop all nodes gracefully; nodes with temporary data are killed."""
        if not self._temporary:
            for node in self._nodes:
                node.terminate()
            deadline = time.monotonic() + _STOP_SECONDS
            for node in self._nodes:
                node.wait(max(0.0, deadline - time.monotonic()))
        self._kill_all()
        self._drop_temporary_data()

    def kill(self, node: int = 1) -> None:
        """Kill a node, like a crash."""
        self._nodes[node - 1].kill()

    def pause(self, node: int = 1) -> None:
        """Stop a node's process without ending it, like a long pause of its machine."""
        self._nodes[node - 1].signal(signal.SIGSTOP)

    def go_on(self, node: int = 1) -> None:
        """Let a paused node go on."""
        self._nodes[node - 1].signal(signal.SIGCONT)

    def stop_node(self, node: int = 1) -> None:
        """Stop a node gracefully."""
        self._nodes[node - 1].terminate()
        self._nodes[node - 1].wait(_STOP_SECONDS)

    def start_node(self, node: int = 1) -> None:
        """Start a stopped node on its former port, and wait until it knows all running nodes."""
        if not self._nodes[node - 1].alive:
            self._launch(node)
            alive = sum(each.alive for each in self._nodes)
            self._wait_ready([node], alive)

    def watch(self) -> NoReturn:
        """Wait for a node to end, and raise BrokerError with the end of its log."""
        while all(node.alive for node in self._nodes):
            time.sleep(_WATCH_SECONDS)
        number, node = next((i, n) for i, n in enumerate(self._nodes, start=1) if not n.alive)
        raise BrokerError(_quote(f"Kafka node {number} ended", node))

    def __enter__(self) -> Self:
        """Start the cluster."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the cluster."""
        self.stop()

    def _open_data_dir(self) -> None:
        if self._temporary:
            self._data_dir = Path(tempfile.mkdtemp(prefix="faust-oslrau-kafka-"))
        try:
            cluster_id = _cluster_id(self.data_dir, self._size)
            self._nodes = [
                Node(self.data_dir / f"node-{number}", cluster_id, number)
                for number in range(1, self._size + 1)
            ]
        except OSError as error:
            raise BrokerError(f"cannot keep data in {self.data_dir}: {error.strerror}") from error

    def _start_on_free_ports(self) -> None:
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._ports = _choose_ports(self._port, self._size, self._secure)
            try:
                self._reserve_ports()
                for number in range(1, self._size + 1):
                    self._launch(number)
                self._wait_ready(range(1, self._size + 1), self._size)
                return
            except BrokerError:
                self._kill_all()
                if attempt == _PORT_ATTEMPTS or not self._lost_a_port():
                    raise

    def _reserve_ports(self) -> None:
        self._release_ports()
        for ports in self._ports:
            for port in (ports.client, ports.controller, *ports.secure.values()):
                # Who loses the race for a port sees its node end, and tries others.
                with contextlib.suppress(OSError):
                    self._reserved.append(reserve(port))

    def _release_ports(self) -> None:
        while self._reserved:
            self._reserved.pop().close()

    def _launch(self, node: int) -> None:
        properties = node_properties(node, self._ports, self._nodes[node - 1].log_dir)
        self._nodes[node - 1].start(properties | self._properties)

    def _wait_ready(self, numbers: Sequence[int], brokers: int) -> None:
        deadline = time.monotonic() + _START_SECONDS
        for number in numbers:
            while known_brokers(self._ports[number - 1].client) < brokers:
                node = self._nodes[number - 1]
                if not node.alive:
                    raise BrokerError(_quote(f"Kafka node {number} ended while it started", node))
                if time.monotonic() > deadline:
                    late = f"Kafka node {number} was not ready after {_START_SECONDS:.0f} s"
                    raise BrokerError(_quote(late, node))
                time.sleep(_POLL_SECONDS)

    def _lost_a_port(self) -> bool:
        return any("Address already in use" in node.output() for node in self._nodes)

    def _kill_all(self) -> None:
        for node in self._nodes:
            node.kill()
        self._release_ports()

    def _drop_temporary_data(self) -> None:
        if self._temporary and self._data_dir is not None:
            shutil.rmtree(self._data_dir, ignore_errors=True)
            self._data_dir = None


def _choose_ports(first: int, nodes: int, secure: Sequence[str]) -> list[NodePorts]:
    """Choose free ports; the client ports are those from `first` on unless it is 0."""
    free = iter(free_ports(nodes * (2 + len(secure))))
    clients = range(first, first + nodes) if first else [next(free) for _ in range(nodes)]
    for port in clients:
        if not is_free(port):
            raise BrokerError(f"port {port} is taken: choose another --port, or 0 for a free one")
    return [
        NodePorts(client, next(free), {name: next(free) for name in secure}) for client in clients
    ]


def _cluster_id(data_dir: Path, nodes: int) -> str:
    """Return the id of the cluster whose data is in the folder; a new id for an empty folder."""
    marker = data_dir / "cluster.json"
    if not marker.exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        new = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        marker.write_text(json.dumps({"cluster_id": new, "nodes": nodes}))
    cluster = json.loads(marker.read_text())
    if cluster["nodes"] != nodes:
        raise BrokerError(f"{data_dir} holds a cluster of {cluster['nodes']} nodes, not of {nodes}")
    return str(cluster["cluster_id"])


def _quote(what: str, node: Node) -> str:
    return f"{what}; the end of its log, {node.folder / 'server.log'}:\n{node.last_lines()}"
