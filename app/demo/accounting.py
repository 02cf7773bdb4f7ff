"""The account of every record: sent once, and scored or dead-lettered once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_MANY = 255  # answers of a record are counted up to here


class Place(NamedTuple):
    """Where a record lies in the source topic."""

    partition: int
    offset: int


class Account:
    """What was sent and what came back, by partition and offset.

    An answer may be noted before the record that it answers: acknowledgement and score race.

    Attributes
    ----------
    sent, scored, rejected
        Messages so far; a duplicate counts again.
    reasons
        Dead letters by reason.
    labels
        What is known to be wrong with a record; those without are not in it.
    alarms
        Records that are anomalous by their score.
    """

    def __init__(self, partitions: int) -> None:
        self.sent = self.scored = self.rejected = 0
        self.reasons: Counter[str] = Counter()
        self.labels: dict[Place, str] = {}
        self.alarms: set[Place] = set()
        self._announced: Counter[Place] = Counter()
        self._logs = [_Log() for _ in range(partitions)]

    def add_sent(self, partition: int, offset: int, labels: Sequence[str | None]) -> None:
        """Note that records lie at `offset` and after it."""
        self._logs[partition].add_sent(offset, len(labels))
        self.sent += len(labels)
        for position, label in enumerate(labels):
            if label is not None:
                self.labels[Place(partition, offset + position)] = label

    def add_score(self, place: Place, is_anomaly: bool) -> None:
        """Note a score message."""
        self._logs[place.partition].add_answer(place.offset)
        self.scored += 1
        if is_anomaly:
            self.alarms.add(place)

    def add_dead_letter(self, place: Place, reason: str) -> None:
        """Note a dead letter."""
        self._logs[place.partition].add_answer(place.offset)
        self.rejected += 1
        self.reasons[reason] += 1

    def add_anomaly(self, place: Place) -> None:
        """Note an anomaly message."""
        self._announced[place] += 1

    @property
    def waiting(self) -> int:
        """Records sent that have no answer yet."""
        return sum(log.waiting for log in self._logs)

    def waiting_in(self, partition: int) -> int:
        """Return how many records of one partition have no answer yet."""
        return self._logs[partition].waiting

    def missing(self) -> list[Place]:
        """Return the records that were neither scored nor dead-lettered."""
        return [Place(p, o) for p, log in enumerate(self._logs) for o in log.missing()]

    def duplicates(self) -> list[Place]:
        """Return the records that were answered more than once."""
        return [Place(p, o) for p, log in enumerate(self._logs) for o in log.duplicates()]

    def strangers(self) -> list[Place]:
        """Return the places that were answered though nothing was sent there."""
        return [Place(p, o) for p, log in enumerate(self._logs) for o in log.strangers()]

    def unmatched(self) -> list[Place]:
        """Return anomalous records without exactly one anomaly message, and the other way round."""
        expected = Counter(dict.fromkeys(self.alarms, 1))
        places = expected.keys() | self._announced.keys()
        return sorted(place for place in places if expected[place] != self._announced[place])


class _Log:
    """One partition: a byte for each offset sent, and one for the number of its answers."""

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
        self._answers[offset] = min(self._answers[offset] + 1, _MANY)

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
