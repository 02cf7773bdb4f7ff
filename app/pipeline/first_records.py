"""The first records of a partition, which choose its fields."""

from __future__ import annotations

from collections.abc import Sequence

from faust_oslrau.learner.stream import WARM_UP
from faust_oslrau.topics import FieldChoice, KafkaRecord, Rejection
from faust_oslrau.topics.field_choice import ChosenFields

MOST_BYTES = 16 * 2**20
"""Bytes of values that are kept: of very large records fewer choose."""


class FirstRecords:
    """Keeps a partition's first valid records until its fields are chosen.

    Attributes
    ----------
    records
        The valid records so far, in log order.
    """

    def __init__(self, choice: FieldChoice) -> None:
        self.records: list[KafkaRecord] = []
        self._choice = choice
        self._bytes = 0

    @property
    def are_enough(self) -> bool:
        """Whether the fields are chosen now."""
        return len(self.records) >= WARM_UP or self._bytes > MOST_BYTES

    def take(self, records: Sequence[KafkaRecord]) -> list[Rejection | None]:
        """Look at the next records until there are enough; return why each is invalid, if it is."""
        found: list[Rejection | None] = []
        for record in records:
            if self.are_enough:
                break
            found.append(self._choice.rejection(record.value))
            if found[-1] is None:
                self.records.append(record)
                self._bytes += len(record.value or b"")
        return found

    def chosen(self) -> ChosenFields:
        """Return the fields that the records so far choose."""
        of = self.records
        return self._choice.choose(
            [record.value for record in of],
            [record.timestamp for record in of],
            [record.key for record in of],
        )
