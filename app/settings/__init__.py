"""The settings of a worker: frozen objects that check themselves, and their one reader."""

from .definitions import LearnerSettings, SecuritySettings, Settings, describe, secrets
from .reader import load_settings
from .section import short

__all__ = [
    "LearnerSettings",
    "SecuritySettings",
    "Settings",
    "describe",
    "load_settings",
    "secrets",
    "short",
]
