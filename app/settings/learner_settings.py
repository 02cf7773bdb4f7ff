"""The settings of the learner."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from faust_oslrau.app.errors import SettingsError

from .section import Section, setting, short
from .value_types import BOOLEAN, ValueType, integer, number, optional, pairs

# Importing the learner to read its parameters' names would take too long; a test compares them.
OSLRAU_PARAMETERS: dict[str, tuple[Any, ValueType]] = {
    "corr_threshold": (0.1, number(0, 1, closed="high")),
    "max_leaf_vars": (None, optional(integer(0))),
    "merges_per_batch": (None, optional(integer(1))),
    "min_count": (64, integer(1)),
    "n_init_components": (4, integer(1)),
    "background": (True, BOOLEAN),
    "variance_floor": (1e-4, number(0, 1, closed="low")),
    "structure_until": (None, optional(integer(0))),
    "standardize": (True, BOOLEAN),
}
"""Default and type of each parameter of the table `learner.oslrau`."""


def _read_oslrau(value: Any) -> tuple[tuple[str, Any], ...]:
    found = pairs(value)
    if found.keys() - OSLRAU_PARAMETERS.keys():
        raise ValueError
    return tuple(sorted((name, _read_one(name, each)) for name, each in found.items()))


def _read_one(name: str, value: Any) -> Any:
    _, value_type = OSLRAU_PARAMETERS[name]
    try:
        return value_type.read(value)
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise SettingsError(
            f"setting learner.oslrau.{name}: expected {value_type.expected}, got {short(value)}"
        ) from None


OSLRAU = ValueType(f"some of {', '.join(OSLRAU_PARAMETERS)}, with a value each", _read_oslrau)


@dataclass(frozen=True, slots=True)
class LearnerSettings(Section):
    """The parameters of the learner, which `faust_oslrau.learner.OSLRAU` documents."""

    prefix: ClassVar[str] = "learner."

    mixtures: bool = setting(False, BOOLEAN)
    max_nodes: int | None = setting(2000, optional(integer(2)))
    memory: float | None = setting(None, optional(number(0, math.inf)))
    oslrau: tuple[tuple[str, Any], ...] = setting((), OSLRAU)

    def __post_init__(self) -> None:
        """Check the fields, then that they go together."""
        Section.__post_init__(self)  # super() fails, as dataclass slots create a new class
        if self.mixtures and not self.parameters["background"]:
            raise SettingsError(
                "setting learner.mixtures: expected false with learner.oslrau.background = false, "
                "got true"
            )

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters by name."""
        own = ("mixtures", "max_nodes", "memory")
        defaults = {name: default for name, (default, _) in OSLRAU_PARAMETERS.items()}
        return {name: getattr(self, name) for name in own} | defaults | dict(self.oslrau)
