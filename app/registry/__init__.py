"""The registry of schemas, and the topic of those of records that were accepted."""

from .acceptance_log import AcceptanceLog
from .client import Registry, RegistryError, check_format
from .outputs import MessageSchemas, OutputSchemas

__all__ = [
    "AcceptanceLog",
    "MessageSchemas",
    "OutputSchemas",
    "Registry",
    "RegistryError",
    "check_format",
]
