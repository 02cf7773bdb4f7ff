"""Incidents: when they open, what extends them, and when they close.

An incident opens when the evidence suffices (`evidence`): several unusual records close together,
or a field that keeps its value for too long (`repeats`). It goes on while there is new evidence,
and closes after so many records without any, or so long by the records' timestamps.
Each entity has incidents of its own; one that sends no more ends while the others go on. The clock
on the wall does not count, so incidents are a function of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.keys import Key, entity_name
from faust_oslrau.learner.state import record_count
from faust_oslrau.learner.state_schema import expect

from .blame import Blame
from .clock import DAY
from .evidence import Evidence, Found, Place, limit
from .incident import (
    CLOSED,
    LEVELS,
    OPENED,
    UPDATED,
    Incident,
    IncidentEvent,
    IncidentParameters,
    MergedBlame,
    as_plain,
    incident_of,
)

EXTENSION = 0.1
"""Expected number of times that usual records extend an incident by chance before it closes."""

YOUNG = 768
"""The first records of a stream are no evidence: the p-values of a young model are too low."""

MOST_OPEN = 256
"""Open incidents at a time at the most: a fault of all entities needs no more."""


class Step(NamedTuple):
    """A row at which an incident got evidence or closed; ``state`` is None without an event."""

    row: int
    state: str | None
    incident: Incident
    blame: MergedBlame
    reached: tuple[str, ...] = ()


def has_evidence(steps: Sequence[Step], m: int) -> Mask:
    """Return which of ``m`` rows have evidence."""
    result = np.zeros(m, np.bool_)
    result[[step.row for step in steps if step.state != CLOSED]] = True
    return result


class Rows(NamedTuple):
    """Records (m,), some of a stream's next ones.

    ``stuck`` (m, d) is the evidence, in nats, that their fields are stuck. ``places`` (m, 3) are
    their numbers in the stream, offsets and timestamps, ``slots`` those of their entities, or all
    0; ``fresh`` says which begin anew there. ``times`` are the timestamps as far as they are
    plausible, ``now`` is the partition's time.
    """

    p_value: FloatArray
    stuck: FloatArray
    is_anomaly: Mask
    places: IntArray
    slots: IntArray
    fresh: Mask
    times: IntArray
    now: IntArray

    def part(self, some: slice) -> Self:
        """Return some of the records."""
        return type(self)._make(column[some] for column in self)


@dataclass(slots=True)
class Open:
    """An open incident, its blame so far, and its records since the latest evidence.

    ``quiet`` counts all of these, ``anomalies`` the anomalous ones.
    """

    incident: Incident
    blame: MergedBlame = field(default_factory=MergedBlame)
    quiet: int = 0
    anomalies: int = 0


class Incidents:
    """Opens, updates and closes the incidents of a stream, one at a time of each entity.

    Attributes
    ----------
    parameters
        May be replaced between two calls; they apply to the records after that.
    open
        The open incidents by the slots of their entities, the oldest first.
    """

    def __init__(self, parameters: IncidentParameters) -> None:
        self.parameters = parameters
        self.open: dict[int, Open] = {}
        self._evidence = Evidence()

    @property
    def enough(self) -> float:
        """The evidence, in nats, that opens an incident."""
        return limit(self.parameters.false_alarm_rate)

    def trace(self, rows: Rows, keys: Sequence[Key] = ()) -> list[Step]:
        """Follow the next records (m,), and return the rows at which something happened.

        ``keys`` (m,) are their entities, if there are any.
        """
        steps: list[Step] = []
        m = len(rows.p_value)
        at = min(max(YOUNG - int(rows.places[0, 0]), 0), m)
        while at < m:
            stop, closing = self._end(rows, at)
            some = rows if stop - at == m else rows.part(slice(at, stop))
            n, found = self._evidence.add(*some[:6], self._enough(some.slots))
            row, n = at + n, min(n + 1, stop - at)
            if self.open:
                self._count(some.part(slice(0, n)))
            at += n
            if found is not None:
                slot, key = int(rows.slots[row]), keys[row] if keys else None
                if slot in self.open or len(self.open) < MOST_OPEN:
                    place = Place(*rows.places[row].tolist())
                    steps.append(self._weigh(row, slot, found, place, key))
            elif closing is not None:
                held = self.open.pop(closing[0])
                steps.append(Step(closing[1], CLOSED, held.incident, held.blame))
        return steps

    def _end(self, rows: Rows, at: int) -> tuple[int, tuple[int, int] | None]:
        """Return up to which row evidence counts, and which slot's incident closes at which row.

        The latter is None if no open incident ends among these rows.
        """
        stop, closing = len(rows.p_value), None
        for slot, held in self.open.items():
            until, row = self._end_of(slot, held, rows, at)
            if row is not None and (closing is None or (until, row) < (stop, closing[1])):
                stop, closing = until, (slot, row)
        return stop, closing

    def _end_of(self, slot: int, held: Open, rows: Rows, at: int) -> tuple[int, int | None]:
        """Return up to which row evidence extends an open incident, and at which it closes else.

        A record that comes too late by its timestamp, or that is another entity's, may open the
        next incident.
        """
        m, seconds, latest = len(rows.p_value), self.parameters.quiet_seconds, held.incident.latest
        own = at + np.flatnonzero(rows.slots[at:] == slot)
        ends = own[rows.fresh[own]]
        by_time = seconds is not None and latest.timestamp >= 0
        if seconds is not None and by_time:
            late = rows.times[at:] >= latest.timestamp + 1000.0 * seconds
            ends = np.append(ends, at + np.flatnonzero(late)[:1])
        else:
            # An entity that sends no more does not keep its incident open: after so many records
            # of all, each of `MOST_OPEN` entities could have sent its quiet ones.
            most = MOST_OPEN * self.parameters.quiet_records
            ends = np.append(ends, max(latest.number + most + 1 - int(rows.places[0, 0]), at))
        due = own[max(self.parameters.quiet_records - held.quiet, 1) - 1 :]
        if by_time:  # only if that of the evidence is one that a wrong clock has set
            due = due[latest.timestamp > rows.now[due] + DAY]
        if due.min(initial=m) < ends.min(initial=m):
            return int(due[0]) + 1, int(due[0])
        end = int(ends.min(initial=m))
        return end, end if end < m else None

    def _enough(self, slots: IntArray) -> FloatArray:
        """Return the evidence (m,) that opens an incident, or extends the one that is open."""
        result = np.full(len(slots), self.enough)
        if self.open:
            rate = self.parameters.false_alarm_rate
            extension = max(rate, EXTENSION / self.parameters.quiet_records)
            result[np.isin(slots, list(self.open))] = limit(extension)
        return result

    def _count(self, rows: Rows) -> None:
        """Count the records of open incidents."""
        for slot, held in self.open.items():
            own = rows.slots == slot
            held.quiet += int(np.count_nonzero(own))
            held.anomalies += int(np.count_nonzero(own & rows.is_anomaly))

    def events(self, steps: Sequence[Step], blame: Blame) -> list[IncidentEvent]:
        """Return the events of these steps; ``blame`` (k, d) has the rows with evidence."""
        found, row = [], 0
        for step in steps:
            if step.state != CLOSED:
                step.blame.add(blame, row)
                row += 1
            if step.state is not None:
                mean = step.blame.mean()
                found.append(IncidentEvent(step.row, step.state, step.incident, mean, step.reached))
        return found

    def told(self, state: str) -> list[IncidentEvent]:
        """Return an event with this state of each open incident, as it stands."""
        return [
            IncidentEvent(0, state, held.incident, held.blame.mean(), ())
            for held in self.open.values()
        ]

    def _weigh(self, row: int, slot: int, found: Found, place: Place, key: Key) -> Step:
        """Open an incident, or add the evidence to the one that is open."""
        held = self.open.get(slot)
        before = None if held is None else held.incident
        if held is None or before is None:
            after = Incident(
                opened=place, start=found.start, peak=found.peak, latest=place,
                p_value=found.p_value, anomalies=found.anomalies, evidence=found.nats, level=0,
                entity=None if key is None else entity_name(key),
            )  # fmt: skip
            held = self.open[slot] = Open(after)
        else:
            after = replace(
                before,
                latest=place,
                anomalies=before.anomalies + held.anomalies,
                evidence=before.evidence + found.nats,
            )
            if found.p_value < before.p_value:
                after = replace(after, peak=found.peak, p_value=found.p_value)
        level = self.parameters.level(after.severity)
        held.incident, held.quiet, held.anomalies = replace(after, level=level), 0, 0
        reached = LEVELS[0 if before is None else before.level + 1 : level + 1]
        state = OPENED if before is None else UPDATED if reached else None
        return Step(row, state, held.incident, held.blame, reached)

    @property
    def blames(self) -> list[MergedBlame]:
        """The blame so far of each open incident."""
        return [each.blame for each in self.open.values()]

    def state(self, slots: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that ``restored`` needs, of so many slots in use.

        As values that JSON can hold, and arrays.
        """
        held = self.open.values()
        values = {
            "parameters": as_plain(self.parameters),
            "open": [as_plain(each.incident) for each in held],
            "slots": list(self.open),
            "quiet": [each.quiet for each in held],
            "anomalies": [each.anomalies for each in held],
        }
        arrays = self._evidence.state(slots)
        if self.open:
            arrays["incident_means"] = np.stack([each.blame.means for each in held])
            arrays["incident_seen"] = np.stack([each.blame.seen for each in held])
        return values, arrays

    @classmethod
    def restored(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]], d: int) -> Self:
        """Return the incidents of a state of ``d`` fields; StateError if it cannot be one."""
        incidents = cls(IncidentParameters(**values["parameters"]))
        incidents._evidence.restore(arrays)
        names = ("slots", "quiet", "anomalies")
        counts = [[record_count(number) for number in values[name]] for name in names]
        if not values["open"] and not any(counts):
            return incidents
        blame = arrays["incident_means"], arrays["incident_seen"]
        for plain, means, seen, slot, *numbers in zip(values["open"], *blame, *counts, strict=True):
            held = Open(incident_of(plain), MergedBlame(), *numbers)
            held.blame.restore(means, seen, d)
            is_free = slot not in incidents.open and slot < incidents._evidence.n_slots
            expect(is_free, "an open incident for a slot")
            incidents.open[slot] = held
        return incidents
