"""The learner: a sum-product network that grows online, and everything that scores depend on."""

from .blame import Blame
from .block import ScoredBlock
from .compile import compile_kernels
from .drift import Change
from .errors import (
    InvalidInputError,
    InvalidParameterError,
    LearnerError,
    NotFittedError,
    StateError,
)
from .network import Network
from .oslrau import OSLRAU
from .protocol import Learner
from .stream import StreamScorer

__all__ = [
    "OSLRAU",
    "Blame",
    "Change",
    "InvalidInputError",
    "InvalidParameterError",
    "Learner",
    "LearnerError",
    "Network",
    "NotFittedError",
    "ScoredBlock",
    "StateError",
    "StreamScorer",
    "compile_kernels",
]
