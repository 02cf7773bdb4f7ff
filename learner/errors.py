"""Errors of the learner."""

from __future__ import annotations


class LearnerError(ValueError):
    """Base of the learner's errors."""


class InvalidInputError(LearnerError):
    """Data of the wrong shape, or with infinite values."""


class InvalidParameterError(LearnerError):
    """A hyper-parameter outside its range."""


class NotFittedError(LearnerError):
    """A query before the first mini-batch was learned."""

    def __init__(self) -> None:
        super().__init__("the model has learned nothing yet: call partial_fit first")


class InvalidNetworkError(LearnerError):
    """A network that is not a density: incomplete, not decomposable, or with unsound numbers."""


class StateError(LearnerError):
    """Bytes that are not a state, or not one that this version can read."""


class StateVersionError(StateError):
    """An undamaged state of a format that this version does not read."""
