"""Logs the fields of a partition: those it has chosen, and those that its records lack."""

from __future__ import annotations

import logging

from faust_oslrau.app.logs import at
from faust_oslrau.app.pipeline import (
    PartitionPipeline,
    ProcessedBlock,
    SeenFields,
    chosen_told,
)
from faust_oslrau.topics.fields import listed

logger = logging.getLogger(__name__)

FIRST_RECORDS = 1000
"""Scored records after which a field without any value counts as missing."""


class FieldLog:
    """Tells of a partition's fields once each, as records come.

    Attributes
    ----------
    empty
        The fields that none of the first records has; empty until these have come.
    """

    def __init__(self, tp: tuple[str, int], pipeline: PartitionPipeline) -> None:
        self.empty: list[str] = []
        self._tp = tp
        self._pipeline = pipeline
        self._said = not pipeline.is_choosing  # the settings choose, or a snapshot has chosen
        self._seen = SeenFields()
        self._wrong: set[str] = set()

    def add(self, block: ProcessedBlock) -> None:
        """Look at the next records."""
        fields = self._pipeline.fields
        if fields is not None and not self._said:
            self._said = True
            told = chosen_told(self._pipeline)
            logger.info("%s/%d: %s", *self._tp, told, extra=at(self._tp))
        self._tell_of_wrong_types(block)
        if fields is None or self._seen.records >= FIRST_RECORDS:
            return
        self._seen.add(fields, block)
        if self._seen.records >= FIRST_RECORDS:
            self.empty = self._seen.empty
            self._tell_of_empty()

    def _tell_of_wrong_types(self, block: ProcessedBlock) -> None:
        new = block.wrong_types.keys() - self._wrong
        if not new:
            return
        self._wrong.update(new)
        counts = new & self._pipeline.chosen_counts.difference(self._pipeline.mixed)
        if others := listed(sorted(new - counts)):
            self._warn(f"no number in {others}: its contents of other types count as missing")
        if counts:
            self._warn(
                f"the first records of {listed(sorted(counts))} look like counts, and what is none "
                "counts as missing: if they are numbers, say so in kinds"
            )

    def _warn(self, what: str) -> None:
        logger.warning("%s/%d: %s", *self._tp, what, extra=at(self._tp))

    def _tell_of_empty(self) -> None:
        if self.empty:
            logger.warning(
                "%s/%d: none of the first %d records has a value of %s: are the names right?",
                *(*self._tp, self._seen.records, listed(self.empty)),
                extra=at(self._tp, records=self._seen.records),
            )
