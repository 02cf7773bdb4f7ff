"""Finds partitions of a topic whose first records have chosen different fields."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import pairwise

from faust.types import TP

from faust_oslrau.app.logs import at
from faust_oslrau.app.pipeline import PartitionPipeline, listed

from .held_partition import HeldPartition

logger = logging.getLogger(__name__)


class DifferingFields:
    """Warns once of each topic whose partitions score different fields, as far as a worker sees."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def look(self, held: Mapping[TP, HeldPartition]) -> None:
        """Compare the fields of each partition with those of the topic's next one."""
        for first, second in pairwise(sorted(held)):
            if first.topic != second.topic or first.topic in self._warned:
                continue
            if held[first].successor or held[second].successor:  # those of one are to change
                continue
            ours, theirs = (_fields(held[tp].pipeline) for tp in (first, second))
            if ours and theirs and ours != theirs:
                self._warned.add(first.topic)
                logger.warning(
                    "%s: partitions %d and %d have chosen different fields: %s only in %d, %s only "
                    "in %d; choose them by the settings features and kinds",
                    *(first.topic, first.partition, second.partition),
                    *(listed(sorted(ours - theirs)) or "none", first.partition),
                    *(listed(sorted(theirs - ours)) or "none", second.partition),
                    extra=at(first),
                )


def _fields(pipeline: PartitionPipeline) -> set[str]:
    """Return the names of the fields, those of categories marked; none before they are chosen."""
    numbers, fields = pipeline.numbers, pipeline.fields or ()
    return {*numbers, *(f"{field} (category)" for field in fields[len(numbers) :])}
