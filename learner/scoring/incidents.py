"""Incidents: what the unusual records of a fault have in common, from its start to its end.

An incident opens when the evidence that records are unusual (`evidence`) suffices: by one grossly
unusual record, or by several mildly unusual ones close together. It goes on while there is new
evidence, and closes after so many records without any, or so long by the records' timestamps.
The clock does not count, so incidents are a function of the log.
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
from .evidence import Evidence, Found, Place, limit
from .merged_blame import MergedBlame

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Key = bytes | None

EXTENSION = 0.1
"""Expected number of times that usual records extend an incident by chance before it closes."""

SEVERITY_PER_DECADE = 25.0
"""Severity for each power of ten of evidence, so that 10,000 nats have severity 100."""

YOUNG = 768
"""The first records of a stream are no evidence: the p-values of a young model are too low."""

LONGEST_NAME = 256
"""Bytes of an entity's name that an incident holds."""

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
        than that of the latest evidence instead; above 0. Records without a timestamp are counted.
    major, critical
        Least severity of a major and of a critical incident, 0 <= major <= critical.
    """

    false_alarm_rate: float = 1e-5
    quiet_records: int = 256
    quiet_seconds: float | None = None
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
        if self.quiet_seconds is not None and not 0 < self.quiet_seconds < math.inf:
            raise InvalidParameterError(
                f"quiet_seconds = {self.quiet_seconds}: expected above 0, or None"
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
    """

    def __init__(self, parameters: IncidentParameters) -> None:
        self.parameters = parameters
        self.open: Incident | None = None
        self._evidence = Evidence()
        self._blame = MergedBlame(0)
        self._uncounted = 0  # anomalous records since the latest evidence

    def trace(
        self,
        p_value: FloatArray,
        is_anomaly: NDArray[np.bool_],
        places: IntArray,
        slots: IntArray,
        fresh: NDArray[np.bool_],
        keys: Sequence[Key] = (),
    ) -> list[Step]:
        """Follow the next records (m,), and return the rows at which something happened.

        ``places`` (m, 3) are their numbers in the stream, offsets and timestamps, ``slots`` (m,)
        those of their entities, or all 0; ``fresh`` (m,) says which begin anew there. ``keys`` (m,)
        are the entities, if there are any.
        """
        steps: list[Step] = []
        opening, going_on = self._limits()
        m = len(p_value)
        at = min(max(YOUNG - int(places[0, 0]), 0), m)
        while at < m:
            stop, closing = self._end(places, at)
            some, enough = slice(at, stop), opening if self.open is None else going_on
            rows, found = self._evidence.add(
                p_value[some], is_anomaly[some], places[some], slots[some], fresh[some], enough
            )
            row, at = at + rows, min(at + rows + 1, stop)
            self._uncounted += int(np.count_nonzero(is_anomaly[some.start : at]))
            if found is not None:
                key = keys[row] if keys else None
                steps.append(self._weigh(row, found, Place(*places[row].tolist()), key))
            elif self.open is not None and closing is not None:
                steps.append(Step(closing, CLOSED, self.open))
                self.open = None
        return steps

    def _end(self, places: IntArray, at: int) -> tuple[int, int | None]:
        """Return up to which row evidence extends the open incident, and at which it closes else.

        The latter is None if that lies beyond these rows, or if none is open. A record that comes
        too late by its timestamp may open the next incident.
        """
        m, seconds = len(places), self.parameters.quiet_seconds
        if self.open is None:
            return m, None
        latest = self.open.latest
        if seconds is not None and latest.timestamp >= 0:
            late = places[at:, 2] >= latest.timestamp + 1000.0 * seconds
            return (at + int(late.argmax()),) * 2 if late.any() else (m, None)
        due = latest.number + self.parameters.quiet_records - int(places[0, 0])
        row = max(due, at)
        return (row + 1, row) if row < m else (m, None)

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

    def _limits(self) -> tuple[float, float]:
        """Return the evidence that opens an incident, and the evidence that extends it."""
        rate = self.parameters.false_alarm_rate
        extension = EXTENSION / self.parameters.quiet_records
        return limit(rate), limit(max(rate, extension))

    def _weigh(self, row: int, found: Found, place: Place, key: Key) -> Step:
        """Open an incident, or add the evidence to the one that is open."""
        before = self.open
        if before is None:
            after = Incident(
                opened=place, start=found.start, peak=found.peak, latest=place,
                p_value=found.p_value, anomalies=found.anomalies, evidence=found.nats, level=0,
                entity=None if key is None else key[:LONGEST_NAME].decode(errors="replace"),
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
        level = self.parameters.level(after.severity)
        self.open, self._uncounted = replace(after, level=level), 0
        reached = LEVELS[0 if before is None else before.level + 1 : level + 1]
        state = OPENED if before is None else UPDATED if reached else None
        return Step(row, state, self.open, reached)

    def state(self, slots: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that ``restored`` needs, of so many slots in use.

        As values that JSON can hold, and arrays.
        """
        incident = self.open
        values = {
            "parameters": _given(self.parameters),
            "open": None if incident is None else _given(incident),
            "uncounted": self._uncounted,
        }
        arrays = {
            **self._evidence.state(slots),
            "incident_means": self._blame.means,
            "incident_seen": self._blame.seen,
        }
        return values, arrays

    @classmethod
    def restored(
        cls,
        values: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        d: int,
    ) -> Self:
        """Return the incidents of a state of ``d`` fields; StateError if it cannot be one."""
        incidents = cls(IncidentParameters(**values["parameters"]))
        if values["open"] is not None:
            incidents.open = _incident(values["open"])
            incidents._blame.restore(arrays["incident_means"], arrays["incident_seen"], d)
        incidents._uncounted = record_count(values["uncounted"])
        incidents._evidence.restore(arrays)
        return incidents


def _given(values: IncidentParameters | Incident) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in asdict(values).items() if value is not None}


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
    if not isinstance(incident.entity, str | None):
        raise StateError("state: expected the name of an entity")
    record_count(incident.anomalies)
    return incident


def _place(numbers: Sequence[int]) -> Place:
    number, offset, timestamp = map(int, numbers)
    return Place(number, offset, timestamp)
