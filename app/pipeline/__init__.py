"""Turns the records of a partition into messages, and its state into snapshots; no I/O."""

from .block import STAGES, EntityCounts, ProcessedBlock, Skipped
from .learners import LEARNERS
from .pipeline import PartitionPipeline
from .snapshot import (
    IncompatibleSnapshotError,
    Snapshot,
    check_settings,
    installed_version,
    scoring_settings,
)

__all__ = [
    "LEARNERS",
    "STAGES",
    "EntityCounts",
    "IncompatibleSnapshotError",
    "PartitionPipeline",
    "ProcessedBlock",
    "Skipped",
    "Snapshot",
    "check_settings",
    "installed_version",
    "scoring_settings",
]
