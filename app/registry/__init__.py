"""The registry of the records' schemas, and the topic of the schemas that were accepted."""

from .acceptance_log import AcceptanceLog
from .client import Registry, RegistryError, check_format

__all__ = ["AcceptanceLog", "Registry", "RegistryError", "check_format"]
