"""Incidents: what the unusual records of a fault have in common, from its start to its end.

An incident opens when the evidence that records are unusual (`evidence`) suffices: by one grossly
unusual record, or by several mildly unusual ones close together. It goes on while there is new
evidence, and closes after so many records without any. The numbers of records count, never the
time, so incidents are a function of the log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import InvalidParameterError, StateError
from faust_oslrau.learner.state import record_count

from .blame import Blame
from .evidence import Evidence, Found, Limits, Place, limits
from .merged_blame import MergedBlame
from .usual_scores import UsualScores

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

EXTENSION = 0.1
"""Expected number of times that usual records extend an incident by chance before it closes."""

SEVERITY_PER_DECADE = 25.0
"""Severity for each power of ten of evidence, so that 10,000 nats have severity 100."""

YOUNG = 768
"""The first records of a stream are no evidence: the p-values of a young model are too low."""

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
    major, critical
        Least severity of a major and of a critical incident, 0 <= major <= critical.
    """

    false_alarm_rate: float = 1e-5
    quiet_records: int = 256
    major: float = 50.0
    critical: float = 75.0

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises
        ------
        InvalidParameterError
            One is out of its range.
        """
        if not 0 < self.false_alarm_rate <= 0.01:
            raise InvalidParameterError(
                f"false_alarm_rate = {self.false_alarm_rate}: expected in (0, 0.01]"
            )
        if self.quiet_records < 1:
            raise InvalidParameterError(
                f"quiet_records = {self.quiet_records}: expected at least 1"
            )
        if not 0 <= self.major <= self.critical:
            raise InvalidParameterError(
                f"major = {self.major}, critical = {self.critical}: expected 0 <= major <= critical"
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
        The most unusual record, and its ``p_value`` among recent records of no incident.
    latest
        The record that completed the latest evidence.
    anomalies
        The number of anomalous records from the start to the latest.
    evidence
        The sum of all evidence in nats.
    level
        The place of the severity's name in ``LEVELS``.
    """

    opened: Place
    start: Place
    peak: Place
    latest: Place
    p_value: float
    anomalies: int
    evidence: float
    level: int

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


class Step(NamedTuple):
    """A row at which an incident got evidence or closed; ``state`` is None without an event."""

    row: int
    state: str | None
    incident: Incident
    reached: tuple[str, ...] = ()


def has_evidence(steps: Sequence[Step], m: int) -> NDArray[np.bool_]:
    """Return which of ``m`` rows have evidence."""
    result = np.zeros(m, np.bool_)
    result[[step.row for step in steps if step.state != CLOSED]] = True
    return result


def severity(nats: float) -> float:
    """Return the severity of so much evidence, from 0 to 100: 25 for each power of ten nats."""
    return min(SEVERITY_PER_DECADE * math.log10(1.0 + nats), 100.0)


