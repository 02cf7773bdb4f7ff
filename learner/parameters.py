"""Hyper-parameters of estimators by name, as scikit-learn asks for them."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

import numpy as np

from .errors import InvalidParameterError

MOST_NODES = 2**31 - 1
"""Node budget of a model without one, and upper bound of hyper-parameters that are counts."""


class Parameters:
    """An estimator whose hyper-parameters are the arguments of its constructor.

    Attributes
    ----------
    state_kind
        What the state says that it is of.
    n_records_
        Records learned so far.
    """

    state_kind: ClassVar[str]
    n_records_: int = 0

    def check_parameters(self) -> None:
        """Raise InvalidParameterError for a hyper-parameter outside its range."""
        raise NotImplementedError

    def _check_count(self, name: str, least: int, most: int, may_be_none: bool = False) -> None:
        value = getattr(self, name)
        valid = may_be_none if value is None else least <= value <= most
        require(valid, name, value, f"{least} to {most}{', or None' if may_be_none else ''}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyper-parameters by name, as in scikit-learn.

        With ``deep``, those of an estimator among them as well, such as ``learner__min_count``.
        """
        own = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        inner = {
            f"{name}__{of}": value
            for name, estimator in own.items()
            if deep and isinstance(estimator, Parameters)
            for of, value in estimator.get_params().items()
        }
        return own | inner

    def set_params(self, **parameters: Any) -> Self:
        """Set hyper-parameters by name; they apply to what is learned from now on.

        Raises
        ------
        InvalidParameterError
            There is no hyper-parameter of that name.
        """
        known = inspect.signature(type(self)).parameters
        for name, value in parameters.items():
            outer, _, inner = name.partition("__")
            estimator = getattr(self, outer, None)
            if inner and outer in known and isinstance(estimator, Parameters):
                estimator.set_params(**{inner: value})
                continue
            require(name in known, name, value, f"one of {', '.join(known)}")
            setattr(self, name, value)
        return self

    def untrained(self) -> Self:
        """Return an estimator with the same hyper-parameters that has learned nothing."""
        return type(self)(**self.get_params(deep=False))

    def plain_params(self) -> dict[str, Any]:
        """Hyper-parameters as plain values, numpy's numbers turned into Python's own."""
        return {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in self.get_params(deep=False).items()
        }

    def __repr__(self) -> str:
        """Write the hyper-parameters that differ from their defaults."""
        known = inspect.signature(type(self)).parameters
        own = self.get_params(deep=False)
        changed = {n: v for n, v in own.items() if v != known[n].default}
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in changed.items())})"


def require(valid: bool, name: str, value: object, expected: str) -> None:
    """Raise InvalidParameterError unless ``valid``."""
    if not valid:
        raise InvalidParameterError(f"{name} = {value!r}: expected {expected}")
