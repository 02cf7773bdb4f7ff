"""What goes to the topic of anomalies: anomalous records, and events of the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from .scores import extend_object


def encode_anomaly(score: bytes, value: bytes) -> bytes:
    """Return the score message with the record's JSON object, byte for byte, as `record`."""
    return extend_object(score, "record", value)


def encode_drift(place: Mapping[str, Any], statistic: float, records: int) -> bytes:
    """Return the event of a drift, completed by the record at a place (topic, offset, ...).

    The change is likely to have begun so many `records` before. Only events have an `event`.
    """
    return orjson.dumps({"event": "drift", **place, "statistic": statistic, "records": records})
