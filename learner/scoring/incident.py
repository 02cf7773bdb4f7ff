"""An incident: what the unusual records of a fault have in common, and how severe that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.parameters import require
from faust_oslrau.learner.state import record_count
from faust_oslrau.learner.state_schema import expect
from faust_oslrau.learner.stored import Places

from .blame import Blame
from .evidence import Place

SEVERITY_PER_DECADE = 25.0
"""Severity for each power of ten of evidence, so that 10,000 nats have severity 100."""

OPENED, UPDATED, CLOSED = "opened", "updated", "closed"
"""States of an incident in its events."""

LEVELS = ("minor", "major", "critical")
"""Names of severities, the least severe first."""


@dataclass(frozen=True, slots=True)
class IncidentParameters:
    """When incidents open and close, and how severe they are.

    Attributes
    ----------
    false_alarm_rate
        Most incidents that usual, independent records open by chance, per record, in (0, 0.01].
    quiet_records
        Records without new evidence after which an incident closes, at least 1.
    quiet_seconds
        If it is given, an incident closes with the first record whose timestamp is so much later
        than that of the latest evidence instead; above 0. Records are counted where it has no
        timestamp, or one that is far ahead of the other records.
    major, critical
        Least severity of a major and of a critical incident, 0 <= major <= critical.
    """

    false_alarm_rate: float = 1e-5
    quiet_records: int = 256
    quiet_seconds: float | None = None
    major: float = 50.0
    critical: float = 75.0

    def __post_init__(self) -> None:
        """Raise InvalidParameterError for a parameter out of its range."""
        rate, records, seconds = self.false_alarm_rate, self.quiet_records, self.quiet_seconds
        require(0 < rate <= 0.01, "false_alarm_rate", rate, "in (0, 0.01]")
        require(records >= 1, "quiet_records", records, "at least 1")
        is_time = seconds is None or 0 < seconds < math.inf
        require(is_time, "quiet_seconds", seconds, "above 0, or None")
        levels = (self.major, self.critical)
        require(
            0 <= self.major <= self.critical, "major, critical", levels, "0 <= major <= critical"
        )

    def level(self, severity: float) -> int:
        """Return the place of a severity's name in ``LEVELS``."""
        return int(severity >= self.major) + int(severity >= self.critical)


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident as it stands after a record.

    Attributes
    ----------
    opened
        The record that completed the evidence.
    start
        The record with which this evidence began: since when records have deviated.
    peak
        The most unusual record, and its ``p_value``.
    latest
        The record that completed the latest evidence.
    anomalies
        The number of anomalous records from the start to the latest.
    evidence
        The sum of all evidence in nats.
    level
        The place of the severity's name in ``LEVELS``.
    entity
        The entity of the record that opened it; None without entities.
    """

    opened: Place
    start: Place
    peak: Place
    latest: Place
    p_value: float
    anomalies: int
    evidence: float
    level: int
    entity: str | None = None

    @property
    def length(self) -> int:
        """Number of records from the start to the latest."""
        return self.latest.number - self.start.number + 1

    @property
    def severity(self) -> float:
        """How severe it is, from 0 to 100."""
        return severity(self.evidence)

    @property
    def severity_name(self) -> str:
        """One of ``LEVELS``."""
        return LEVELS[self.level]


class IncidentEvent(NamedTuple):
    """A change of an incident at a row of a block.

    Attributes
    ----------
    row
        The row at which it changed.
    state
        ``opened``, ``updated`` (its severity has another name), or ``closed``.
    incident
        The incident after the change.
    blame
        Its fields (1, d), the most to blame first, averaged over the records with evidence.
    reached
        The names of severity that the incident did not have before.
    """

    row: int
    state: str
    incident: Incident
    blame: Blame
    reached: tuple[str, ...]


def severity(nats: float) -> float:
    """Return the severity of so much evidence, from 0 to 100: 25 for each power of ten nats."""
    return min(SEVERITY_PER_DECADE * math.log10(1.0 + nats), 100.0)


def as_plain(values: IncidentParameters | Incident) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in asdict(values).items() if value is not None}


def incident_of(values: dict[str, Any]) -> Incident:
    """Return the incident of a state; StateError if it cannot be one."""
    places = {name: _place(values[name]) for name in ("opened", "start", "peak", "latest")}
    incident = Incident(**{**values, **places})
    in_order = 0 <= incident.start.number <= incident.opened.number <= incident.latest.number
    expect(in_order, "the records of an incident in order")
    is_finite = 0 < incident.p_value <= 1 and 0 <= incident.evidence < math.inf
    expect(is_finite, "the evidence of an incident")
    expect(incident.level in range(len(LEVELS)), f"a level of severity, got {incident.level!r}")
    expect(isinstance(incident.entity, str | None), "the name of an entity")
    record_count(incident.anomalies)
    return incident


def _place(numbers: Sequence[int]) -> Place:
    number, offset, timestamp = map(int, numbers)
    return Place(number, offset, timestamp)


NUMBERS = ("value", "nats", "usual", "expected", "deviation", "extrapolated")

MOST_NATS = 50.0
"""Most nats beyond the usual that a field of one record counts for the order: one extreme value
must not outweigh all other records."""

LEAST_SHARE = 0.1
"""Least share of the nats of the field most to blame, in total, with which a field is to blame."""


class MergedBlame:
    """Averages of the blame of records, field by field, over the records that blame the field.

    Attributes
    ----------
    means
        Average of each of ``NUMBERS``, and of the nats beyond the usual as they count for the order
        (7, d).
    seen
        Number of records that blame each field (d,), empty before the first.
    """

    def __init__(self) -> None:
        self.means, self.seen = np.empty((len(NUMBERS) + 1, 0)), np.empty(0)

    def restore(self, means: FloatArray, seen: FloatArray, d: int) -> None:
        """Restore a state of ``d`` fields; StateError if it cannot be one."""
        shapes = means.shape, seen.shape
        expect(shapes == ((len(NUMBERS) + 1, d), (d,)), "the merged blame of an incident")
        expect((seen >= 0).all(), "numbers of blamed records")
        self.means, self.seen = means, seen

    def add_fields(self, places: Places) -> None:
        """Make room for more fields, which no record blames."""
        self.means = places.widened(self.means, 1, 0.0)
        self.seen = places.widened(self.seen, 0, 0.0)

    def add(self, blame: Blame, row: int) -> None:
        """Add a row of ``blame``."""
        if len(self.seen) == 0:
            d = blame.order.shape[1]
            self.means, self.seen = np.zeros((len(NUMBERS) + 1, d)), np.zeros(d)
        blamed = ~np.isnan(blame.nats[row])
        numbers = np.array([getattr(blame, name)[row] for name in NUMBERS])
        counted = np.minimum(blame.excess[row], MOST_NATS)
        self.seen[blamed] += 1
        # a category has no deviation and no mean: the latest one stands for all
        is_category = np.isnan(blame.deviation[row, blamed])
        share = np.where(is_category, 1.0, 1.0 / self.seen[blamed])
        added = np.vstack([numbers, counted])[:, blamed]
        self.means[:, blamed] = (1.0 - share) * self.means[:, blamed] + share * added

    def categories(self, c: int) -> FloatArray:
        """Return values and expected values of the last ``c`` fields, where these are to blame."""
        of = np.arange(len(self.seen))[-c:]
        named = self.means[:, of[self.seen[of] > 0]]
        return named[[NUMBERS.index("value"), NUMBERS.index("expected")]].ravel()

    def mean(self) -> Blame:
        """Return the averages (1, d), the fields with most nats beyond the usual in total first."""
        numbers = np.where(self.seen > 0, self.means[: len(NUMBERS)], np.nan)
        total = np.where(self.seen > 0, self.seen * self.means[-1], np.nan)
        order = np.argsort(-total, kind="stable")
        named = dict(zip(NUMBERS, numbers[:, None, :], strict=True))
        named["extrapolated"] = named["extrapolated"] > 0.5
        most = np.nanmax(total, initial=-np.inf)  # below 0 where values are as good as usual
        n_blamed = np.count_nonzero(total >= min(LEAST_SHARE * most, most))
        return Blame(order=order[None, :], n_blamed=np.array([n_blamed]), **named)
