"""How long a running mean remembers: in records, or in time."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from faust_oslrau.learner.errors import InvalidParameterError

MOST_SPANS = 4
"""Most spans: each adds a column for each field."""

_TEXT = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Span(NamedTuple):
    """After ``length`` records, or seconds if ``timed``, a value weighs 1/e in a mean."""

    length: float
    timed: bool


def read_spans(texts: Sequence[str]) -> tuple[Span, ...]:
    """Read spans: a number of records such as ``10``, or a time such as ``30s``, ``5m`` or ``1h``.

    Raises
    ------
    InvalidParameterError
        A text is no span, or there are none or more than ``MOST_SPANS``.
    """
    if not 0 < len(texts) <= MOST_SPANS:
        raise InvalidParameterError(
            f"history: expected 1 to {MOST_SPANS} different spans, got {len(texts)}"
        )
    spans = tuple(_read(text) for text in texts)
    if len(set(spans)) < len(spans):
        raise InvalidParameterError("history: expected different spans")
    return spans


def _read(text: str) -> Span:
    found = _TEXT.fullmatch(text)
    span = Span(0.0, timed=False)
    if found:
        unit = found[2]
        span = Span(float(found[1]) * _SECONDS.get(unit, 1.0), timed=bool(unit))
    least = 0.0 if span.timed else 1.0
    if not (least <= span.length < math.inf and span.length > 0.0):
        raise InvalidParameterError(
            f"history: expected at least 1 record, or a time such as 30s, 5m or 1h, got {text!r}"
        )
    return span
