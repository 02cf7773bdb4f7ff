"""The members of all messages: the one table from which schemas and documentation are written."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kinds of messages."""

    SCORE = "score"
    ANOMALY = "anomaly"
    DRIFT = "drift"
    INCIDENT = "incident"
    SILENCE = "silence"
    RATE = "rate"
    FIELD = "field"
    ENTITY = "entity"
    DEAD_LETTER = "dead letter"


EVENTS = (Kind.DRIFT, Kind.INCIDENT, Kind.SILENCE, Kind.RATE, Kind.FIELD, Kind.ENTITY)
"""The kinds that say something about the stream; their member `event` names them."""

FIRST = "0.1"
"""The version that brought most members."""

TEXT = "text"
"""The type of a header."""


class Member(NamedTuple):
    """A member of a JSON object, or a header.

    Attributes
    ----------
    name
        Its name; `list[].name` for that of an object in a list.
    of
        The kinds of messages that have it.
    type
        `string`, `integer`, `number`, `boolean`, `object` or `list`, perhaps with ` or null`;
        `text` for a header.
    meaning
        Sentences in Markdown, with links as docs/messages.md needs them.
    since
        The version that brought it.
    optional
        The kinds in which it may be absent.
    values
        All that a string may be; empty for any.
    """

    name: str
    of: tuple[Kind, ...]
    type: str
    meaning: str
    since: str = FIRST
    optional: tuple[Kind, ...] = ()
    values: tuple[str, ...] = ()


_SCORE = (Kind.SCORE,)
_ANOMALY = (Kind.ANOMALY,)
_DRIFT = (Kind.DRIFT,)
_INCIDENT = (Kind.INCIDENT,)
_SILENCE = (Kind.SILENCE,)
_RATE = (Kind.RATE,)
_FIELD = (Kind.FIELD,)
_ENTITY = (Kind.ENTITY,)
_DEAD_LETTER = (Kind.DEAD_LETTER,)
_SCORES = _SCORE + _ANOMALY
_BLAMING = _SCORES + _INCIDENT
_OF_ENTITIES = _INCIDENT + _SILENCE + _RATE + _ENTITY
_TOLD = _ANOMALY + EVENTS
_JSON = _SCORE + _TOLD

