"""Lasting changes at a random place of a system's stream, which are no faults."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.datasets import Array

from .draws import System
from .usual import Usual, usual

WITHIN = (0.3, 0.7)
"""Part of the stream within which the change is."""


@dataclass(frozen=True)
class Changed:
    """Records ``x`` (n, d) of which those from number ``at`` on are after the change."""

    x: Array
    at: int


def changes(system: System, rng: np.random.Generator, n: int) -> Changed:
    """Draw a stream with a lasting change, of one sort or the other."""
    return (relevelled if rng.random() < 0.5 else redrawn)(system, rng, n)


def redrawn(system: System, rng: np.random.Generator, n: int) -> Changed:
    """Go on with a second draw of the same system, of other parameters."""
    at = place(rng, n)
    return Changed(np.concatenate([system(rng, n)[:at], system(rng, n - at)]), at)


def relevelled(system: System, rng: np.random.Generator, n: int) -> Changed:
    """Change the level and spread of all fields at once, and how often each code is there."""
    at, x = place(rng, n), system(rng, n)
    about = usual(x)
    fields = [changed(rng, about, field, x[at:, field]) for field in range(x.shape[1])]
    return Changed(np.concatenate([x[:at], about.within(np.column_stack(fields))]), at)


def place(rng: np.random.Generator, n: int) -> int:
    """Choose the first record after the change."""
    return int(n * rng.uniform(*WITHIN))


def changed(rng: np.random.Generator, about: Usual, field: int, values: Array) -> Array:
    """Change the values (m,) of a field: other shares of codes, another scale, another level."""
    if about.is_code[field]:
        return mixed(rng, values)
    factor = rng.choice([rng.uniform(0.5, 0.7), rng.uniform(1.5, 2.5)])
    if np.isfinite(about.room[field]):
        return np.asarray(factor * values)
    far = rng.choice([-1.0, 1.0]) * rng.uniform(1, 3) * about.spread[field]
    median = np.median(about.x[:, field])
    return np.asarray(median + far + factor * (values - median))


def mixed(rng: np.random.Generator, values: Array) -> Array:
    """Draw a part of a field's codes (m,) anew, with shares of their own."""
    codes = np.unique(values)
    drawn = rng.choice(codes, size=len(values), p=rng.dirichlet(np.ones(len(codes))))
    return np.where(rng.random(len(values)) < rng.uniform(0.2, 0.5), drawn, values)
