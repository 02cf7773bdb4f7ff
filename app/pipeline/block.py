"""The result of processing a block of records: messages, counts and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner import Blame, Forecast, Incident, ScoredBlock
from faust_oslrau.learner.keys import entity_name
from faust_oslrau.topics import OutMessage

# Fields whose values, and what was expected of them, are metrics: four series each.
_MOST_EXPECTED_FIELDS = 16

STAGES = ("decode", "score", "learn", "emit")


class Skipped(StrEnum):
    """Why a scored record was not learned: its score is far too low, or learning is off."""

    FAR = "far"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class EntityCounts:
    """How many entities are known after a block, how many gave way, and records without one."""

    held: int
    evicted: int
    without: int


@dataclass(frozen=True, slots=True)
class SilenceCounts:
    """How many silences were found in a block, and how many entities are silent after it.

    `limit` is the time in seconds after which a silence of the partition is too long; None if
    unknown.
    """

    found: int
    silent: int
    limit: float | None


class ExpectedField(NamedTuple):
    """The value of a field in a record, and what was expected of it; NaN if unknown."""

    value: float
    expected: float
    low: float
    high: float


@dataclass(slots=True)  # frozen ones take three times as long to make
class ProcessedBlock:
    """The result of processing consecutive records of a partition.

    Each record has one message, in `scores` or in `dead_letters`.

    Attributes
    ----------
    reasons
        The number of dead letters by reason.
    timestamps, log_likelihood, p_value
        One entry for each score (m,): milliseconds since 1970, nats, and a probability; NaN if
        there is none.
    blamed
        The number of anomalies by the field most to blame.
    learned, skipped
        The number of records that were learned, and of those that were not, by reason.
    seconds
        The time of each stage; `emit` begins with encoding the messages.
    events
        The drift events for the anomalies topic.
    drift
        How far scores have fallen: an event is raised at 1.
    entities
        Counts of entities; None without the setting `entity`.
    incidents
        The events of incidents for the anomalies topic.
    reached
        The number of incidents by each severity that they reached.
    open_incidents
        The incidents that are open after the last record.
    sends_records
        Whether the anomalies topic gets the anomalous records.
    wrong_types
        The number of contents that counted as missing, by field.
    rows
        The values (m, d) of the scored records; NaN = missing.
    entity_events
        The events of entities for the anomalies topic.
    told
        The number of these by state.
    alarming
        The names of the entities of the anomalies, in their order; empty without entities.
    keys
        The entity (m,) of each scored record, None for a record without one; empty without
        entities.
    silences
        The events of silences for the anomalies topic.
    rate_changes
        The events of rates for the anomalies topic.
    n_rate_changes
        How many changes of rates began.
    field_changes
        The events of fields for the anomalies topic.
    changed_fields
        The number of these by state.
    context
        Whether any scored record has a value of the field of its entity, of its time and of
        `rates_by`, by name; of other fields in settings those that no record has.
    silence_counts
        Counts of silences; None without the setting `silences`.
    expected_fields
        The first fields in the last scored record, by name; empty without the setting `forecasts`.
    forecast
        What was expected of the scored records; None unless the settings ask for it.
    """

    scores: list[OutMessage]
    anomalies: list[OutMessage]
    dead_letters: list[OutMessage]
    reasons: Mapping[str, int]
    timestamps: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    p_value: NDArray[np.float64]
    blamed: Mapping[str, int]
    learned: int
    skipped: Mapping[str, int]
    seconds: dict[str, float]
    events: list[OutMessage] = field(default_factory=list)
    drift: float = 0.0
    entities: EntityCounts | None = None
    incidents: list[OutMessage] = field(default_factory=list)
    reached: Mapping[str, int] = field(default_factory=dict)
    open_incidents: Sequence[Incident] = ()
    sends_records: bool = True
    rows: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    entity_events: list[OutMessage] = field(default_factory=list)
    told: Mapping[str, int] = field(default_factory=dict)
    alarming: list[str] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    silences: list[OutMessage] = field(default_factory=list)
    silence_counts: SilenceCounts | None = None
    rate_changes: list[OutMessage] = field(default_factory=list)
    n_rate_changes: int = 0
    expected_fields: dict[str, ExpectedField] = field(default_factory=dict)
    forecast: Forecast | None = None
    wrong_types: Mapping[str, int] = field(default_factory=dict)
    field_changes: list[OutMessage] = field(default_factory=list)
    changed_fields: Mapping[str, int] = field(default_factory=dict)
    context: dict[str, bool] = field(default_factory=dict)

    @property
    def first_rejection(self) -> str | None:
        """Where the first rejected record is, and what is wrong with it; None without one."""
        if not self.dead_letters:
            return None
        names = ("topic", "partition", "offset", "detail")
        headers = dict(self.dead_letters[0].headers)
        topic, partition, offset, detail = (headers[f"oslrau-{name}"].decode() for name in names)
        return f"{topic}/{partition} offset {offset}: {detail}"

    @property
    def alerts(self) -> list[OutMessage]:
        """The messages for the anomalies topic, in the order of the log."""
        records = self.anomalies if self.sends_records else []
        of_entities = self.entity_events + self.silences + self.rate_changes
        events = self.field_changes + self.events + self.incidents + of_entities
        return sorted(records + events, key=attrgetter("offset"))


def alarming(scored: ScoredBlock, entities: list[bytes | None] | None) -> list[str]:
    """Return the names of the entities of the anomalies, of records that have one."""
    if entities is None:
        return []
    names = (entities[i] for i in scored.is_anomaly.nonzero()[0].tolist())
    return [entity_name(name) for name in names if name is not None]


def counted(names: Iterable[str]) -> dict[str, int]:
    """Count names, of which there are few: a Counter takes longer to make than to count them."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def blamed(scored: ScoredBlock, fields: Sequence[str]) -> dict[str, int]:
    """Count the anomalies by the field most to blame."""
    return counted(fields[order[0]] for order in scored.blame.order.tolist())


def expected_fields(
    rows: NDArray[np.float64], scored: ScoredBlock, numbers: Sequence[str]
) -> dict[str, ExpectedField]:
    """Return what the last row holds of the first `numbers`, and what was expected of them."""
    if scored.forecast is None or len(rows) == 0:
        return {}
    last = np.array([rows[-1], *(part[-1] for part in scored.forecast)])
    return {
        field: ExpectedField(*last[:, column].tolist())
        for column, field in enumerate(numbers[:_MOST_EXPECTED_FIELDS])
    }


NOTHING_SCORED = ScoredBlock(
    log_likelihood=np.empty(0),
    p_value=np.empty(0),
    is_anomaly=np.empty(0, np.bool_),
    n_learned=np.empty(0, np.int64),
    warming_up=np.empty(0, np.bool_),
    blame=Blame.none(0),
    drift=0.0,
    changes=(),
    incidents=(),
    learned=0,
    held_back=0,
    score_seconds=0.0,
    learn_seconds=0.0,
)
