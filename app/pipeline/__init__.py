"""Turns the records of a partition into messages, and its state into snapshots.

No I/O, but for the file of the setting `initial_model`.
"""

from .block import (
    STAGES,
    EntityCounts,
    ExpectedField,
    ProcessedBlock,
    SilenceCounts,
    Skipped,
)
from .building import compile_pipeline, needs_times
from .chosen_told import chosen_told
from .entity_profile import profile_data
from .epochs import Change, Epoch, Epochs
from .initial_model import initial_model, new_pipeline
from .model_file import initial_digest
from .pipeline import PartitionPipeline
from .seen_fields import SeenFields
from .snapshot import (
    IncompatibleSnapshotError,
    Snapshot,
    changed_settings,
    check_settings,
    earlier_settings,
    installed_version,
    scoring_settings,
    settings_digest,
)
from .succession import BLOCK, Successor, changes, continued

__all__ = [
    "BLOCK",
    "STAGES",
    "Change",
    "EntityCounts",
    "Epoch",
    "Epochs",
    "ExpectedField",
    "IncompatibleSnapshotError",
    "PartitionPipeline",
    "ProcessedBlock",
    "SeenFields",
    "SilenceCounts",
    "Skipped",
    "Snapshot",
    "Successor",
    "changed_settings",
    "changes",
    "check_settings",
    "chosen_told",
    "compile_pipeline",
    "continued",
    "earlier_settings",
    "initial_digest",
    "initial_model",
    "installed_version",
    "needs_times",
    "new_pipeline",
    "profile_data",
    "scoring_settings",
    "settings_digest",
]
