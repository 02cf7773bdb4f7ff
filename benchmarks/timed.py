"""Generated sequences with faults that show only in time, some of them held out from choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .datasets import Array

FIELDS = 6
FIRST_FAULT = 4000
"""Records before the first fault."""

GAP = 800
"""Records from the start of one fault to the next."""

KNOWN = 500
"""Records of a regime before it is known."""

LENGTH = 60
"""Records of a fault that lasts."""


@dataclass(frozen=True)
class Sequence:
    """Records ``x`` (n, d) in order; ``lasting`` and ``single`` (n,) are faults of two kinds."""

    x: Array
    lasting: NDArray[np.bool_]
    single: NDArray[np.bool_]


Base = Callable[[np.random.Generator, int], Array]


def autoregressive(rng: np.random.Generator, n: int) -> Array:
    """Draw a vector autoregression whose fields are correlated."""
    return recursive(rng, n, 0.9)


def slow(rng: np.random.Generator, n: int) -> Array:
    """Draw fields that hardly move from one record to the next."""
    return recursive(rng, n, 0.98)


def recursive(rng: np.random.Generator, n: int, keep: float) -> Array:
    noise = rng.normal(size=(n, FIELDS)) @ (
        np.eye(FIELDS) + 0.5 * rng.normal(size=(FIELDS, FIELDS))
    )
    x = np.zeros((n, FIELDS))
    for t in range(1, n):
        x[t] = keep * x[t - 1] + noise[t]
    return x


def seasonal(rng: np.random.Generator, n: int) -> Array:
    """Draw waves of one period at different phases, with noise."""
    angle = 2 * np.pi * np.arange(n)[:, None] / 500 + rng.uniform(0, 2 * np.pi, FIELDS)
    return np.asarray(2.0 * np.sin(angle) + 0.5 * rng.normal(size=(n, FIELDS)))


def two_waves(rng: np.random.Generator, n: int) -> Array:
    """Draw waves of two periods, with noise that has a memory."""
    time = np.arange(n)[:, None]
    waves = sum(
        np.sin(2 * np.pi * time / period + rng.uniform(0, 2 * np.pi, FIELDS))
        for period in (1440, 90)
    )
    return np.asarray(waves + 0.2 * recursive(rng, n, 0.5))


def switching(rng: np.random.Generator, n: int) -> Array:
    """Draw from one of three regimes for some time, then from another."""
    regime = regimes(rng, n)
    return np.asarray(3.0 * rng.normal(size=(3, FIELDS))[regime] + rng.normal(size=(n, FIELDS)))


def regimes(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """Draw the regime (n,) of each record."""
    change = rng.random(n) < 1 / 300
    return rng.integers(3, size=n)[np.maximum.accumulate(np.arange(n) * change)]


def is_known(rng: np.random.Generator, n: int) -> NDArray[np.bool_]:
    """Tell which records of the switching sequence have had `KNOWN` of their regime before."""
    regime = regimes(rng, n)
    before = np.array([np.cumsum(regime == own) for own in range(3)])[regime, np.arange(n)]
    return np.asarray(before > KNOWN)


def drifting(rng: np.random.Generator, n: int) -> Array:
    """Draw fields whose levels walk by a deviation within 10,000 records."""
    x = recursive(rng, n, 0.5)
    return np.asarray(x + 0.01 * x.std(axis=0) * np.cumsum(rng.normal(size=x.shape), axis=0))


def ageing(rng: np.random.Generator, n: int) -> Array:
    """Draw fields whose levels rise steadily, by a deviation within 8,000 records."""
    x = recursive(rng, n, 0.7)
    return np.asarray(x + x.std(axis=0) * np.arange(n)[:, None] / 8000)


def memoryless(rng: np.random.Generator, n: int) -> Array:
    """Draw correlated records that do not depend on each other."""
    return recursive(rng, n, 0.0)


DEVELOPMENT: Mapping[str, Base] = {
    "autoregressive": autoregressive, "seasonal": seasonal, "memoryless": memoryless,
    "drifting": drifting,
}  # fmt: skip
"""Families that choices may be made on."""

HELD_OUT: Mapping[str, Base] = {
    "slow": slow, "two waves": two_waves, "switching": switching, "ageing": ageing,
}  # fmt: skip
"""Families to report on."""


def with_faults(base: Base, rng: np.random.Generator, n: int) -> Sequence:
    """Draw a sequence, and put faults of each kind into it by turns."""
    x = base(rng, n)
    spread, lasting, single = (
        x[:FIRST_FAULT].std(axis=0),
        np.zeros(n, np.bool_),
        np.zeros(n, np.bool_),
    )
    steps = np.diff(x[:FIRST_FAULT], axis=0).std(axis=0)
    for number, start in enumerate(range(FIRST_FAULT, n - GAP, GAP)):
        field, part = rng.integers(FIELDS), slice(start, start + LENGTH)
        sign = rng.choice([-1.0, 1.0])
        kind = number % 5
        if kind == 0:  # stuck
            x[part, field] = x[start, field]
        elif kind == 1:  # level shift
            x[part, field] += 1.5 * sign * spread[field]
        elif kind == 2:  # more variance
            x[part, field] += 2.0 * steps[field] * rng.normal(size=LENGTH)
        elif kind == 3:  # lost correlation: the field runs as it did some other time
            x[part, field] = x[start - 700 : start - 700 + LENGTH, field]
        else:  # single records that are far from the ones before
            x[start : start + LENGTH : 20, field] += 5.0 * sign * steps[field]
        lasting[part] = kind < 4
        single[start : start + LENGTH : 20] = kind == 4
    return Sequence(x, lasting, single)
