"""The AsyncAPI document: which topic has which messages."""

from __future__ import annotations

from typing import Any

from .json_schema import headers_of
from .members import EVENTS, MEMBERS, Kind

TOPICS = {
    "scores": ("scores_topic", [Kind.SCORE]),
    "anomalies": ("anomalies_topic", [Kind.ANOMALY, *EVENTS]),
    "features-dead-letters": ("dead_letter_topic", [Kind.DEAD_LETTER]),
}
"""The setting of each topic, and the kinds of its messages."""


def document() -> dict[str, Any]:
    """Return the document; its messages refer to the schemas beside it."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "faust-oslrau",
            "version": max((member.since for member in MEMBERS), key=_numbers),
            "description": "What a worker writes. Topics have the names that are the defaults of "
            "their settings. Every message has the key and the partition number of its record. "
            "With the setting scores_format, scores, anomalies and events are Avro: scores.avsc "
            "and anomalies.avsc have their schemas.",
        },
        "defaultContentType": "application/json",
        "channels": {topic: _channel(topic, *has) for topic, has in TOPICS.items()},
        "operations": {
            f"send-{topic}": {"action": "send", "channel": {"$ref": f"#/channels/{topic}"}}
            for topic in TOPICS
        },
        "components": {"messages": {key(kind): _message(kind) for kind in Kind}},
    }


def key(kind: Kind) -> str:
    """Return the name of a kind where names have no spaces."""
    return kind.value.replace(" ", "-")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _channel(topic: str, setting: str, kinds: list[Kind]) -> dict[str, Any]:
    return {
        "address": topic,
        "description": f"The setting {setting} names this topic.",
        "messages": {key(kind): {"$ref": f"#/components/messages/{key(kind)}"} for kind in kinds},
    }


def _message(kind: Kind) -> dict[str, Any]:
    headers = {"name": key(kind), "headers": headers_of(kind)}
    if kind is Kind.DEAD_LETTER:  # the record as it came, whatever it is
        return {**headers, "contentType": "application/octet-stream"}
    return {**headers, "payload": {"$ref": f"{key(kind)}.json"}}
