"""What was found in the records of a partition, as messages of the output topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from faust_oslrau.app.settings import Settings
from faust_oslrau.learner import (
    Change,
    EntityEvent,
    IncidentEvent,
    RateChange,
    ScoredBlock,
    Silence,
)
from faust_oslrau.topics import (
    Columns,
    DecodedBlock,
    FieldChange,
    KafkaRecord,
    OutMessage,
    dead_letter,
    encode_anomaly,
    encode_scores,
    out_messages,
    trace_of,
)
from faust_oslrau.topics.cloud_events import event_headers, source_address
from faust_oslrau.topics.shortening import shortened

from .events import (
    encode_drift,
    encode_entity_event,
    encode_field_change,
    encode_incident,
    encode_rate_change,
    encode_silence,
)

Timed = tuple[KafkaRecord, int | None]
"""A record, and when it happened, in milliseconds since 1970 (UTC)."""


class Messages:
    """Encodes the outputs of one partition.

    Messages that are too large for their topic are shortened.
    """

    def __init__(self, topic: str, partition: int, settings: Settings) -> None:
        self._topic = topic
        self._partition = partition
        self._forecasts = settings.forecasts
        self._limit = settings.max_output_bytes
        self._address = source_address(settings.app_id, topic, partition)
        # What the messages are when they are sent: until then all are JSON.
        self._content_type = f"application/{settings.scores_format}"

    def scores(
        self,
        records: Sequence[KafkaRecord],
        times: Sequence[int | None],
        scored: ScoredBlock,
        columns: Columns,
    ) -> tuple[list[OutMessage], list[OutMessage]]:
        """Return the scores of records, and the anomalies among them with their records.

        `times` are when the records happened; a message has the time stamp of its record.
        """
        offsets = [record.offset for record in records]
        if scored.forecast is not None and not self._forecasts:  # for metrics only
            scored = replace(scored, forecast=None)
        texts = encode_scores(self._topic, self._partition, offsets, times, scored, columns)
        keys, timestamps = [r.key for r in records], [r.timestamp for r in records]
        scores = out_messages(offsets, keys, texts, timestamps, map(trace_of, records))
        anomalous = scored.is_anomaly.nonzero()[0].tolist()
        anomalies = [
            self._event(
                (records[i], times[i]), encode_anomaly(texts[i], records[i].value or b""), "anomaly"
            )
            for i in anomalous
        ]
        # without forecasts, only scores of anomalies have what may be large
        for i in anomalous if scored.forecast is None else range(len(scores)):
            scores[i] = shortened(scores[i], self._limit)
        return scores, anomalies

    def drift(self, record: Timed, change: Change) -> OutMessage:
        """Return the drift event that this record triggered."""
        value = encode_drift(self._source(*record), change)
        return self._event(record, value, "drift")

    def incident(self, record: Timed, event: IncidentEvent, columns: Columns) -> OutMessage:
        """Return the event of an incident that this record opened, updated or closed."""
        value = encode_incident(self._source(*record), event, columns)
        return self._event(record, value, "incident", event.state, event.incident.entity)

    def entity(self, record: Timed, event: EntityEvent, fields: Sequence[str]) -> OutMessage:
        """Return the event of an entity that this record completed."""
        value = encode_entity_event(self._source(*record), event, fields)
        return self._event(record, value, "entity", event.state, event.entity)

    def silence(self, record: Timed, silence: Silence) -> OutMessage:
        """Return the event of a silence that this record shows or ends."""
        value = encode_silence(self._source(*record), silence)
        return self._event(record, value, "silence", silence.state, silence.entity)

    def rate(self, record: Timed, change: RateChange) -> OutMessage:
        """Return the event of a change of how many records come that this record shows."""
        value = encode_rate_change(self._source(*record), change)
        return self._event(record, value, "rate", change.state, change.entity)

    def field(self, record: Timed, change: FieldChange) -> OutMessage:
        """Return the event of a field that has changed up to this record."""
        value = encode_field_change(self._source(*record), change)
        return self._event(record, value, "field", change.state, change.field)

    def dead_letters(
        self, records: Sequence[KafkaRecord], decoded: DecodedBlock
    ) -> list[OutMessage]:
        """Return a dead letter for each rejected record."""
        return [
            dead_letter(records[i], rejection, self._limit) for i, rejection in decoded.rejected
        ]

    def _source(self, record: KafkaRecord, time: int | None) -> dict[str, Any]:
        return {
            "topic": self._topic,
            "partition": self._partition,
            "offset": record.offset,
            "timestamp": time,
        }

    def _event(
        self,
        timed: Timed,
        value: bytes,
        kind: str,
        state: str | None = None,
        name: str | None = None,
    ) -> OutMessage:
        """Return a message of the anomalies topic, with its record's key, time and trace."""
        record, time = timed
        what = (record.offset, time, kind, state, name)
        headers = event_headers(self._address, *what, self._content_type)
        traced = (*trace_of(record), *headers)
        message = OutMessage(record.offset, record.key, value, record.timestamp, traced)
        return shortened(message, self._limit)
