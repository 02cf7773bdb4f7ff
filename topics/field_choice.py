"""Chooses the fields of a partition by its first records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .columns import MOST_CONTENTS, NUMERIC, Column, Kind, columns_of
from .documents import parsed
from .fields import JsonObject, fields_with, find, is_beyond, is_number, is_text, number_of
from .rejections import Reason, Rejection, reject_beyond, reject_value

# The learner's cost grows with the square of the fields.
MAX_NUMBERS = 1024
# What is known of pairs of categories grows with the square of the fields.
MAX_CATEGORIES = 16
_NOTHING = "expected a field with a number or a text, got none"


class ChosenFields(NamedTuple):
    """The names of the fields that are scored, and those that are not, each with a reason.

    The ``counts`` are among the ``numbers``, as are the ``mixed`` ones, which nobody named, and of
    which some records hold something else. Hardly any record has a value of the ``sparse`` ones,
    which may come later.
    """

    numbers: tuple[str, ...]
    counts: tuple[str, ...]
    mixed: tuple[str, ...]
    categories: tuple[str, ...]
    left_out: tuple[str, ...]
    sparse: tuple[str, ...]


class FieldChoice:
    """Chooses fields by records, JSON objects of at most ``max_bytes`` with a number or a text.

    Fields in ``kinds`` are what that says. Those ``never_chosen`` are no features, each for the
    reason given: it names the entity, or the time.
    """

    def __init__(
        self, max_bytes: int, kinds: Mapping[str, str], never_chosen: Mapping[str, str]
    ) -> None:
        self._max_bytes = max_bytes
        self._kinds = dict(kinds)
        self._never_chosen = dict(never_chosen)

    def rejection(self, value: bytes | None) -> Rejection | None:
        """Return why a value cannot choose; None if it can."""
        document = self._document(value)
        if not isinstance(document, dict):
            return reject_value(value, self._max_bytes)
        names: tuple[str, ...] = ()
        for what, wanted in (("numeric fields", is_number), ("texts", is_text)):
            found = fields_with(document, wanted, MOST_CONTENTS)
            if found is None:
                told = f"expected at most {MOST_CONTENTS} {what}, got more: choose some by name"
                return Rejection(Reason.NO_FEATURES, told)
            names = tuple(name for name in found if self._may_choose(name, document))
            if names:
                break
        else:
            return Rejection(Reason.NO_FEATURES, _NOTHING)
        beyond = (n for n in names if is_number(x := find(document, n)) and is_beyond(x))
        return next(map(reject_beyond, beyond), None)

    def choose(
        self,
        values: Iterable[bytes | None],
        times: Sequence[int | None] | None = None,
        keys: Sequence[bytes | None] | None = None,
    ) -> ChosenFields:
        """Return what values choose, none of which is rejected, in log order.

        ``times`` are those of their records, in milliseconds, and ``keys`` their keys.
        """
        documents = [self._document(value) for value in values]
        columns = columns_of(documents, times, keys)
        kinds = {column.name: self._kind(column) for column in columns}
        named = self._named(documents)
        kinds |= {name: Kind(self._kinds[name]) for name in named}
        if {*kinds.values()} <= {Kind.IGNORED}:  # better than nothing
            kinds |= self._any(documents)
        names = _by_weight(kinds, {column.name: column for column in columns}, named)
        numbers, too_many = _first(names, kinds, NUMERIC, MAX_NUMBERS, named)
        categories, others = _first(names, kinds, (Kind.CATEGORY,), MAX_CATEGORIES, named)
        counts = tuple(name for name in numbers if kinds[name] == Kind.COUNT)
        unsure = {column.name for column in columns if column.is_mixed} - self._kinds.keys()
        reasons = {column.name: column.why for column in columns}
        reasons |= {name: "ignored" for name, kind in self._kinds.items() if kind == Kind.IGNORED}
        reasons |= dict.fromkeys([*too_many, *others], "too many") | self._never_chosen
        left_out = [name for name in kinds if name not in {*numbers, *categories}]
        return ChosenFields(
            numbers,
            counts,
            tuple(name for name in numbers if name in unsure),
            categories,
            tuple(f"{name} ({reasons[name]})" for name in left_out),
            tuple(sorted(_names(documents) - kinds.keys())),
        )

    def _document(self, value: bytes | None) -> Any:
        return None if value is None or len(value) > self._max_bytes else parsed(value)

    def _may_choose(self, name: str, document: JsonObject) -> bool:
        """Tell whether a field, which holds a number or a text, may be a feature."""
        if name in self._never_chosen or self._kinds.get(name) == Kind.IGNORED:
            return False
        content = find(document, name)
        wants_number = self._kinds.get(name) in NUMERIC
        return not (wants_number and is_text(content)) or number_of(content) is not None

    def _any(self, documents: Sequence[JsonObject]) -> dict[str, Kind]:
        """Return all numbers of the documents, else all texts."""
        for kind, wanted in ((Kind.NUMBER, is_number), (Kind.CATEGORY, is_text)):
            found = {
                name for each in documents
                for name in fields_with(each, wanted, MOST_CONTENTS) or ()
                if self._may_choose(name, each)
            }  # fmt: skip
            if found:
                return dict.fromkeys(sorted(found), kind)
        return {}

    def _named(self, documents: Iterable[JsonObject]) -> set[str]:
        """Return the fields that settings name as features, if any of the documents has them."""
        chosen = {name for name, kind in self._kinds.items() if kind != Kind.IGNORED}
        chosen.difference_update(self._never_chosen)
        return chosen & _names(documents) if chosen else chosen

    def _kind(self, column: Column) -> Kind:
        if column.name in self._never_chosen:
            return Kind.IGNORED
        if column.name in self._kinds:
            return Kind(self._kinds[column.name])
        # Texts are read as numbers where the settings say so.
        return Kind.IGNORED if column.kind == Kind.NUMBER and not column.is_plain else column.kind


def _names(documents: Iterable[JsonObject]) -> set[str]:
    return {name for each in documents for name in fields_with(each, _is_any, MOST_CONTENTS) or ()}


def _is_any(content: object) -> bool:
    return True


def _by_weight(
    names: Iterable[str], columns: Mapping[str, Column], named: Collection[str]
) -> list[str]:
    """Return the names: first those that are ``named``, last those of fields with a single value.

    Of others, those come first that most records have, and of these the first names.
    """

    def weight(name: str) -> tuple[bool, bool, int, str]:
        column = columns.get(name)  # None for rare ones
        return (
            name not in named,
            column is not None and column.is_constant,
            0 if column is None else -column.n,
            name,
        )

    return sorted(names, key=weight)


def _first(
    names: Iterable[str],
    kinds: Mapping[str, Kind],
    wanted: Collection[Kind],
    most: int,
    named: Collection[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sorted names of some kinds, the ``most`` first and all named ones; the others."""
    found = [name for name in names if kinds[name] in wanted]
    most = max(most, sum(name in named for name in found))
    return tuple(sorted(found[:most])), tuple(sorted(found[most:]))
