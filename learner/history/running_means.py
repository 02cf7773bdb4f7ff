"""Kernel of running means: of each field, in each slot, over each span.

A slot is an entity's, or the partition's. A mean weighs the values before a record by
exp(-age / span); age counts the slot's records, or the seconds between their time stamps. While
there are few values it is nearly their plain mean. A value far from the mean moves it no more than
one at ``FARTHEST`` spreads would: otherwise the records after an outlier would look unusual.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from faust_oslrau.learner.errors import InvalidParameterError
from faust_oslrau.learner.typical import FARTHEST
from faust_oslrau.learner.vector.compiler import Array, kernel

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


MEAN, WEIGHT = range(2)
"""Statistics of a field over a span: the mean, and the sum of the weights of its values."""

LARGEST = 1e300
"""Means stay within it, so that huge values do not make them infinite."""

SMALLEST_WEIGHT = 1e-300
"""Weight of values that were forgotten long ago, so that they do not count as never seen."""


@kernel
def take_means(
    X: Array,
    slots: Array,
    fresh: Array,
    times: Array,
    length: Array,
    timed: Array,
    spread: Array,
    centred: bool,
    means: Array,
    last: Array,
    result: Array,
) -> None:
    """Fill ``result`` (m, d + s d) with the means before each row of ``X`` (m, d), then add it.

    The first d columns are left as they are.

    ``slots`` (m,) are the rows' slots, ``fresh`` (m,) says which begin anew there, ``times`` (m,)
    are time stamps in milliseconds, negative for none. ``length`` and ``timed`` (s,) are the spans,
    ``spread`` (s, d) is how far values usually lie from their means. Changes ``means``
    (slots, s, d, 2) and ``last`` (slots,), the latest time stamp of each slot. Before its first
    value, a field's mean is 0 if values are ``centred`` and it has come in some slot, else missing.
    """
    for r in range(X.shape[0]):
        slot = slots[r]
        if fresh[r]:
            means[slot] = 0.0
            last[slot] = -1
        since = last[slot] if last[slot] >= 0 else times[r]
        seconds = max(times[r] - since, 0) / 1000.0
        last[slot] = max(last[slot], times[r])
        for s in range(len(length)):
            keep = math.exp(-(seconds if timed[s] else 1.0) / length[s])
            for v in range(X.shape[1]):
                own, x = means[slot, s, v], X[r, v]
                known = own[WEIGHT] > 0.0
                is_seen = known or (centred and spread[s, v] < math.inf)
                mean = own[MEAN] if is_seen else math.nan
                result[r, (s + 1) * X.shape[1] + v] = mean
                if known:
                    own[WEIGHT] = max(keep * own[WEIGHT], SMALLEST_WEIGHT)
                if x == x:
                    farthest = FARTHEST * spread[s, v]
                    own[WEIGHT] += 1.0
                    moved = x
                    if mean == mean:
                        moved = mean + min(max(x - mean, -farthest), farthest) / own[WEIGHT]
                    own[MEAN] = min(max(moved, -LARGEST), LARGEST)
