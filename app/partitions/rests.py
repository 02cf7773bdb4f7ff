"""Lets records come in while the visits of partitions are short."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from faust_oslrau.app.kafka.batches import RecordBatch

SHORT_RECORDS = 16
"""Records of a partition at a time up to which most of what they cost is the visit itself."""

LONGEST_SECONDS = 0.25
"""The longest rest, which a score may come later."""


class Rests:
    """Says how long to wait before the next poll: as long as short visits have taken.

    So a worker with many slow partitions visits them half as often, with twice the records, in what
    is half of its time at the most; one with little to do hardly waits, and one with a backlog,
    whose visits are long, not at all.
    """

    def __init__(self) -> None:
        self._began = 0.0
        self._is_due = False

    def begin(self, batches: Sequence[RecordBatch]) -> None:
        """Begin the visits of partitions that a poll has fetched batches of."""
        self._began = monotonic()
        records = sum(len(batch.records) for batch in batches)
        self._is_due = records <= SHORT_RECORDS * len(batches)

    def take(self) -> float:
        """Return the seconds to wait after these visits, once."""
        is_due, self._is_due = self._is_due, False
        return min(monotonic() - self._began, LONGEST_SECONDS) if is_due else 0.0
