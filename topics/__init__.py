"""Decodes feature records, and encodes scores, anomalies and dead letters as Kafka messages."""

from .columns import NUMERIC, Kind
from .dead_letters import dead_letter, is_dead_letter, message_bytes
from .entities import KEY, EntityReader
from .features import NOTHING_DECODED, DecodedBlock, FeatureDecoder
from .field_changes import FieldChange, FieldState
from .field_choice import FieldChoice
from .field_watch import FieldWatch
from .records import KafkaRecord, OutMessage, Record, out_messages, trace_of
from .rejections import Reason, Rejection
from .scores import Columns, Scores, contributions, encode_anomaly, encode_scores
from .times import TimeReader

__all__ = [
    "KEY",
    "NOTHING_DECODED",
    "NUMERIC",
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
    "contributions",
    "dead_letter",
    "encode_anomaly",
    "encode_scores",
    "is_dead_letter",
    "message_bytes",
    "out_messages",
    "trace_of",
]