MEMBERS = (
    Member("topic", _JSON, "string", "Source topic of the record."),
    Member("partition", _JSON, "integer", "Its partition."),
    Member("offset", _JSON, "integer", "Its offset. In an event: the record that caused it."),
    Member(
        "timestamp",
        _JSON,
        "integer or null",
        "When it happened, in milliseconds since 1970 (UTC): its timestamp in Kafka, or"
        " what the setting `time` finds, null for nothing.",
    ),
    Member(
        "log_likelihood",
        _SCORES,
        "number or null",
        "Natural logarithm of the [density](scores.md#the-density) of the observed fields. "
        'null for the first 16 records of a partition, the first 240 with `features = "auto"`.',
    ),
    Member(
        "p_value",
        _SCORES,
        "number or null",
        "[Share of recent records](scores.md#the-p-value) that were at least as unusual. "
        'null for the first 48 records, the first 240 with `features = "auto"`.',
    ),
    Member("is_anomaly", _SCORES, "boolean", "Whether the p-value is at most `alarm_rate`."),
    Member(
        "n_learned",
        _SCORES,
        "integer",
        "Records that the model had learned before.",
    ),
    Member(
        "warming_up",
        _SCORES,
        "boolean",
        "Whether the record is among the first 240 of its partition.",
    ),
    Member(
        "forecast",
        _SCORES,
        "list",
        "With [`forecasts`](forecasts.md): what was expected of each field.",
        optional=_SCORES,
    ),
    Member("forecast[].field", _SCORES, "string", "Name of the field."),
    Member(
        "forecast[].expected",
        _SCORES,
        "number or null",
        "Mean of the field. null while there is no model.",
    ),
    Member("forecast[].low", _SCORES, "number or null", "Quantile at 1 %."),
    Member("forecast[].high", _SCORES, "number or null", "Quantile at 99 %."),
    Member(
        "state",
        _INCIDENT,
        "string",
        "`opened`, `updated` (its `severity_name` has risen) or `closed`.",
        values=("opened", "updated", "closed"),
    ),
    Member(
        "state",
        _FIELD,
        "string",
        "What [became of the field](categories.md#fields-that-change): `appeared`, `vanished`, "
        "`type` or `unit`.",
        "0.2",
        values=("appeared", "vanished", "type", "unit"),
    ),
    Member("state", _SILENCE + _RATE, "string", "`began` or `ended`.", values=("began", "ended")),
    Member(
        "state",
        _ENTITY,
        "string",
        "`new`, `unusual` or `usual`.",
        values=("new", "unusual", "usual"),
    ),
    Member(
        "incident",
        _INCIDENT,
        "string",
        "Id of the incident: topic, partition and offset of the record that opened it.",
    ),
    Member(
        "severity",
        _INCIDENT,
        "number",
        "How severe the [incident](#incidents) has been so far, from 0 to 100.",
    ),
    Member(
        "severity_name",
        _INCIDENT,
        "string",
        "`minor`, `major` or `critical`.",
        values=("minor", "major", "critical"),
    ),
    Member(
        "evidence",
        _INCIDENT,
        "number",
        "The evidence so far, in nats.",
    ),
    Member(
        "length",
        _INCIDENT,
        "integer",
        "Valid records of the partition from the start to the latest with evidence.",
    ),
    Member("anomalies", _INCIDENT, "integer", "Anomalies among these."),
    Member("opened_offset", _INCIDENT, "integer", "The record that opened the incident."),
    Member("opened_timestamp", _INCIDENT, "integer or null", "Its timestamp."),
    Member("start_offset", _INCIDENT, "integer", "The record with which the evidence began."),
    Member("start_timestamp", _INCIDENT, "integer or null", "Its timestamp."),
    Member("peak_offset", _INCIDENT, "integer", "The most unusual record."),
    Member("peak_timestamp", _INCIDENT, "integer or null", "Its timestamp."),
    Member("peak_p_value", _INCIDENT, "number", "Its p-value."),
    Member("latest_offset", _INCIDENT, "integer", "The latest record with evidence."),
    Member("latest_timestamp", _INCIDENT, "integer or null", "Its timestamp."),
    Member(
        "entity",
        _OF_ENTITIES,
        "string",
        "The [entity](entities.md) that the event is about: up to 256 bytes of its key or "
        "field. Absent for an event of the partition.",
        optional=_OF_ENTITIES,
    ),
    Member(
        "entity_p_value",
        _ENTITY,
        "number",
        "Share of entities that one expects to be at least as "
        "[unusual](entities.md#which-entities-are-unusual). Not if `new`.",
        optional=_ENTITY,
    ),
    Member(
        "aspects",
        _ENTITY,
        "list",
        "How an `unusual` entity differs from the others: up to 16 ways, the most unusual first.",
        optional=_ENTITY,
    ),
    Member(
        "aspects[].aspect",
        _ENTITY,
        "string",
        "`level` or `spread` of a field; `kinds`: how often which kinds of records come.",
        values=("level", "spread", "kinds"),
    ),
    Member("aspects[].field", _ENTITY, "string or null", "Name of the field; null with `kinds`."),
    Member(
        "aspects[].value",
        _ENTITY,
        "number or null",
        "The entity's level or standard deviation; null with `kinds`. Of a "
        "[transformed](tuning.md#transforms) field, the level is transformed back, the "
        "deviation not.",
    ),
    Member(
        "aspects[].usual",
        _ENTITY,
        "number or null",
        "The same in the middle of all entities.",
    ),
    Member(
        "aspects[].deviations",
        _ENTITY,
        "number",
        "How many standard deviations of the others it is away from them.",
    ),
    Member("last_offset", _SILENCE, "integer", "The last record before the silence."),
    Member("last_timestamp", _SILENCE, "integer or null", "Its timestamp."),
    Member(
        "seconds",
        _SILENCE,
        "number",
        "How long the silence has lasted; for an entity, without silences of the partition.",
    ),
    Member(
        "limit_seconds",
        _SILENCE,
        "number",
        "After how long it was longer than [usual](silence.md).",
    ),
    Member(
        "since",
        _RATE,
        "integer",
        "When the first window of the change began, in milliseconds since 1970 (UTC).",
        "0.2",
    ),
    Member("window_seconds", _RATE, "number", "The length of a [window](silence.md#rates).", "0.2"),
    Member("records", _RATE, "integer", "Records in the window that ended last.", "0.2"),
    Member("expected", _RATE, "number", "How many were expected in it.", "0.2"),
    Member("low", _RATE, "integer", "The quantile at 1 % of what was expected.", "0.2"),
    Member("high", _RATE, "integer", "The quantile at 99 %.", "0.2"),
    Member(
        "field",
        _RATE + _FIELD,
        "string",
        "The name of the field; of a rate, that of [`rates_by`](silence.md#rates), if it is of one "
        "of its values.",
        "0.2",
        optional=_RATE,
    ),
    Member("category", _RATE, "string", "That value.", "0.2", optional=_RATE),
    Member(
        "before",
        _FIELD,
        "string",
        "What a field of another `type` held: `number`, `text` or `list`.",
        "0.2",
        optional=_FIELD,
        values=("number", "text", "list"),
    ),
    Member(
        "now",
        _FIELD,
        "string",
        "What it holds now.",
        "0.2",
        optional=_FIELD,
        values=("number", "text", "list"),
    ),
    Member(
        "factor",
        _FIELD,
        "number",
        "The new level of a field of another `unit`, divided by the old one.",
        "0.2",
        optional=_FIELD,
    ),
    Member(
        "contributions",
        _BLAMING,
        "list",
        "The [fields to blame](#contributions), up to 16, the most unusual first. In a "
        "score only where `is_anomaly` is true. In an incident, averages over its records "
        "that blame the field, null beyond the range of a double.",
        optional=_BLAMING,
    ),
    Member("contributions[].field", _BLAMING, "string", "Name of the field."),
    Member(
        "contributions[].nats",
        _BLAMING,
        "number or null",
        "How unlikely the field's value is: -log p(field given the fields that are not "
        "to blame), in an incident of a stuck field with the evidence of its run.",
    ),
    Member("contributions[].usual", _BLAMING, "number or null", "What `nats` is on average."),
    Member(
        "contributions[].value",
        _BLAMING,
        "number or null",
        "The field's value. Absent, as the three below, for a [category](categories.md).",
        optional=_BLAMING,
    ),
    Member(
        "contributions[].expected",
        _BLAMING,
        "number or null",
        "Mean of the field given the fields that are not to blame; that of a "
        "[transformed](tuning.md#transforms) field is transformed back.",
        optional=_BLAMING,
    ),
    Member(
        "contributions[].deviation",
        _BLAMING,
        "number or null",
        "Its standard deviation, given the same fields.",
        optional=_BLAMING,
    ),
    Member(
        "contributions[].extrapolated",
        _BLAMING,
        "boolean",
        "Whether `expected` is outside the range of learned values; with entities, in units "
        "of the entity.",
        optional=_BLAMING,
    ),
    Member(
        "contributions[].category",
        _BLAMING,
        "string",
        "The value of a [category](categories.md); in an incident, the latest to blame.",
        optional=_BLAMING,
    ),
    Member(
        "contributions[].expected_category",
        _BLAMING,
        "string",
        "The value that the other fields suggest; `usual` are its nats.",
        optional=_BLAMING,
    ),
    Member(
        "record",
        _ANOMALY,
        "object",
        "The input record, byte for byte; of another [format](formats.md), what it is as JSON.",
        optional=_ANOMALY,
    ),
    Member(
        "event",
        EVENTS,
        "string",
        "`drift`, `incident`, `silence`, `rate`, `field` or `entity`.",
    ),
    Member(
        "statistic",
        _DRIFT,
        "number",
        "Strength of the evidence, from 1 on.",
    ),
    Member(
        "records", _DRIFT, "integer", "The change began about this many records before `offset`."
    ),
    Member("oslrau-reason", _DEAD_LETTER, "text", "The [reason](#dead-letters)."),
    Member(
        "oslrau-detail",
        _DEAD_LETTER,
        "text",
        "What was expected, what was found, in at most 500 characters.",
    ),
    Member(
        "oslrau-topic",
        _DEAD_LETTER + _JSON,
        "text",
        "Source topic of the record. In other messages than dead letters only where [content was"
        " left out](#too-large-messages), as the two below.",
        optional=_JSON,
    ),
    Member("oslrau-partition", _DEAD_LETTER + _JSON, "text", "Its partition.", optional=_JSON),
    Member("oslrau-offset", _DEAD_LETTER + _JSON, "text", "Its offset.", optional=_JSON),
    Member(
        "oslrau-left-out-bytes",
        _DEAD_LETTER + _JSON,
        "text",
        "Original size, only where content was left out.",
        optional=_DEAD_LETTER + _JSON,
    ),
    Member(
        "ce_specversion",
        _TOLD,
        "text",
        "`1.0`, the version of [CloudEvents](#cloudevents).",
        "0.2",
        values=("1.0",),
    ),
    Member(
        "ce_id",
        _TOLD,
        "text",
        "`offset`, kind, `state` and `entity`, `category` or `field`, as far as there are. "
        "Identifies the event, with `ce_source`.",
        "0.2",
    ),
    Member(
        "ce_source",
        _TOLD,
        "text",
        "`/app_id/topic/partition`.",
        "0.2",
    ),
    Member(
        "ce_type",
        _TOLD,
        "text",
        "Kind and `state`: `oslrau.anomaly`, `oslrau.incident.opened`.",
        "0.2",
    ),
    Member(
        "ce_time",
        _TOLD,
        "text",
        "`timestamp` as RFC 3339, if it lies between 1970 and 9999.",
        "0.2",
        optional=_TOLD,
    ),
    Member(
        "content-type",
        _TOLD,
        "text",
        "`application/json`, or `application/avro` with [Avro](formats.md#what-is-written).",
        "0.2",
        values=("application/json", "application/avro"),
    ),
    Member(
        "traceparent",
        _DEAD_LETTER + _JSON,
        "text",
        "That of the record, as W3C trace context has it; left out first of what is [too large]"
        "(#too-large-messages).",
        "0.2",
        optional=_DEAD_LETTER + _JSON,
    ),
    Member(
        "tracestate",
        _DEAD_LETTER + _JSON,
        "text",
        "The same of its `tracestate`.",
        "0.2",
        optional=_DEAD_LETTER + _JSON,
    ),
)
