"""What was found in the records of a partition, as messages of the output topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from faust_oslrau.app.settings import Settings
from faust_oslrau.learner import Change, EntityEvent, IncidentEvent, ScoredBlock, Silence
from faust_oslrau.topics import (
    Columns,
    DecodedBlock,
    KafkaRecord,
    OutMessage,
    dead_letter,
    encode_anomaly,
    encode_drift,
    encode_entity_event,
    encode_incident,
    encode_scores,
    encode_silence,
    out_messages,
    trace_of,
)
from faust_oslrau.topics.shortening import shortened

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
            scores[i]._replace(value=encode_anomaly(texts[i], records[i].value or b""))
            for i in anomalous
        ]
        anomalies = [shortened(anomaly, self._limit) for anomaly in anomalies]
        # without forecasts, only scores of anomalies have what may be large
        for i in anomalous if scored.forecast is None else range(len(scores)):
            scores[i] = shortened(scores[i], self._limit)
        return scores, anomalies

    def drift(self, record: Timed, change: Change) -> OutMessage:
        """Return the drift event that this record triggered."""
        return _message(
            record[0], encode_drift(self._source(*record), change.statistic, change.records)
        )

    def incident(self, record: Timed, event: IncidentEvent, columns: Columns) -> OutMessage:
        """Return the event of an incident that this record opened, updated or closed."""
        source = self._source(*record)
        value = encode_incident(source, event.state, event.incident, event.blame, columns)
        return shortened(_message(record[0], value), self._limit)

    def entity(self, record: Timed, event: EntityEvent, fields: Sequence[str]) -> OutMessage:
        """Return the event of an entity that this record completed."""
        value = encode_entity_event(self._source(*record), event, fields)
        return shortened(_message(record[0], value), self._limit)

    def silence(self, record: Timed, silence: Silence) -> OutMessage:
        """Return the event of a silence that this record shows or ends."""
        return _message(record[0], encode_silence(self._source(*record), silence))

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


def _message(record: KafkaRecord, value: bytes) -> OutMessage:
    """Return a message with a record's offset, key, time and trace."""
    return OutMessage(record.offset, record.key, value, record.timestamp, trace_of(record))
