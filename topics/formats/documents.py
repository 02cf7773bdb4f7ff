"""Records of other formats as JSON, which everything after the decoder reads."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import orjson

from .errors import ContentError

# Beyond every double, as JSON has no infinity: such a record is rejected as `not_finite`.
_INFINITY = {math.inf: orjson.Fragment(b"1e999"), -math.inf: orjson.Fragment(b"-1e999")}


def as_json(document: Any) -> bytes:
    """Return a decoded record as JSON. NaN and bytes are null, dates are texts.

    Raises
    ------
    ContentError
        It has what JSON cannot hold.
    """
    try:
        text = orjson.dumps(document, default=_plain)
        # orjson writes infinity as null, which is a missing value.
        if b"null" in text and _has_infinity(document):
            text = orjson.dumps(_exact(document), default=_plain)
    except TypeError as error:
        raise ContentError(f"it cannot be written as JSON: {error}") from error
    return text


def _plain(content: Any) -> Any:
    return orjson.Fragment(str(content)) if isinstance(content, Decimal) else None


def _has_infinity(content: Any) -> bool:
    if isinstance(content, dict):
        return any(map(_has_infinity, content.values()))
    if isinstance(content, list):
        return any(map(_has_infinity, content))
    return isinstance(content, float) and math.isinf(content)


def _exact(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _exact(inside) for name, inside in content.items()}
    if isinstance(content, list):
        return list(map(_exact, content))
    return _INFINITY.get(content, content) if isinstance(content, float) else content
