"""Encodes the messages of the anomalies topic: anomalous records, and drift events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from .scores import extend_object


def encode_anomaly(score: bytes, value: bytes) -> bytes:
    """Return the score message with the record's JSON object, byte for byte, as `record`."""
    return extend_object(score, "record", value)


def encode_drift(place: Mapping[str, Any], statistic: float, records: int) -> bytes:
    """Return the event of a drift; `place` identifies the record that triggered it.

    The change probably began `records` records earlier. Only events have the member `event`.
    """
    return orjson.dumps({"event": "drift", **place, "statistic": statistic, "records": records})
