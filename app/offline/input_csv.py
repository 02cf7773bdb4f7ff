"""CSV files, whose cells are numbers, words and texts as people write them."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, BinaryIO

import orjson

from .input_lines import TextInput
from .input_messages import BLOCK, InputMessage, check_key, exact

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
# Numbers that JSON does not allow: +1, 007.5, .5, 1.
_OTHER_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# Words of pandas and NumPy, of spreadsheets and of JSON, in capitals or not.
_WORDS = {"": None, "nan": None, "true": True, "false": False}
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", "^": "carets"}
_WRONG_SEPARATOR = "expected commas between the columns, got {}"


class CsvInput(TextInput):
    """One object for each line after the header; an empty cell is null, as is NaN.

    A column of codes, such as 05, has texts.
    """

    def __iter__(self) -> Iterator[InputMessage]:
        """Read the file from its beginning."""
        self._position = 0
        with self._path.open("rb") as file:
            rows = self._rows(file)
            header, *_ = next(rows, ([], 0, 0))
            names = self._header([name.strip() for name in header])
            first = list(islice(rows, BLOCK))
            if len(names) == 1 and _has_blanks_between(names[0], [row for row, *_ in first if row]):
                raise self.wrong(1, _WRONG_SEPARATOR.format("blanks"))
            codes = {i for row, *_ in first for i, cell in enumerate(row) if _is_code(cell)}
            cells = [_text_cell if i in codes else _cell for i in range(len(names))]
            for row, self._line, self._position in chain(first, rows):
                if row:  # of a blank line, it is empty
                    yield self._message(names, cells, row)

    def _rows(self, file: BinaryIO) -> Iterator[tuple[list[str], int, int]]:
        """Yield the rows, each with the number of its last line and what is read up to there."""
        rows = csv.reader(self._text_lines(file), strict=True)
        last = 0
        try:
            for row in rows:
                last = rows.line_num
                yield row, last, self._position
        except csv.Error as error:
            raise self.wrong(last + 1, _csv_error(error, rows.line_num - last)) from None

    def _text_lines(self, file: BinaryIO) -> Iterator[str]:
        encoding = "utf-8-sig"  # spreadsheets write a byte order mark at the start of a file
        for number, line in enumerate(self.lines(file), start=1):
            try:
                yield line.decode(encoding)
            except UnicodeDecodeError:
                raise self.wrong(number, "expected UTF-8") from None
            encoding = "utf-8"

    def _header(self, names: list[str]) -> list[str]:
        wanted = "expected a header with the names of the columns"
        if not any(names):
            raise self.wrong(1, wanted)
        # Programs that write the numbers of rows, or a comma at the end, have no name for these.
        names = [name or f"column {number}" for number, name in enumerate(names, start=1)]
        for number, name in enumerate(names, start=1):
            if _OTHER_NUMBER.fullmatch(name):
                raise self.wrong(1, f"{wanted}, got {name!r} for column {number}")
        found = {word for separator, word in _SEPARATORS.items() if separator in names[0]}
        if len(names) == 1 and found:
            raise self.wrong(1, _WRONG_SEPARATOR.format(min(found)))
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise self.wrong(1, f"expected distinct names of columns, got {repeated[0]!r} again")
        check_key(self._path, self._key, names)
        return names

    def _message(
        self, names: list[str], cells: Sequence[Callable[[str], Any]], row: list[str]
    ) -> InputMessage:
        if len(row) != len(names):
            what = f"expected {len(names)} cells as in the header, got {len(row)}"
            raise self.wrong(self._line, what)
        found = (read(cell) for read, cell in zip(cells, row, strict=True))
        document = dict(zip(names, found, strict=True))
        key = row[names.index(self._key)].encode() if self._key is not None else None
        return InputMessage(key or None, orjson.dumps(document))


def _has_blanks_between(header: str, rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the rows of one cell have a word for each one of the header, some a number.

    Without a number they may be texts of as many words, such as a first and a last name.
    """
    size = len(header.split())
    words = [cell.split() for row in rows for cell in row]
    return (
        size > 1
        and bool(words)
        and all(len(each) == size and any(map(_OTHER_NUMBER.fullmatch, each)) for each in words)
    )


def _csv_error(error: csv.Error, lines: int) -> str:
    """Return what is wrong with a row that began so many lines before."""
    told = str(error)
    if "new-line" in told:
        return "expected lines that end with a line feed, got carriage returns alone"
    # A quote that nothing closes takes in what follows: the rest of the file, or up to a limit.
    if lines > 1 or "end of data" in told or "expected after" in told:
        return "expected a quote at the end of each cell that begins with one, two for one within"
    return told


def _cell(text: str) -> Any:
    bare = text.strip()
    if bare.lower() in _WORDS:
        return _WORDS[bare.lower()]
    if _JSON_NUMBER.fullmatch(bare):
        return orjson.Fragment(bare)  # unchanged, so that no digit is lost
    if _OTHER_NUMBER.fullmatch(bare):
        return exact(float(bare))
    return text


def _is_code(text: str) -> bool:
    """Tell whether a cell is a whole number with a zero before it, as codes have."""
    bare = text.strip()
    return len(bare) > 1 and bare[0] == "0" and bare.isdecimal()


def _text_cell(text: str) -> str | None:
    """Return the text of a cell of codes, which would be no longer themselves as numbers."""
    return None if text.strip().lower() in ("", "nan") else text.strip()
