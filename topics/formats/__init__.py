"""Formats of records and messages other than JSON, each with a schema in a registry."""

from .codecs import KINDS, Codec, codec, missing_module
from .errors import ContentError, SchemaError
from .framing import LARGEST_ID, framed, schema_id
from .messages import Translate, message_reader, message_schema, message_writer
from .schemas import Acceptance, Acceptances, Schema
from .shapes import fitted
from .translation import Translator

__all__ = [
    "KINDS",
    "LARGEST_ID",
    "Acceptance",
    "Acceptances",
    "Codec",
    "ContentError",
    "Schema",
    "SchemaError",
    "Translate",
    "Translator",
    "codec",
    "fitted",
    "framed",
    "message_reader",
    "message_schema",
    "message_writer",
    "missing_module",
    "schema_id",
]
