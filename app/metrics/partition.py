"""The metrics of one partition."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.app.pipeline import STAGES, ExpectedField, ProcessedBlock, Skipped
from faust_oslrau.learner import Incident
from faust_oslrau.learner.scoring.entity_events import NEW, UNUSUAL, USUAL
from faust_oslrau.learner.scoring.incident import LEVELS
from faust_oslrau.topics import FieldState, Reason

from .distribution import Distribution
from .history import History
from .window import Window

# From the time of a fast batch to that of restoring a large network.
_STAGE_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
# From one round trip to the broker to the lag of a worker that was stopped for hours.
_END_TO_END_SECONDS = (
    *(0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200),
)
# Tenths, which a calibrated stream fills evenly, and smaller bounds for alarms.
_P_VALUES = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.05, *(round(0.1 * tenth, 1) for tenth in range(1, 11)))
# Enough for a quantile of 1 %, few enough to follow changes of the stream.
_WINDOW_RECORDS = 2048


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """The size of a partition's network, and the number of its structure changes by kind."""

    nodes: Mapping[str, int]
    edges: int
    parameters: int
    depth: int
    structure_changes: Mapping[str, int]


class PartitionMetrics:
    """The metrics of a partition as plain numbers, from which a scrape creates series.

    Counters exist for all known label values from the start: Prometheus misses the first event of a
    counter that appears with it.

    Parameters
    ----------
    blamed
        Counts the fields to blame for anomalies over all partitions.
    topic
        The source topic.

    Attributes
    ----------
    window
        The last log-likelihoods, for exact quantiles.
    history
        The last minutes, for the page.
    """

    def __init__(self, blamed: BlamedFields, topic: str) -> None:
        self.records = Counter(dict.fromkeys(("scored", "rejected", "replayed"), 0))
        self.learned = 0
        self.skipped = Counter(dict.fromkeys(map(str, Skipped), 0))
        self.anomalies = 0
        self.dead_letters = Counter(dict.fromkeys(map(str, Reason), 0))
        self.missing = 0
        self.empty_fields = 0
        self.ignored_fields = 0
        self.successor_records_left = 0
        self.wrong_types = 0
        self.awaited_schemas = 0
        self.drift_events = 0
        self.drift = 0.0
        self.entities: int | None = None
        self.entities_evicted = 0
        self.entity_events = Counter(dict.fromkeys((NEW, UNUSUAL, USUAL), 0))
        self.silences = 0
        self.rate_changes = 0
        self.field_changes = Counter(dict.fromkeys(map(str, FieldState), 0))
        self.silent_entities: int | None = None
        self.silence_limit: float | None = None
        self.last_timestamp: float | None = None
        self.expected_fields: dict[str, ExpectedField] = {}
        self.incidents = Counter(dict.fromkeys(LEVELS, 0))
        self.open: Sequence[Incident] = ()
        self.structure_changes = Counter[str]()
        self.snapshot_failures = Counter(dict.fromkeys(("save", "damaged"), 0))
        self.network: NetworkSize | None = None
        self.lag: int | None = None
        self.snapshot_age: float | None = None
        self.snapshot_bytes: int | None = None
        self.snapshot_offset: int | None = None
        self.window = Window(_WINDOW_RECORDS)
        self.history = History()
        self.p_value = Distribution(_P_VALUES)
        self.end_to_end = Distribution(_END_TO_END_SECONDS)
        self.stages = {stage: Distribution(_STAGE_SECONDS) for stage in STAGES}
        self._blamed = blamed
        self._topic = topic

    def count_replayed(self, block: ProcessedBlock) -> None:
        """Count records that were only learned again, as their outputs exist."""
        records = len(block.scores) + len(block.dead_letters)
        self.records["replayed"] += records
        self.history.add_replayed(records)
        self._count_work(block)

    def count_emitted(self, block: ProcessedBlock, seconds: NDArray[np.float64]) -> None:
        """Count records whose outputs are acknowledged; `seconds` (m,) are the scores' ages."""
        self.records["scored"] += len(block.scores)
        self.records["rejected"] += len(block.dead_letters)
        self.anomalies += len(block.anomalies)
        self.wrong_types += sum(block.wrong_types.values())
        self.drift_events += len(block.events)
        _add(self.dead_letters, block.reasons)
        _add(self.incidents, block.reached)
        _add(self.entity_events, block.told)
        self.rate_changes += block.n_rate_changes
        _add(self.field_changes, block.changed_fields)
        if block.silence_counts is not None:
            self.silences += block.silence_counts.found
        self.window.add(block.log_likelihood)
        self.p_value.observe(block.p_value)
        self.end_to_end.observe(seconds)
        self._blamed.count(self._topic, block.blamed)
        self.history.add_emitted(block)
        self._count_work(block)

    def begin_anew(self) -> None:
        """Forget what is known of a model that gives way to another one."""
        self.successor_records_left = 0
        self.entities = self.silent_entities = self.silence_limit = None
        self.expected_fields = {}
        self.window = Window(_WINDOW_RECORDS)
        self.history.begin_anew()

    def set_lag(self, records: int) -> None:
        """Record the number of unread records in the log."""
        self.lag = records
        self.history.add_lag(records)

    def count_missing(self, offsets: int) -> None:
        """Count offsets without a record."""
        self.missing += offsets

    def count_snapshot_failure(self, kind: str) -> None:
        """Count a snapshot that could not be saved, or that was damaged."""
        self.snapshot_failures[kind] += 1

    def open_incidents(self) -> dict[str, int]:
        """Return the number of open incidents by severity."""
        counts = Counter(incident.severity_name for incident in self.open)
        return {name: counts[name] for name in LEVELS}

    def incident_seconds(self) -> float | None:
        """Return the time since the record that opened the oldest open incident; None without."""
        opened = [incident.opened.timestamp for incident in self.open]
        known = [timestamp for timestamp in opened if timestamp >= 0]
        return time.time() - min(known) / 1000 if known else None

    def set_snapshot(self, offset: int, size: int) -> None:
        """Record the offset and the size in bytes of the last snapshot."""
        self.snapshot_offset, self.snapshot_bytes = offset, size

    def observe_stage(self, stage: str, seconds: float) -> None:
        """Record the time of a stage."""
        if stage not in self.stages:
            self.stages[stage] = Distribution(_STAGE_SECONDS)
        self.stages[stage].observe_one(seconds)

    def set_restored_network(self, size: NetworkSize) -> None:
        """Record the size of a restored network, without counting its structure changes."""
        self.network = size

    def set_network(self, size: NetworkSize) -> None:
        """Record the size of the network, and count its structure changes since the last call."""
        before = self.network.structure_changes if self.network else {}
        for kind, count in size.structure_changes.items():
            self.structure_changes[kind] += max(0, count - before.get(kind, 0))
        self.network = size

    def _count_work(self, block: ProcessedBlock) -> None:
        self.learned += block.learned
        _add(self.skipped, block.skipped)
        self.drift = block.drift
        if block.entities is not None:
            self.entities = block.entities.held
            self.entities_evicted += block.entities.evicted
        if block.silence_counts is not None:
            self.silent_entities = block.silence_counts.silent
            self.silence_limit = block.silence_counts.limit
        last = next((time for time in reversed(block.timestamps) if time >= 0), None)
        if last is not None:
            self.last_timestamp = float(last) / 1000
        self.expected_fields |= block.expected_fields
        self.open = block.open_incidents
        for stage, seconds in block.seconds.items():
            self.observe_stage(stage, seconds)


def _add(counts: Counter[str], more: Mapping[str, int]) -> None:
    """Count more; most blocks have nothing to add, and `update` takes a microsecond for it."""
    for name, count in more.items():
        counts[name] += count


class BlamedFields:
    """The number of anomalies by topic and by the field most to blame.

    Only the first `_MAX_FIELDS` fields are counted one by one: with `features = "auto"` the records
    choose the names.
    """

    REST = "(other)"
    _MAX_FIELDS = 100

    def __init__(self) -> None:
        self.counts = Counter[tuple[str, str]]()

    def count(self, topic: str, blamed: Mapping[str, int]) -> None:
        """Count the fields most to blame for anomalies."""
        for field, anomalies in blamed.items():
            has_count = (topic, field) in self.counts or len(self.counts) < self._MAX_FIELDS
            self.counts[topic, field if has_count else self.REST] += anomalies
