"""Reads when each record happened from one of its fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from .contents import content_reader
from .fields import is_beyond, is_number, number_of
from .records import KafkaRecord

LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999."""

# Numbers below each of these count seconds, milliseconds, microseconds; others nanoseconds. Each is
# a time of the year 1973 in the next unit and of the year 5138 in its own.
_UNITS = ((1e11, 1e3), (1e14, 1.0), (1e17, 1e-3))
_NANOSECONDS = 1e-6

EARLIEST = 978_307_200_000
"""2001 in milliseconds: numbers before it are hardly ever times."""

# A text of digits after 2100 is a date and time without separators, or no time.
_LATEST_DIGITS = 4_102_444_800_000
# As web servers and mails write them: 01/May/2026:10:00:00 +0000, Fri, 01 May 2026 10:00:00 GMT.
_DATE = re.compile(
    r"\[?(?:[A-Z][a-z]{2}, )?(\d{1,2})[/ ]([A-Z][a-z]{2})[/ ](\d{4})[: ]"
    r"(\d{2}:\d{2}:\d{2})(?: ([+-]\d{4}|GMT|UTC))?\]?"
)


class TimeReader:
    """Reads the times of valid records.

    Parameters
    ----------
    field
        The name of the field.
    """

    def __init__(self, field: str) -> None:
        self._content = content_reader(field)

    def read(self, records: Sequence[KafkaRecord]) -> list[int | None]:
        """Return milliseconds since 1970 (UTC) for each record; None where it names no time."""
        return [self.of(record.value or b"") for record in records]

    def of(self, value: bytes) -> int | None:
        """Return the time of a valid record's value."""
        return as_time(self._content(value))


def as_time(content: Any) -> int | None:
    """Return the milliseconds since 1970 (UTC) that the content of a field names, None if none.

    A text is a date and time of ISO 8601, of RFC 2822 as in mails, or as web servers write it, in
    UTC unless it names an offset; or a number between 2001 and 2100. A number counts seconds since
    1970, or the unit in which it is a time between 1973 and 5138. Earlier times than 1970 and later
    ones than 9999 are none.
    """
    if isinstance(content, str):
        number = number_of(content)
        if number is not None and (at := as_time(number)) and EARLIEST <= at < _LATEST_DIGITS:
            return at
        return _in_range(_milliseconds(content))
    if not is_number(content) or isinstance(content, bool) or is_beyond(content):
        return None
    factor = next((factor for limit, factor in _UNITS if content < limit), _NANOSECONDS)
    return _in_range(content * factor)


def _milliseconds(text: str) -> float:
    date = _DATE.fullmatch(text)
    try:
        if date is None:
            moment = datetime.fromisoformat(text)
        else:
            moment = parsedate_to_datetime("{} {} {} {} {}".format(*date.groups("GMT")))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000
    except (ValueError, OverflowError):
        return -1.0


def _in_range(milliseconds: float) -> int | None:
    return round(milliseconds) if 0 <= milliseconds <= LATEST else None
