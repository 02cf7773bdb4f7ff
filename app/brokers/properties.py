"""The configuration of small Kafka nodes, each both broker and controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from .ports import LOOPBACK


class NodePorts(NamedTuple):
    """The ports of one node: for clients, for controllers, and for further security protocols."""

    client: int
    controller: int
    secure: Mapping[str, int] = MappingProxyType({})


def node_properties(node: int, ports: Sequence[NodePorts], log_dir: Path) -> dict[str, str]:
    """Return the server properties of node 1, 2, ... of a cluster with `len(ports)` nodes."""
    return (
        _addresses(ports[node - 1])
        | _replication(len(ports))
        | _SMALL
        | {
            "node.id": str(node),
            "broker.rack": f"rack-{node}",
            "controller.quorum.voters": ",".join(
                f"{voter}@{LOOPBACK}:{own.controller}" for voter, own in enumerate(ports, start=1)
            ),
            "log.dirs": str(log_dir),
        }
    )


def _addresses(ports: NodePorts) -> dict[str, str]:
    clients = {"PLAINTEXT": ports.client, **ports.secure}
    return {
        "process.roles": "broker,controller",
        "listeners": _listeners(clients | {"CONTROLLER": ports.controller}),
        "advertised.listeners": _listeners(clients),
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        # Each listener is named like its protocol.
        "listener.security.protocol.map": ",".join(
            ["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in clients)]
        ),
    }


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in ports.items())


def _replication(nodes: int) -> dict[str, str]:
    replicas, in_sync = min(nodes, 3), 2 if nodes >= 3 else 1
    return {
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync),
    }


_SMALL = {
    # A client that names its rack reads from the replica there.
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    # One partition each is enough for a few groups, and fast to create.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # A group forms without delay, and allows session timeouts of one second.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # A log cleaner with little memory and short pauses.
    "log.cleaner.dedupe.buffer.size": "2097152",
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "500",
}
