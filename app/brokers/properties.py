"""The configuration of small Kafka nodes that are broker and controller at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .ports import LOOPBACK


class NodePorts(NamedTuple):
    """The ports of one node: for clients, and for the controllers among themselves."""

    client: int
    controller: int


def node_properties(node: int, ports: Sequence[NodePorts], log_dir: Path) -> dict[str, str]:
    """Return the server properties of node 1, 2, ... of a cluster with `len(ports)` nodes."""
    client, controller = ports[node - 1]
    return (
        _addresses(client, controller)
        | _replication(len(ports))
        | _SMALL
        | {
            "node.id": str(node),
            "controller.quorum.voters": ",".join(
                f"{voter}@{LOOPBACK}:{own.controller}" for voter, own in enumerate(ports, start=1)
            ),
            "log.dirs": str(log_dir),
        }
    )


def _addresses(client: int, controller: int) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{client},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{client}",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }


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
    # One partition each is enough for a handful of groups, and quick to create.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # A group forms at once, and its members may time out after a second.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # The log cleaner with little memory, and prompt.
    "log.cleaner.dedupe.buffer.size": "2097152",
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "500",
}
