"""Decodes feature records, and encodes scores, anomalies and dead letters as Kafka messages."""

from .anomalies import encode_anomaly, encode_drift
from .columns import Kind
from .dead_letters import dead_letter, is_dead_letter, message_bytes
from .entities import KEY, EntityReader
from .entity_events import aspect_data, encode_entity_event
from .features import NOTHING_DECODED, DecodedBlock, FeatureDecoder
from .field_changes import FieldChange, FieldState, encode_field_change
from .field_choice import FieldChoice
from .field_watch import FieldWatch
from .incidents import encode_incident
from .rates import encode_rate_change
from .records import KafkaRecord, OutMessage, Record, out_messages, trace_of
from .rejections import Reason, Rejection
from .scores import Columns, Scores, encode_scores
from .silences import encode_silence
from .times import TimeReader

__all__ = [
    "KEY",
    "NOTHING_DECODED",
    "Columns",
    "DecodedBlock",
    "EntityReader",
    "FeatureDecoder",
    "FieldChange",
    "FieldChoice",
    "FieldState",
    "FieldWatch",
    "KafkaRecord",
    "Kind",
    "OutMessage",
    "Reason",
    "Record",
    "Rejection",
    "Scores",
    "TimeReader",
    "aspect_data",
    "dead_letter",
    "encode_anomaly",
    "encode_drift",
    "encode_entity_event",
    "encode_field_change",
    "encode_incident",
    "encode_rate_change",
    "encode_scores",
    "encode_silence",
    "is_dead_letter",
    "message_bytes",
    "out_messages",
    "trace_of",
]