class Incidents:
    """Opens, updates and closes the incidents of a stream, one at a time.

    Attributes
    ----------
    parameters
        May be replaced between two calls; they apply to the records after that.
    open
        The incident that is open, None if there is none.
    usual
        What records are held against.
    """

    def __init__(self, parameters: IncidentParameters) -> None:
        self.parameters = parameters
        self.open: Incident | None = None
        self._evidence = Evidence()
        self._blame = MergedBlame(0)
        self._uncounted = 0  # anomalous records since the latest evidence
        self.usual = UsualScores()

    def trace(
        self, p_value: FloatArray, is_anomaly: NDArray[np.bool_], places: IntArray
    ) -> list[Step]:
        """Follow the next records (m,), and return the rows at which something happened.

        ``places`` (m, 3) are their numbers in the stream, offsets and timestamps.
        """
        steps: list[Step] = []
        opening, going_on = self._limits()
        first, m = int(places[0, 0]), len(p_value)
        at = min(max(YOUNG - first, 0), m)
        while at < m:
            stop = m if self.open is None else min(max(self._due() - first, at) + 1, m)
            some, enough = slice(at, stop), opening if self.open is None else going_on
            rows, found = self._evidence.add(p_value[some], is_anomaly[some], places[some], enough)
            row, at = at + rows, min(at + rows + 1, stop)
            self._uncounted += int(np.count_nonzero(is_anomaly[some.start : at]))
            if found is not None:
                steps.append(self._weigh(row, found, Place(*places[row].tolist())))
            elif self.open is not None and first + stop > self._due():
                steps.append(Step(stop - 1, CLOSED, self.open))
                self.open = None
        return steps

    def _due(self) -> int:
        """Return the number of the record at which the open incident closes without evidence."""
        return (self.open.latest.number if self.open else 0) + self.parameters.quiet_records

    def events(self, steps: Sequence[Step], blame: Blame) -> list[IncidentEvent]:
        """Return the events of these steps; ``blame`` (k, d) has the rows with evidence."""
        found, row = [], 0
        for step in steps:
            if step.state == OPENED:
                self._blame = MergedBlame(blame.order.shape[1])
            if step.state != CLOSED:
                self._blame.add(blame, row)
                row += 1
            if step.state is not None:
                mean = self._blame.mean()
                found.append(IncidentEvent(step.row, step.state, step.incident, mean, step.reached))
            if step.state == CLOSED:
                self._blame = MergedBlame(0)
        return found

    def _limits(self) -> tuple[Limits, Limits]:
        """Return the evidence that opens an incident, and the evidence that extends it."""
        rate = self.parameters.false_alarm_rate
        extension = EXTENSION / self.parameters.quiet_records
        return limits(rate), limits(max(rate, extension))

    def _weigh(self, row: int, found: Found, place: Place) -> Step:
        """Open an incident, or add the evidence to the one that is open."""
        before = self.open
        if before is None:
            after = Incident(
                opened=place, start=found.start, peak=found.peak, latest=place,
                p_value=found.p_value, anomalies=found.anomalies, evidence=found.nats, level=0,
            )  # fmt: skip
        else:
            after = replace(
                before,
                latest=place,
                anomalies=before.anomalies + self._uncounted,
                evidence=before.evidence + found.nats,
            )
            if found.p_value < before.p_value:
                after = replace(after, peak=found.peak, p_value=found.p_value)
        self.usual.leave_out(after.start.number, after.latest.number)
        level = self.parameters.level(after.severity)
        self.open, self._uncounted = replace(after, level=level), 0
        reached = LEVELS[0 if before is None else before.level + 1 : level + 1]
        state = OPENED if before is None else UPDATED if reached else None
        return Step(row, state, self.open, reached)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that ``restored`` needs, as values that JSON can hold, and arrays."""
        evidence, incident = self._evidence, self.open
        values = {
            "parameters": asdict(self.parameters),
            "open": None if incident is None else asdict(incident),
            "uncounted": self._uncounted,
        }
        arrays = {
            "evidence": evidence.numbers,
            "evidence_marks": evidence.marks,
            "evidence_squares": evidence.squares,
            "incident_means": self._blame.means,
            "incident_seen": self._blame.seen,
        }
        if len(self.usual.stretches) > 0:
            arrays["incident_stretches"] = self.usual.stretches
        if self.usual.calibration is not None:
            arrays["incident_scores"] = self.usual.calibration.recent
        return values, arrays

    @classmethod
    def restored(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]], d: int) -> Self:
        """Return the incidents of a state of ``d`` fields; StateError if it cannot be one."""
        incidents = cls(IncidentParameters(**values["parameters"]))
        if values["open"] is not None:
            incidents.open = _incident(values["open"])
            incidents._blame.restore(arrays["incident_means"], arrays["incident_seen"], d)
        incidents._uncounted = record_count(values["uncounted"])
        incidents._evidence.restore(
            arrays["evidence"], arrays["evidence_marks"], arrays["evidence_squares"]
        )
        incidents.usual.restore(
            arrays.get("incident_stretches", np.empty((0, 2))), arrays.get("incident_scores")
        )
        return incidents


def _incident(values: dict[str, Any]) -> Incident:
    """Return the incident of a state; StateError if it cannot be one."""
    places = {name: _place(values[name]) for name in ("opened", "start", "peak", "latest")}
    incident = Incident(**{**values, **places})
    if not 0 <= incident.start.number <= incident.opened.number <= incident.latest.number:
        raise StateError("state: expected the records of an incident in order")
    if not (0 < incident.p_value <= 1 and 0 <= incident.evidence < math.inf):
        raise StateError("state: expected the evidence of an incident")
    if incident.level not in range(len(LEVELS)):
        raise StateError(f"state: expected a level of severity, got {incident.level!r}")
    record_count(incident.anomalies)
    return incident


def _place(numbers: Sequence[int]) -> Place:
    number, offset, timestamp = map(int, numbers)
    return Place(number, offset, timestamp)
