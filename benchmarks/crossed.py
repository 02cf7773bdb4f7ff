"""Records whose numbers depend on several categories together, with faults that only these show.

A fault's numbers are those of a record with another value of one category: a cache's hit as slow as
a miss. Each number is usual for each of its categories alone. ``CHOICES`` served to choose by;
``HELD_OUT`` did not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .mixed import ANOMALIES, FloatArray, IntArray

Numbers = Callable[[IntArray], FloatArray]
Family = Callable[[np.random.Generator, int], tuple[IntArray, int, Numbers]]
"""Draws categories (n, c), which of them is another one in faults, and what draws their numbers."""


class Crossed(NamedTuple):
    """Records of numbers and categories (n, d + c), the last ``c`` columns, and the faults (n,)."""

    rows: FloatArray
    c: int
    is_fault: np.ndarray[tuple[int], np.dtype[np.bool_]]


def crossed(family: Family, seed: int, n: int) -> Crossed:
    """Draw ``n`` records of a family, with faults after the first sixth."""
    rng = np.random.default_rng([778, seed])
    categories, other, draw = family(rng, n)
    numbers = draw(categories)
    at = rng.permutation(np.arange(n // 6, n))[: int(ANOMALIES * n)]
    changed = categories[at]
    k = categories[:, other].max() + 1
    changed[:, other] = (changed[:, other] + rng.integers(1, k, len(at))) % k
    numbers[at] = draw(changed)
    return Crossed(
        np.column_stack([numbers, categories]), categories.shape[1], np.isin(np.arange(n), at)
    )


def cached(rng: np.random.Generator, n: int) -> tuple[IntArray, int, Numbers]:
    """Services and a cache: a hit is 6 spreads quicker than a miss of the same service."""
    level = rng.normal(0.0, 6.0, 8)

    def numbers(of: IntArray) -> FloatArray:
        latency = level[of[:, 0]] - 6.0 * of[:, 1] + rng.normal(size=len(of))
        return np.column_stack([latency, rng.normal(size=len(of))])

    return np.column_stack([rng.integers(8, size=n), rng.random(n) < 0.6]).astype(int), 1, numbers


def answered(rng: np.random.Generator, n: int) -> tuple[IntArray, int, Numbers]:
    """Services and statuses: each pair has a level of its own."""
    level = rng.normal(0.0, 6.0, (6, 4))

    def numbers(of: IntArray) -> FloatArray:
        latency = level[of[:, 0], of[:, 1]] + rng.normal(size=len(of))
        return np.column_stack([latency, rng.normal(size=len(of))])

    status = rng.choice(4, n, p=[0.7, 0.1, 0.1, 0.1])
    return np.column_stack([rng.integers(6, size=n), status]), 1, numbers


def signed(rng: np.random.Generator, n: int) -> tuple[IntArray, int, Numbers]:
    """Modes: two numbers rise together in one, and one falls as the other rises in the next."""

    def numbers(of: IntArray) -> FloatArray:
        first = rng.normal(size=len(of))
        second = np.where(of[:, 0] == 0, first, -first) + rng.normal(0.0, 0.2, len(of))
        return np.column_stack([first, second])

    return np.column_stack([rng.integers(2, size=n), rng.integers(3, size=n)]), 0, numbers


def staged(rng: np.random.Generator, n: int) -> tuple[IntArray, int, Numbers]:
    """Services, regions and tiers: each adds to two numbers, which have noise in common."""
    levels = [rng.normal(0.0, 5.0, (k, 2)) for k in (10, 4, 3)]

    def numbers(of: IntArray) -> FloatArray:
        noise = rng.normal(size=(len(of), 2))
        noise[:, 1] = 0.8 * noise[:, 0] + 0.6 * noise[:, 1]
        return np.asarray(sum(level[of[:, f]] for f, level in enumerate(levels)) + noise)

    weights = 1.0 / np.arange(1, 11)
    service = rng.choice(10, n, p=weights / weights.sum())
    return np.column_stack([service, rng.integers(4, size=n), rng.integers(3, size=n)]), 1, numbers


def hosted(rng: np.random.Generator, n: int) -> tuple[IntArray, int, Numbers]:
    """Many hosts and jobs: hosts are slower or quicker, jobs long or short and vary more or less.

    A host has few of the jobs; what the log says is of no interest.
    """
    host, job = rng.normal(0.0, 3.0, 40), rng.normal(0.0, 8.0, 12)
    spread = rng.uniform(0.5, 2.0, 12)

    def numbers(of: IntArray) -> FloatArray:
        noise = spread[of[:, 1]] * rng.normal(size=len(of))
        return np.column_stack([host[of[:, 0]] + job[of[:, 1]] + noise, rng.normal(size=len(of))])

    where = rng.integers(40, size=n)
    which = (where + rng.integers(5, size=n) ** 2) % 12
    return np.column_stack([where, which, rng.integers(4, size=n)]), 1, numbers


def branched(rng: np.random.Generator, n: int) -> tuple[IntArray, int, Numbers]:
    """Projects, branches and triggers: minutes by project and branch, tests by project alone."""
    minutes, tests = rng.normal(0.0, 5.0, (12, 3)), rng.uniform(0.0, 60.0, 12)

    def numbers(of: IntArray) -> FloatArray:
        noise = rng.normal(size=(len(of), 2))
        return np.column_stack([minutes[of[:, 0], of[:, 1]], tests[of[:, 0]]]) + noise

    weights = 1.0 / np.arange(1, 13)
    project = rng.choice(12, n, p=weights / weights.sum())
    branch = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return np.column_stack([project, branch, rng.integers(3, size=n)]), 1, numbers


CHOICES: dict[str, Family] = {f.__name__: f for f in (cached, answered, signed)}

HELD_OUT: dict[str, Family] = {f.__name__: f for f in (staged, hosted, branched)}
