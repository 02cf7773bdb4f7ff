"""Logs the fields of a partition: those it has chosen, and those that its records lack."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from faust_oslrau.app.logs import at
from faust_oslrau.app.pipeline import PartitionPipeline, ProcessedBlock, SeenFields

logger = logging.getLogger(__name__)

FIRST_RECORDS = 1000
"""Scored records after which a field without any value counts as missing."""

_MOST_NAMES = 20


class FieldLog:
    """Tells of a partition's fields once each, as records come.

    Attributes
    ----------
    empty
        The fields that none of the first records has; empty until these have come.
    ignored
        The fields that are left out since some records.
    """

    def __init__(self, tp: tuple[str, int], pipeline: PartitionPipeline) -> None:
        self.empty: list[str] = []
        self.ignored: list[str] = pipeline.ignored
        self._tp = tp
        self._pipeline = pipeline
        self._told = pipeline.fields is not None  # by the settings, or by a snapshot
        self._seen = SeenFields()
        self._wrong: set[str] = set()

    def add(self, block: ProcessedBlock) -> None:
        """Look at the next records."""
        fields = self._pipeline.fields
        self._tell_of_ignored()
        self._tell_of_wrong_types(block)
        if fields is None or self._seen.records >= FIRST_RECORDS:
            return
        if not self._told:
            self._told = True
            self._tell_of_choice(fields)
        self._seen.add(fields, block)
        if self._seen.records >= FIRST_RECORDS:
            self.empty = self._seen.empty
            self._tell_of_empty()

    def _tell_of_choice(self, fields: Sequence[str]) -> None:
        left_out = self._pipeline.left_out
        logger.info(
            "%s/%d: the first valid record chooses %d fields: %s; it leaves out %s",
            *(*self._tp, len(fields), _listed(fields), _listed(left_out) or "none"),
            extra=at(self._tp),
        )

    def _tell_of_ignored(self) -> None:
        found = self._pipeline.ignored
        new = [field for field in found if field not in self.ignored]
        self.ignored = found
        if new:
            logger.info(
                "%s/%d: left out from now on, as their values only grow or hardly ever come again: "
                "%s",
                *(*self._tp, _listed(new)),
                extra=at(self._tp),
            )

    def _tell_of_wrong_types(self, block: ProcessedBlock) -> None:
        new = sorted(block.wrong_types.keys() - self._wrong)
        self._wrong.update(new)
        if new:
            logger.warning(
                "%s/%d: no number in %s: its contents of other types count as missing",
                *(*self._tp, _listed(new)),
                extra=at(self._tp),
            )

    def _tell_of_empty(self) -> None:
        if self.empty:
            logger.warning(
                "%s/%d: none of the first %d records has a value of %s: are the names right?",
                *(*self._tp, self._seen.records, _listed(self.empty)),
                extra=at(self._tp, records=self._seen.records),
            )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
