"""What each mechanism of entities brings: figures of streams without it, less those with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.entities import kinds, population
from faust_oslrau.learner.entities.age_scores import AgeScores
from faust_oslrau.learner.entities.habits import Habits
from faust_oslrau.learner.entities.levels import LONGEST
from faust_oslrau.learner.entities.memory import Memories
from faust_oslrau.learner.protocol import Measured

TEXT = """\
## What each mechanism brings

Differences of the means over the families, three streams of each, with standard errors over the
families; those beyond two are in bold. *Population* is what entities are like, estimated from
their levels and scales; *memories* are those of levels that drift; *habits* how fields go together,
as kinds of records and the entity's own covariance; *ages* the units of scores of young
entities."""

SHOWN = ("1", "2-10", "11-30", "31-100", "> 100", "AP", "its AP", "of young")

Change = tuple[Any, str, Any]


def _network_alone(*arguments: Any) -> Measured:
    """Return the network's density, the fifth argument of `Habits.mix`."""
    found: Measured = arguments[4]
    return found


VARIANTS: Mapping[str, tuple[Change, ...]] = {
    "no population": ((population, "estimate", lambda means, statistics, before: before),),
    "no memories": ((Memories, "best", lambda self: np.full(self._losses.shape[1], LONGEST)),),
    "no habits": (
        (Habits, "mix", _network_alone),
        (Habits, "has_begun", property(lambda self: False)),
        (Habits, "learn", lambda self, rows, usual: None),
    ),
    "one kind": ((kinds, "MOST", 1),),
    "no ages": ((AgeScores, "relate", lambda self, score, slots, fresh: score),),
}
"""Attributes to change, by what is left out."""


def left_out(changes: tuple[Change, ...]) -> ExitStack:
    """Return a context in which attributes are changed."""
    with ExitStack() as stack:
        for target, name, value in changes:
            stack.enter_context(patch.object(target, name, value))
        return stack.pop_all()


Figures = Mapping[str, float | None]


def rows(
    found: Mapping[str, Mapping[str, list[Figures]]], as_it_is: str
) -> Iterator[dict[str, str]]:
    """Yield the rows of a table of figures by variant and family."""
    for variant, families in found.items():
        if variant == as_it_is:
            continue
        row = {"": variant}
        for name in SHOWN:
            each = [
                difference(name, families[family], found[as_it_is][family]) for family in families
            ]
            row[name] = told(
                np.array([d for d in each if d is not None]), 4 if name == "of young" else 2
            )
        yield row


def difference(name: str, without: list[Figures], whole: list[Figures]) -> float | None:
    """Return the mean difference of a figure on the streams of a family that have it."""
    pairs = [(a[name], b[name]) for a, b in zip(without, whole, strict=True)]
    known = [a - b for a, b in pairs if a is not None and b is not None]
    return float(np.mean(known)) if known else None


def told(differences: NDArray[np.float64], digits: int) -> str:
    """Write a mean with its standard error."""
    if len(differences) < 2:
        return "-"
    mean = float(differences.mean())
    error = float(differences.std(ddof=1)) / np.sqrt(len(differences))
    text = f"{mean:+.{digits}f} ± {error:.{digits}f}"
    return f"**{text}**" if abs(mean) > 2 * error > 0 else text
