"""Liveness, readiness, and a summary of a worker's models."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from faust_oslrau.app.partitions.held_partition import HeldPartition
from faust_oslrau.app.partitions.runtime import Runtime

# No batch takes that long, unless the broker is away or something is stuck.
_STALL_SECONDS = 120.0


def liveness(runtime: Runtime) -> str | None:
    """Return why the worker counts as dead: records wait and none has moved for long."""
    if runtime.assignment is None:
        return None
    waiting = runtime.assignment.waiting
    seconds = time.monotonic() - runtime.assignment.last_progress
    if waiting and seconds > _STALL_SECONDS:
        return f"{waiting} records wait and none has moved for {seconds:.0f} s"
    return None


def readiness(runtime: Runtime, rebalancing: bool) -> str | None:
    """Return what the worker still waits for, None when it reads its partitions."""
    if runtime.preparing is not None or runtime.assignment is None:
        return runtime.preparing or "starting"
    silent = runtime.contact.silent_seconds
    if silent > runtime.settings.session_timeout:  # the group gives its partitions to others
        return f"the broker has not answered for {silent:.0f} s"
    if rebalancing:
        return "the group is rebalancing"
    if not runtime.assignment.is_open:
        return "partitions are being opened"
    if not runtime.assignment.held:
        return "no partition is assigned"
    return _awaited_schemas(runtime.assignment.held.values())


def _awaited_schemas(held: Iterable[HeldPartition]) -> str | None:
    waiting = sorted(each.tp for each in held if each.metrics.awaited_schemas)
    names = ", ".join(f"{topic}/{number}" for topic, number in waiting)
    return f"schemas are awaited from the registry for {names}" if waiting else None


def models(runtime: Runtime) -> dict[str, Any]:
    """Return a summary of each partition's model and offsets."""
    held = runtime.assignment.held if runtime.assignment else {}
    return {"partitions": [_summary(held[tp]) for tp in sorted(held)]}


def _summary(partition: HeldPartition) -> dict[str, Any]:
    network, scorer = partition.network, partition.pipeline.scorer
    return {
        "topic": partition.tp.topic,
        "partition": partition.tp.partition,
        "fields": partition.pipeline.fields,
        "left_out": partition.pipeline.left_out,
        "depends_on": partition.pipeline.dependences,
        "start": partition.start,
        "successor_start": partition.successor and partition.successor.start,
        "successor_awaits": partition.successor_awaits,
        "next_offset": partition.next_offset,
        "committed_offset": partition.committed,
        "snapshot_offset": partition.metrics.snapshot_offset,
        "lag": partition.lag,
        "missing_offsets": partition.missing,
        "records": scorer.n_records if scorer else 0,
        "nodes": dict(network.nodes) if network else {},
        "edges": network.edges if network else 0,
        "parameters": network.parameters if network else 0,
        "depth": network.depth if network else 0,
        "structure_changes": dict(network.structure_changes) if network else {},
    }
