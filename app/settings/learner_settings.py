"""The settings of the learner: its kind, and the parameters of each kind."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from faust_oslrau.app.errors import SettingsError

from .section import Section, setting, short
from .value_types import BOOLEAN, choice, integer, number, optional

# Importing the learner to read its parameters' names would take too long; a test compares them.
_OF_ALL_KINDS = ("max_nodes", "memory", "random_state")
_OF_KIND = {
    "oslrau": (
        "corr_threshold",
        "max_leaf_vars",
        "merges_per_batch",
        "min_count",
        "n_init_components",
        "background",
        "variance_floor",
        "structure_until",
        "standardize",
    ),
    "stacked": ("adapt_after",),
}
_FEWEST_STACKED_NODES = 100


@dataclass(frozen=True, slots=True)
class LearnerSettings(Section):
    """The kind of learner and its parameters.

    `faust_oslrau.learner.OSLRAU` and `StackedSPN` document the parameters.
    """

    prefix: ClassVar[str] = "learner."

    kind: str = setting("stacked", choice(*_OF_KIND))
    corr_threshold: float = setting(0.1, number(0, 1, closed="high"))
    max_leaf_vars: int | None = setting(None, optional(integer(0)))
    merges_per_batch: int | None = setting(None, optional(integer(1)))
    min_count: int = setting(64, integer(1))
    n_init_components: int = setting(2, integer(1))
    background: bool = setting(True, BOOLEAN)
    max_nodes: int | None = setting(2000, optional(integer(2)))
    memory: float | None = setting(None, optional(number(0, math.inf)))
    variance_floor: float = setting(1e-4, number(0, 1, closed="low"))
    structure_until: int | None = setting(None, optional(integer(0)))
    standardize: bool = setting(True, BOOLEAN)
    random_state: int = setting(0, integer(0, 2**32 - 1))
    adapt_after: int | None = setting(8192, optional(integer(1)))

    def __post_init__(self) -> None:
        """Check the fields, then that they suit the kind."""
        Section.__post_init__(self)  # super() fails, as dataclass slots create a new class
        for entry in fields(self):
            if entry.name not in self._names and getattr(self, entry.name) != entry.default:
                (other,) = _OF_KIND.keys() - {self.kind}
                raise SettingsError(
                    f"setting learner.{entry.name}: expected no value with learner.kind = "
                    f"{self.kind!r}, as it is of the kind {other!r}"
                )
        if self.kind == "stacked":
            self._check_stacked()

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the chosen kind, by name."""
        names = [entry.name for entry in fields(self) if entry.name in self._names]
        return {name: getattr(self, name) for name in names if name != "kind"}

    @property
    def _names(self) -> tuple[str, ...]:
        return ("kind", *_OF_ALL_KINDS, *_OF_KIND[self.kind])

    def _check_stacked(self) -> None:
        if self.max_nodes is None or self.max_nodes < _FEWEST_STACKED_NODES:
            raise SettingsError(
                f"setting learner.max_nodes: expected at least {_FEWEST_STACKED_NODES} with kind "
                f"stacked, got {short(self.max_nodes)}"
            )
