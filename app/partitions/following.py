"""How other settings come to count for a partition that has a model already."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from faust.types import TP

from faust_oslrau.app.kafka.positions import RecordedSuccessor
from faust_oslrau.app.logs import at
from faust_oslrau.app.metrics import PartitionMetrics
from faust_oslrau.app.pipeline import BLOCK, Change, PartitionPipeline, ProcessedBlock, Successor
from faust_oslrau.topics import KafkaRecord, OutMessage

from .field_log import FieldLog

logger = logging.getLogger(__name__)


class Taken(NamedTuple):
    """What scores the next records, with the new settings.

    Attributes
    ----------
    pipeline
        The pipeline.
    start
        The offset at which it began to learn; None for the one that there was.
    fields
        Logs what records lack.
    told
        What is to be sent with the next records.
    """

    pipeline: PartitionPipeline
    start: int | None
    fields: FieldLog
    told: list[OutMessage]


class Following:
    """What follows a partition's pipeline: its own settings change, or a successor takes over.

    Attributes
    ----------
    successor
        The pipeline with changed settings that is to follow; None without one.
    change
        Settings with which the pipeline is to go on; None without any.
    """

    def __init__(self, tp: TP, follows: Successor | Change | None, metrics: PartitionMetrics):
        self._tp = tp
        self.successor = follows if isinstance(follows, Successor) else None
        self.change = follows if isinstance(follows, Change) else None
        self._metrics = metrics
        self._fields = FieldLog(tp, self.successor.pipeline) if self.successor else None
        self._learned: ProcessedBlock | None = None  # what came of the latest records
        self._told_awaited = False
        metrics.successor_records_left = self.successor.records_left if self.successor else 0

    @property
    def is_changing(self) -> bool:
        """Whether other settings are still to count, of which some may be fields."""
        return self.successor is not None or self.change is not None

    def recorded(self, pipeline: PartitionPipeline) -> RecordedSuccessor | None:
        """Return where the latest settings begin, which a snapshot may not have yet."""
        if self.successor is not None:
            return RecordedSuccessor(self.successor.start, self.successor.settings)
        if self.change is not None:
            return RecordedSuccessor(self.change.offset, self.change.digest)
        latest = pipeline.latest_change
        return None if latest is None else RecordedSuccessor(*latest)

    def cuts(self, records: Sequence[KafkaRecord]) -> set[int]:
        """Return the places of records between two of which other settings may begin to count."""
        if self.change is not None:
            return {bisect_left(records, self.change.offset, key=attrgetter("offset"))}
        if self.successor is None:
            return set()
        blocks = [record.offset // BLOCK for record in records]
        return {i for i in range(1, len(blocks)) if blocks[i] != blocks[i - 1]}

    def learn(self, records: Sequence[KafkaRecord], pipeline: PartitionPipeline) -> float:
        """Let a successor learn the records that the pipeline did; return the seconds it took."""
        if self.successor is None:
            return 0.0
        self._learned = self.successor.learn(records, pipeline.translator)
        return sum(self._learned.seconds.values()) if self._learned else 0.0

    def tell(self, pipeline: PartitionPipeline, next_offset: int) -> None:
        """Tell how far a successor is that has learned the latest records."""
        if self.successor is None or self._fields is None:
            return
        self._metrics.successor_records_left = self.successor.records_left
        if self._learned is not None:
            self._fields.add(self._learned)
        awaited = self.successor.awaits(pipeline)
        if self._told_awaited or not awaited or "records" in awaited:
            return
        self._told_awaited = True
        logger.info(
            "%s/%d: the model of the changed settings has learned enough records, and takes over "
            "once it knows as much as the model before it: still to come are %s",
            *(*self._tp, ", ".join(f"{n} {what}" for what, n in awaited.items())),
            extra=at(self._tp, next_offset),
        )

    def is_due(self, pipeline: PartitionPipeline, last: int, offset: int) -> bool:
        """Return whether the new settings count from an offset on, after that of the last one."""
        if self.change is not None:
            return offset >= self.change.offset
        return self.successor is not None and self.successor.takes_over(pipeline, last, offset)

    def take_over(self, pipeline: PartitionPipeline, record: KafkaRecord) -> Taken:
        """Let the new settings, which are due, count from a record on."""
        if self.successor is not None and self._fields is not None:
            successor, told = self.successor, self.successor.events(pipeline, record)
            self.successor = None
            self._log(
                "the model of the changed settings scores from offset %d on, as it would if a new "
                "deployment had begun at %d", record.offset, successor.start,
            )  # fmt: skip
            return Taken(successor.pipeline, successor.start, self._fields, told)
        if self.change is not None:
            pipeline.change(self.change.settings, self.change.offset)
            self.change = None
            self._log(
                "from offset %d on the model has the new settings, with all that it has learned",
                record.offset,
            )
        return Taken(pipeline, None, FieldLog(self._tp, pipeline), [])

    def _log(self, text: str, offset: int, *more: int) -> None:
        logger.info(f"%s/%d: {text}", *self._tp, offset, *more, extra=at(self._tp, offset))
