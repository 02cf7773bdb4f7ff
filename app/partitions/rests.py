"""Lets records come in while the visits of partitions are short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from faust_oslrau.app.kafka.batches import RecordBatch

from .assignment import BATCHES_IN_WORK

SHORT_RECORDS = 16
"""Mean records of visits up to which most of what they cost is the visit itself."""

LONG_RECORDS = 256
"""Records of a visit from which on its partition has a backlog, which does not wait."""

LONGEST_SECONDS = 0.25
"""The longest rest, which a score may come later."""


class Rests:
    """Says how long to wait before the next poll: as long as it took to put short visits in work.

    Only where these are more than are in work at once, so that it is about how long they took. So a
    worker with many slow partitions visits them half as often, with twice the records; one with
    little to do hardly waits, and one with few partitions or a backlog not at all.
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    @contextmanager
    def measured(self, batches: Sequence[RecordBatch]) -> Iterator[None]:
        """Measure how long it takes to put batches that a poll has fetched in work."""
        began = monotonic()
        yield
        records = [len(batch.records) for batch in batches]
        are_short = sum(records) <= SHORT_RECORDS * len(records) and max(records) < LONG_RECORDS
        if are_short and len(records) > BATCHES_IN_WORK:
            self._seconds = min(monotonic() - began, LONGEST_SECONDS)

    def take(self) -> float:
        """Return the seconds to wait once these visits are in work; then 0."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds
