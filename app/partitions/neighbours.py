"""Warns of partitions of a topic that choose different fields, or have records of one entity."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

from faust.types import TP

from faust_oslrau.app.logs import at
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.topics.fields import listed

from .held_partition import HeldPartition

logger = logging.getLogger(__name__)

Held = Mapping[TP, HeldPartition]


class DifferingFields:
    """Warns once of each topic whose partitions score different fields, as far as a worker sees."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def look(self, held: Held) -> None:
        """Compare the fields of each partition with those of the topic's next one."""
        for first, second in _neighbours(held, self._warned):
            if any(held[tp].following.is_changing for tp in (first, second)):
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


class SharedEntities:
    """Warns once of each topic whose partitions share an entity: each learns it for itself."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    async def look(self, held: Held) -> None:
        """Compare some entities of each partition with those of the topic's next one."""
        for first, second in _neighbours(held, self._warned):
            entity = await held[first].common_entity(held[second])
            if entity is not None:
                self._warned.add(first.topic)
                logger.warning(
                    "%s: entity %s has records in the partitions %d and %d, and a level of its own "
                    "in each; send all records of an entity to one partition, as Kafka's default "
                    "partitioner does with those of a key",
                    *(first.topic, _text(entity), first.partition, second.partition),
                    extra=at(first),
                )


def _neighbours(held: Held, warned: Collection[str]) -> Iterator[tuple[TP, TP]]:
    """Yield each partition with the next one of its topic, as long as the topic is not `warned`."""
    for first, second in pairwise(sorted(held)):
        if first.topic == second.topic and first.topic not in warned:
            yield first, second


def _fields(pipeline: PartitionPipeline) -> set[str]:
    """Return the names of the fields, what is no plain number marked; none before the choice."""
    numbers, fields, counts = pipeline.numbers, pipeline.fields or (), pipeline.chosen_counts
    named = {f"{field} (count)" if field in counts else field for field in numbers}
    return named | {f"{field} (category)" for field in fields[len(numbers) :]}


def _text(entity: bytes) -> str:
    """Return the name; that of a long one, of which a digest is known, as hexadecimal digits."""
    try:
        return repr(entity.decode())
    except UnicodeDecodeError:
        return entity.hex()
