"""Formats of source records other than JSON, each with a schema in a registry."""

from .codecs import KINDS, Codec, codec, missing_module
from .errors import ContentError, SchemaError
from .framing import framed, schema_id
from .schemas import Acceptance, Acceptances, Schema
from .translation import Translator

__all__ = [
    "KINDS",
    "Acceptance",
    "Acceptances",
    "Codec",
    "ContentError",
    "Schema",
    "SchemaError",
    "Translator",
    "codec",
    "framed",
    "missing_module",
    "schema_id",
]
