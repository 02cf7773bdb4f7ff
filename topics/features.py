"""Decodes feature records to a matrix of numbers, and rejects invalid ones."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .categories import CategoryCodes, code_of, coded
from .columns import NUMERIC, Kind
from .documents import SHALLOW_BYTES, is_too_deep, parsed
from .fields import (
    find,
    is_beyond,
    is_number,
    number_of,
    parent_of,
)
from .readers import record_reader
from .rejections import (
    Reason,
    Rejection,
    reject_beyond,
    reject_category,
    reject_field,
    reject_range,
    reject_value,
)

_NAN = float("nan")
# What a fast reader raises for a record that it cannot read.
_UNREADABLE = (ValueError, KeyError, TypeError, RecursionError)


@dataclass(frozen=True, slots=True)
class DecodedBlock:
    """The rows of the valid records and the rejections of the others.

    `rows` is (m, d) float64, C-contiguous, NaN = missing; `positions` (m,) are the
    inputs of the rows; `rejected` pairs the remaining positions with their rejection.
    `wrong_types` counts the contents that were taken as missing, by field.
    """

    rows: NDArray[np.float64]
    positions: list[int]
    rejected: list[tuple[int, Rejection]]
    wrong_types: Counter[str]

    def after(self, first: Sequence[Rejection | None]) -> DecodedBlock:
        """Return the block after records whose values are missing, some of which are invalid."""
        n, d = first.count(None), self.rows.shape[1]
        valid = [i for i, rejection in enumerate(first) if rejection is None]
        rejected = [(i, rejection) for i, rejection in enumerate(first) if rejection is not None]
        return DecodedBlock(
            np.concatenate([np.full((n, d), _NAN), self.rows]),
            valid + [len(first) + i for i in self.positions],
            rejected + [(len(first) + i, rejection) for i, rejection in self.rejected],
            self.wrong_types,
        )

    def refusing(self, refused: Mapping[int, Rejection]) -> DecodedBlock:
        """Return the block with other reasons why some records are invalid, by their position."""
        rejected = [(i, refused.get(i, rejection)) for i, rejection in self.rejected]
        return replace(self, rejected=rejected)


NOTHING_DECODED = DecodedBlock(np.empty((0, 0)), [], [], Counter())


class FeatureDecoder:
    """Decodes the values of one partition's records.

    A record is valid if it is a JSON object of at most `max_bytes` bytes and `MAX_DEPTH` levels,
    every field is a number within the range of a double, a boolean (0 or 1), null or absent, and at
    least one is a number. Numbers of a field in ``bounds`` have to be greater than its bound; in
    ``lenient`` fields others count as missing, or as 0 in a record without another number, and as
    wrong types. Other fields are ignored. What is no number in the fields ``without_type``
    counts as missing, and as a wrong type.

    Fields whose kind in ``kinds`` is a category may hold a string, a number or a boolean; they are
    the last columns, and their values are the codes of `codes`. Fields whose kind is a number or a
    count may hold it as text.

    Attributes
    ----------
    fields
        The names of the columns.
    n_categories
        How many of them, the last ones, are categories.
    counts
        The fields that are counts.
    lenient
        The fields whose numbers outside their bounds count as missing.
    codes
        The texts of categories and their codes.
    """

    def __init__(
        self,
        fields: Sequence[str],
        max_bytes: int,
        bounds: Mapping[str, float] | None = None,
        kinds: Mapping[str, str] | None = None,
        texts: Iterable[str] = (),
        *,
        without_type: Collection[str] = (),
        lenient: Collection[str] = (),
    ) -> None:
        self._max_bytes = max_bytes
        self._bounds = dict(bounds or {})
        self.lenient = frozenset(lenient)
        self.codes = CategoryCodes(texts)
        self._kinds = dict(kinds or {})
        self._without_type = frozenset(without_type)
        self._wrong_types: Counter[str] = Counter()
        categories = [f for f in fields if self._kinds.get(f) == Kind.CATEGORY]
        numbers = [f for f in fields if f not in categories]
        self.fields, self.n_categories = tuple(numbers + categories), len(categories)
        self.counts = tuple(f for f in numbers if self._kinds.get(f) == Kind.COUNT)
        # Packed in groups with the same parent object; `_order` restores the order of the columns.
        self._packed = tuple(sorted(self.fields, key=parent_of))
        self._order = np.array([self._packed.index(field) for field in self.fields])
        read, get = record_reader(self._packed, frozenset(categories))
        self._in_texts = [i for i, f in enumerate(self._packed) if self._kinds.get(f) in NUMERIC]
        self._coded = [i for i, field in enumerate(self._packed) if field in categories]
        self._reader = read, coded(get, self._coded, self.codes) if categories else get
        self._pack = struct.Struct(f"={len(self.fields)}d").pack

    def decode(self, values: Sequence[bytes | None]) -> DecodedBlock:
        """Return one row or one rejection for each value."""
        self._wrong_types = Counter()
        packed: list[bytes] = []
        rejected: list[tuple[int, Rejection]] = []
        # Most records need nothing but this loop, which calls no function of this package.
        (read, get), pack, limit = self._reader, self._pack, self._max_bytes
        short = min(limit, SHALLOW_BYTES)
        for value in values:
            row: bytes | Rejection
            try:
                if value is None:
                    raise ValueError
                if len(value) > short and (len(value) > limit or is_too_deep(value)):
                    raise ValueError
                if not value.isascii():
                    value.decode()  # msgspec does not check the UTF-8 of fields that it skips
                contents = get(read(value))
                packed.append(pack(*contents))
                continue
            except struct.error:
                row = self._row(contents)
            except _UNREADABLE:
                row = self._odd_row(value)
            if isinstance(row, Rejection):
                rejected.append((len(packed) + len(rejected), row))
            else:
                packed.append(row)
        positions = list(range(len(values)))
        if rejected:
            bad = {position for position, _ in rejected}
            positions = [position for position in positions if position not in bad]
        block = DecodedBlock(self._matrix(packed), positions, rejected, self._wrong_types)
        return self._within_bounds(block) if self._bounds else block

    def _within_bounds(self, block: DecodedBlock) -> DecodedBlock:
        """Reject the rows with a number that is not above its field's bound, or take it out."""
        fields, rows = self.fields, block.rows
        bounds = [(column, self._bounds[f]) for column, f in enumerate(fields) if f in self._bounds]
        for column, bound in bounds:
            if fields[column] in self.lenient and (low := rows[:, column] <= bound).any():
                rows[low, column] = _NAN
                # No learner is given an empty row.
                rows[low & np.isnan(rows).all(axis=1), column] = 0.0
                self._wrong_types[fields[column]] += int(low.sum())
        bad = {
            row: reject_range(fields[column], rows[row, column], bound)
            for column, bound in reversed(bounds)
            for row in np.flatnonzero(rows[:, column] <= bound).tolist()
        }
        if not bad:
            return block
        rejected = block.rejected + [(block.positions[row], bad[row]) for row in bad]
        valid = [row for row in range(len(rows)) if row not in bad]
        positions = [block.positions[row] for row in valid]
        rejected = sorted(rejected, key=itemgetter(0))
        return replace(block, rows=rows[valid], positions=positions, rejected=rejected)

    def _document(self, value: bytes | None) -> Any:
        """Return the parsed value; None if it is too large, too deep or not JSON."""
        return None if value is None or len(value) > self._max_bytes else parsed(value)

    def _odd_row(self, value: bytes | None) -> bytes | Rejection:
        document = self._document(value)
        if not isinstance(document, dict):
            return reject_value(value, self._max_bytes)
        # Most of these records lack a top-level field: then this is twice as fast as `find` alone.
        contents = [document[f] if f in document else find(document, f) for f in self._packed]
        for i in self._coded:
            contents[i] = code_of(contents[i], self.codes)
        return self._row(contents)

    def _row(self, contents: Sequence[Any]) -> bytes | Rejection:
        """Return the row of contents that are not all numbers; None is an absent field."""
        if self._in_texts:
            contents = self._with_numbers_of_texts(contents)
        if self._without_type:
            contents = self._without_wrong_types(contents)
        try:
            row = self._pack(*[_NAN if content is None else content for content in contents])
        except (struct.error, OverflowError):
            return self._reject_contents(contents)
        if contents.count(None) == len(contents):
            return Rejection(Reason.NO_FEATURES, "expected a chosen field, all are missing")
        return row

    def _with_numbers_of_texts(self, contents: Sequence[Any]) -> list[Any]:
        found = list(contents)
        for i in self._in_texts:
            number = number_of(found[i])
            found[i] = found[i] if number is None else number
        return found

    def _without_wrong_types(self, contents: Sequence[Any]) -> list[Any]:
        is_wrong = [
            field in self._without_type and content is not None and not is_number(content)
            for field, content in zip(self._packed, contents, strict=True)
        ]
        self._wrong_types.update(compress(self._packed, is_wrong))
        return [None if wrong else c for c, wrong in zip(contents, is_wrong, strict=True)]

    def _reject_contents(self, contents: Sequence[Any]) -> Rejection:
        for i, (field, content) in enumerate(zip(self._packed, contents, strict=True)):
            if content is None or (is_number(content) and not is_beyond(content)):
                continue
            if i in self._coded:
                return reject_category(field, content)
            return reject_beyond(field) if is_number(content) else reject_field(field, content)
        raise ValueError("expected a content that is no number")

    def _matrix(self, packed: list[bytes]) -> NDArray[np.float64]:
        grouped = np.frombuffer(b"".join(packed)).reshape(-1, len(self._packed))
        return grouped.take(self._order, axis=1)
