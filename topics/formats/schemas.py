"""Schemas, and what was accepted of a registry's answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple


class Schema(NamedTuple):
    """A schema as its registry stores it.

    Attributes
    ----------
    kind
        What the registry calls its language: AVRO, PROTOBUF or JSON.
    text
        The schema.
    references
        Names and texts of the schemas that it refers to, each after those that it refers to itself.
    """

    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


class Acceptance(NamedTuple):
    """A registry's answer, and the records of a partition that it holds for.

    Attributes
    ----------
    schema_id
        The id that the registry was asked for.
    schema
        The schema; None if the registry has none of this id.
    start
        The first offset that it holds for.
    end
        The offset that it no longer holds for: the registry is asked again. None of a schema.
    """

    schema_id: int
    schema: Schema | None
    start: int
    end: int | None


class Acceptances:
    """The accepted answers of one partition."""

    def __init__(self) -> None:
        self._of: defaultdict[int, list[Acceptance]] = defaultdict(list)

    def add(self, accepted: Iterable[Acceptance]) -> None:
        """Add answers; of several for the same offsets, that with the highest start holds."""
        for acceptance in accepted:
            of_id = self._of[acceptance.schema_id]
            of_id.append(acceptance)
            of_id.sort(key=attrgetter("start"))

    def first(self, schema_id: int) -> Acceptance | None:
        """Return the answer with the lowest start; None if there is none."""
        return next(iter(self._of.get(schema_id, ())), None)

    def at(self, schema_id: int, offset: int) -> Acceptance | None:
        """Return the answer that holds for a record; None if the registry is to be asked."""
        earlier = (each for each in reversed(self._of.get(schema_id, ())) if each.start <= offset)
        found = next(earlier, None)
        return None if found is None or offset >= (found.end or offset + 1) else found
