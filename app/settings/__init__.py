"""The settings of a worker: frozen, validated objects, and the reader that loads them."""

from .definitions import SecuritySettings, Settings, describe, secrets
from .incident_settings import IncidentSettings
from .learner_settings import OSLRAU_PARAMETERS, LearnerSettings
from .notify_settings import NotifySettings
from .reader import load_settings
from .registry_settings import RegistrySettings
from .section import short

__all__ = [
    "OSLRAU_PARAMETERS",
    "IncidentSettings",
    "LearnerSettings",
    "NotifySettings",
    "RegistrySettings",
    "SecuritySettings",
    "Settings",
    "describe",
    "load_settings",
    "secrets",
    "short",
]
