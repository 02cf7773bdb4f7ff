"""The registry of schemas, and the topic of those of records that were accepted."""

from .acceptance_log import AcceptanceLog
from .client import Registry, RegistryError, check_format
from .outputs import MessageSchemas, message_writers

__all__ = [
    "AcceptanceLog",
    "MessageSchemas",
    "Registry",
    "RegistryError",
    "check_format",
    "message_writers",
]
