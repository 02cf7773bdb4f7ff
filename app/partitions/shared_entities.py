"""Finds entities with records in several partitions of a topic: each is learned several times."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import pairwise

from faust.types import TP

from faust_oslrau.app.logs import at

from .held_partition import HeldPartition

logger = logging.getLogger(__name__)


class SharedEntities:
    """Warns once of each topic whose partitions share an entity, as far as the worker sees it."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    async def look(self, held: Mapping[TP, HeldPartition]) -> None:
        """Compare some entities of each partition with those of the topic's next one."""
        for first, second in pairwise(sorted(held)):
            if first.topic != second.topic or first.topic in self._warned:
                continue
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


def _text(entity: bytes) -> str:
    """Return the name; that of a long one, of which a digest is known, as hexadecimal digits."""
    try:
        return repr(entity.decode())
    except UnicodeDecodeError:
        return entity.hex()
