"""Anomaly messages: a score with its contributions and the record itself."""

from __future__ import annotations

from .scores import extend_object


def encode_anomaly(score: bytes, value: bytes) -> bytes:
    """Return the score message with the record's JSON object, byte for byte, as `record`."""
    return extend_object(score, "record", value)
