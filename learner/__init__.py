"""The learner: a sum-product network that grows online, and everything that scores depend on."""

from .categories.density import CategoricalDensity
from .compile import compile_kernels
from .entities.density import EntityDensity
from .errors import (
    InvalidInputError,
    InvalidParameterError,
    LearnerError,
    NotFittedError,
    StateError,
)
from .network.structure import Network
from .oslrau import OSLRAU
from .scoring.blame import Blame
from .scoring.block import ChangedRate, Forecast, RateChange, ScoredBlock, Silence, SilentEntity
from .scoring.drift import Change
from .scoring.entity_events import Aspect, EntityEvent, EntityProfile
from .scoring.incident import Incident, IncidentEvent, IncidentParameters
from .stream import StreamScorer

__all__ = [
    "OSLRAU",
    "Aspect",
    "Blame",
    "CategoricalDensity",
    "Change",
    "ChangedRate",
    "EntityDensity",
    "EntityEvent",
    "EntityProfile",
    "Forecast",
    "Incident",
    "IncidentEvent",
    "IncidentParameters",
    "InvalidInputError",
    "InvalidParameterError",
    "LearnerError",
    "Network",
    "NotFittedError",
    "RateChange",
    "ScoredBlock",
    "Silence",
    "SilentEntity",
    "StateError",
    "StreamScorer",
    "compile_kernels",
]
