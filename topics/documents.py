"""The rules for JSON that no parser decides: the depth of nesting, and numbers beyond a double.

orjson and msgspec differ in both, and the limit of msgspec depends on the depth of Python's stack.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec
import numpy as np
import orjson

MAX_DEPTH = 400
"""Levels of objects and lists that a record may have.

Far more than records have, and well below the limits of the parsers: orjson 1,024, msgspec and
Python's own 1,000 less the depth of the stack.
"""

BEYOND = 10**400
"""What `parse` returns for a number above the range of a double; below it, the negative of this."""

SHALLOW_BYTES = 2 * MAX_DEPTH
"""JSON of at most this many bytes is not too deep: each level takes two brackets."""

_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_QUOTE, _LIST, _OBJECT = b'"[{'
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1

# Checks JSON without converting its numbers.
_check = msgspec.json.Decoder(msgspec.Raw).decode


def is_too_deep(value: bytes) -> bool:
    """Tell whether JSON is nested deeper than `MAX_DEPTH`; fast for most records."""
    if len(value) <= SHALLOW_BYTES or (_LIST not in value and value.rfind(_OBJECT) == 0):
        return False
    # Twice as fast as counting.
    opened = len(value) - len(value.replace(b"[", b"").replace(b"{", b""))
    return opened > MAX_DEPTH and depth(value) > MAX_DEPTH


def depth(value: bytes) -> int:
    """Return the largest number of open brackets; those in strings do not count."""
    text = np.frombuffer(_ESCAPED.sub(b"", value), np.uint8)
    in_string = np.bitwise_xor.accumulate(text == _QUOTE)
    steps = np.where(in_string, 0, _STEPS[text])
    return int(np.cumsum(steps, dtype=np.int64).max(initial=0))


def parse(value: bytes) -> Any:
    """Parse JSON that is not too deep, with `BEYOND` for numbers beyond a double.

    Raises
    ------
    ValueError
        The value is not JSON.
    """
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        # orjson has one error class; only this message means a number beyond a double.
        if "infinity" not in error.msg:
            raise
    _check(value)
    return json.loads(value, parse_float=_number, parse_int=_number)


def parsed(value: bytes | None) -> Any:
    """Return parsed JSON; None if it is too deep or not JSON."""
    if value is None or is_too_deep(value):
        return None
    try:
        return parse(value)
    except ValueError:
        return None


def _number(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else BEYOND if number > 0 else -BEYOND
