"""The reasons why a record cannot be scored."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from .documents import MAX_DEPTH, depth, is_too_deep, parse


class Reason(StrEnum):
    """The reasons of rejection, as they appear in dead letters and metrics."""

    NO_VALUE = "no_value"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    NOT_UTF8 = "not_utf8"
    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"
    NOT_A_NUMBER = "not_a_number"
    NOT_A_CATEGORY = "not_a_category"
    NOT_FINITE = "not_finite"
    OUT_OF_RANGE = "out_of_range"
    NO_FEATURES = "no_features"
    NOT_FRAMED = "not_framed"
    UNKNOWN_SCHEMA = "unknown_schema"
    WRONG_SCHEMA = "wrong_schema"
    NOT_OF_SCHEMA = "not_of_schema"


class Rejection(NamedTuple):
    """A reason, with a detail for the reader of the dead letter."""

    reason: Reason
    detail: str


JSON_TYPES = {
    str: "a string",
    list: "a list",
    dict: "an object",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


# Before a record's content, Confluent's serializers write a zero byte and the id of its schema.
_FRAME_BYTES = 5
_FRAMED = (
    "; it begins like a record with the id of a schema: the setting format may have to be avro, "
    "protobuf or json_schema"
)


def reject_large(value: bytes, max_bytes: int) -> Rejection:
    """Return the rejection of a value of more than `max_bytes` bytes."""
    return Rejection(Reason.TOO_LARGE, f"{len(value)} bytes, at most {max_bytes} are taken")


def reject_value(value: bytes | None, max_bytes: int) -> Rejection:
    """Return the rejection of a value that is no JSON object of at most `max_bytes` bytes."""
    if value is None:
        return Rejection(Reason.NO_VALUE, "expected a JSON object, got a null value")
    if len(value) > max_bytes:
        return reject_large(value, max_bytes)
    if is_too_deep(value):
        return Rejection(
            Reason.TOO_DEEP, f"{depth(value)} levels of nesting, at most {MAX_DEPTH} are taken"
        )
    try:
        document = parse(value)
    except ValueError as error:
        return _reject_text(value, error)
    return Rejection(
        Reason.NOT_AN_OBJECT, f"expected a JSON object, got {JSON_TYPES[type(document)]}"
    )


def reject_field(field: str, content: object) -> Rejection:
    """Return the rejection of a chosen field whose `content` is no number."""
    found = JSON_TYPES[type(content)]
    return Rejection(Reason.NOT_A_NUMBER, f"expected a number in field {field!r}, got {found}")


def reject_category(field: str, content: object) -> Rejection:
    """Return the rejection of a chosen field whose `content` is no category."""
    found = JSON_TYPES[type(content)]
    return Rejection(
        Reason.NOT_A_CATEGORY,
        f"expected a string, a number or a boolean in field {field!r}, got {found}",
    )


def reject_beyond(field: str) -> Rejection:
    """Return the rejection of a chosen field that holds a number beyond a double."""
    return Rejection(
        Reason.NOT_FINITE, f"expected a number within the range of a double in field {field!r}"
    )


def reject_range(field: str, content: float, bound: float) -> Rejection:
    """Return the rejection of a chosen field whose value is not above its lower bound."""
    return Rejection(
        Reason.OUT_OF_RANGE, f"expected more than {bound:g} in field {field!r}, got {content:g}"
    )


def _reject_text(value: bytes, error: ValueError) -> Rejection:
    hint = _FRAMED if len(value) > _FRAME_BYTES and value[0] == 0 else ""
    try:
        value.decode("utf-8")
    except UnicodeDecodeError as undecodable:
        found = f"{undecodable.reason} at byte {undecodable.start}"
        return Rejection(Reason.NOT_UTF8, found + hint)
    return Rejection(Reason.NOT_JSON, str(error) + hint)
