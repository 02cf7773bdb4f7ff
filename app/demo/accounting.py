"""Accounts for every record: sent once, and scored or dead-lettered exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .faults import FAULTS
from .incidents import DemoIncident

_MAX_ANSWERS = 255  # of a record, which one byte can count


class Place(NamedTuple):
    """The partition and offset of a record in the source topic."""

    partition: int
    offset: int

    def __str__(self) -> str:
        """Return "partition/offset"."""
        return f"{self.partition}/{self.offset}"


class Blamed(NamedTuple):
    """A field to blame, its value, and what the other fields let expect."""

    field: str
    value: float
    expected: float | None


class Account:
    """The records sent and their answers (scores or dead letters), by partition and offset.

    An answer may be added before its record: acknowledgement and score race.

    Attributes
    ----------
    sent, scored, rejected
        The number of messages so far, including duplicates.
    reasons
        The number of dead letters by reason.
    first_rejection
        What the first dead letter says; None if there is none.
    labels
        The injected fault of each record that has one.
    machines
        The key of each record with an injected fault that has one.
    alarms
        The records with an anomalous score.
    explanations
        The field that is most to blame, of each anomalous record that has one.
    incidents
        The incidents after their latest events, by id, in the order in which they opened.
    """

    def __init__(self, partitions: int) -> None:
        self.sent = self.scored = self.rejected = 0
        self.reasons: Counter[str] = Counter()
        self.first_rejection: str | None = None
        self.labels: dict[Place, str] = {}
        self.machines: dict[Place, str] = {}
        self.alarms: set[Place] = set()
        self.explanations: dict[Place, Blamed] = {}
        self.incidents: dict[str, DemoIncident] = {}
        self._announced: Counter[Place] = Counter()
        self._logs = [_Log() for _ in range(partitions)]

    def add_sent(
        self,
        partition: int,
        offset: int,
        labels: Sequence[str | None],
        keys: Sequence[bytes | None] = (),
    ) -> None:
        """Add sent records, the first one at `offset`."""
        self._logs[partition].add_sent(offset, len(labels))
        self.sent += len(labels)
        for position, label in enumerate(labels):
            if label is not None:
                self.labels[Place(partition, offset + position)] = label
        for position, key in enumerate(keys):
            if key is not None and labels[position] is not None:
                self.machines[Place(partition, offset + position)] = key.decode()

    def add_score(self, place: Place, is_anomaly: bool) -> None:
        """Add a score message."""
        self._logs[place.partition].add_answer(place.offset)
        self.scored += 1
        if is_anomaly:
            self.alarms.add(place)

    def add_dead_letter(self, place: Place, reason: str, detail: str) -> None:
        """Add a dead letter."""
        self.first_rejection = self.first_rejection or f"{place}: {detail}"
        self._logs[place.partition].add_answer(place.offset)
        self.rejected += 1
        self.reasons[reason] += 1

    def add_anomaly(self, place: Place, blamed: Blamed | None = None) -> None:
        """Add an anomaly message, and the field that it blames most."""
        self._announced[place] += 1
        if blamed is not None:
            self.explanations[place] = blamed

    def add_incident(self, incident: DemoIncident) -> None:
        """Add what an event says of an incident."""
        self.incidents[incident.name] = incident

    def injected_in(self, incident: DemoIncident) -> set[str]:
        """Return the kinds of the injected anomalies among the records of an incident."""
        offsets = range(incident.first, incident.last + 1)
        places = (Place(incident.partition, offset) for offset in offsets)
        found = {self.labels.get(place) for place in places if self._concerns(incident, place)}
        return {label for label in found if label in FAULTS}

    def incident_of(self, place: Place) -> DemoIncident | None:
        """Return the first incident that has a record among its own."""
        incidents = self.incidents.values()
        of_partition = (each for each in incidents if each.partition == place.partition)
        around = (each for each in of_partition if each.first <= place.offset <= each.last)
        return next((each for each in around if self._concerns(each, place)), None)

    def _concerns(self, incident: DemoIncident, place: Place) -> bool:
        """Tell whether an incident of the record's partition may be of its machine."""
        machine = self.machines.get(place)
        return machine is None or incident.entity in (None, machine)

    @property
    def waiting(self) -> int:
        """The number of sent records without an answer."""
        return sum(log.waiting for log in self._logs)

    def waiting_in(self, partition: int) -> int:
        """Return the number of sent records of a partition without an answer."""
        return self._logs[partition].waiting

    def missing(self) -> list[Place]:
        """Return the sent records without an answer."""
        return [Place(p, o) for p, log in enumerate(self._logs) for o in log.missing()]

    def duplicates(self) -> list[Place]:
        """Return the records with more than one answer."""
        return [Place(p, o) for p, log in enumerate(self._logs) for o in log.duplicates()]

    def strangers(self) -> list[Place]:
        """Return the answers to records that were never sent."""
        return [Place(p, o) for p, log in enumerate(self._logs) for o in log.strangers()]

    def unmatched(self) -> list[Place]:
        """Return the records whose number of anomaly messages does not match their score."""
        expected = Counter(dict.fromkeys(self.alarms, 1))
        places = expected.keys() | self._announced.keys()
        return sorted(place for place in places if expected[place] != self._announced[place])


class _Log:
    """One partition: for each offset one byte tells whether it was sent, one counts its answers."""

    def __init__(self) -> None:
        self._sent = bytearray()
        self._answers = bytearray()
        self._n_sent = 0
        self._n_answered = 0

    @property
    def waiting(self) -> int:
        return max(0, self._n_sent - self._n_answered)

    def add_sent(self, offset: int, count: int) -> None:
        self._cover(offset + count)
        self._sent[offset : offset + count] = b"\1" * count
        self._n_sent += count

    def add_answer(self, offset: int) -> None:
        self._cover(offset + 1)
        self._n_answered += self._answers[offset] == 0
        self._answers[offset] = min(self._answers[offset] + 1, _MAX_ANSWERS)

    def missing(self) -> Iterator[int]:
        return (offset for offset, (sent, answers) in self._pairs() if sent and not answers)

    def duplicates(self) -> Iterator[int]:
        return (offset for offset, answers in enumerate(self._answers) if answers > 1)

    def strangers(self) -> Iterator[int]:
        return (offset for offset, (sent, answers) in self._pairs() if answers and not sent)

    def _pairs(self) -> Iterator[tuple[int, tuple[int, int]]]:
        return enumerate(zip(self._sent, self._answers, strict=True))

    def _cover(self, length: int) -> None:
        for column in (self._sent, self._answers):
            column.extend(bytes(max(0, length - len(column))))
