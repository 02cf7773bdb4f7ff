"""Streams of usual records, in families: some to choose defaults on, others to report on.

Each takes a generator, the number of records n and of fields d, and gives rows (n, d).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.stats import norm

from .datasets import Array

Family = Callable[[np.random.Generator, int, int], Array]

N_CLUSTERS = 6
N_REGIMES = 4
SOJOURN = 500
"""Records that a regime lasts in the mean."""
PERIOD = 2_000
"""Records of one cycle."""


def factors(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw correlated Gaussians: a third as many factors as fields, and noise of its own each."""
    k = max(1, d // 3)
    loadings = rng.normal(size=(k, d)) / np.sqrt(k)
    return rng.normal(size=(n, k)) @ loadings + rng.uniform(0.1, 0.5, d) * rng.normal(size=(n, d))


def clusters(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw Gaussian clusters of different size, place, width and correlation."""
    member = rng.choice(N_CLUSTERS, size=n, p=rng.dirichlet(np.full(N_CLUSTERS, 3.0)))
    centres = 3.0 * rng.normal(size=(N_CLUSTERS, d))
    rows = np.stack([rng.uniform(0.3, 1.2) * factors(rng, n, d) for _ in range(N_CLUSTERS)])
    return np.asarray(centres[member] + rows[member, np.arange(n)])


def heavy_tails(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw correlated fields of Student's t with 3 degrees of freedom, the tails in common."""
    return factors(rng, n, d) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)


def discrete(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw flags, codes, and numbers that are often zero, all of which depend on each other."""
    rows = factors(rng, n, d)
    kind = np.arange(d) % 4
    rows[:, kind == 0] = rows[:, kind == 0] > 0.8
    rows[:, kind == 1] = np.round(2.0 * rows[:, kind == 1])
    rows[:, kind == 2] = np.maximum(rows[:, kind == 2], 0.0)
    return rows


def regimes(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw from one of a few regimes for some time, then from another."""
    changes = rng.random(n) < 1 / SOJOURN
    regime = rng.integers(N_REGIMES, size=n)[np.maximum.accumulate(np.arange(n) * changes)]
    centres = rng.normal(size=(N_REGIMES, d)) * 2.0
    rows = np.stack([factors(rng, n, d) for _ in range(N_REGIMES)])
    return np.asarray(centres[regime] + rows[regime, np.arange(n)])


def rings(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw pairs of fields on noisy circles, whose angles are one angle and its multiples."""
    angle = rng.uniform(0, 2 * np.pi, size=n)
    columns = [np.cos(angle * (1 + k // 2 % 3) + np.pi / 2 * (k % 2)) for k in range(d)]
    return np.column_stack(columns) * rng.uniform(1, 5, d) + 0.15 * rng.normal(size=(n, d))


def skewed(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw a Gaussian copula with log-normal, exponential, uniform and beta-like margins."""
    z = factors(rng, n, d)
    z /= z.std(axis=0)
    u = np.clip(norm.cdf(z), 1e-12, 1 - 1e-12)
    margins = np.stack([np.exp(z), -np.log1p(-u), u, u**4])
    return np.asarray(margins[np.arange(d) % 4, :, np.arange(d)].T)


def counts(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw counts, of rates that rise and fall together; every third field is mostly zero."""
    load = np.exp(0.5 * rng.normal(size=(n, max(1, d // 5))))
    base = np.where(np.arange(d) % 3 == 2, 0.2, rng.uniform(3, 60, d))
    return rng.poisson(base * load[:, np.arange(d) % load.shape[1]]).astype(np.float64)


def cycles(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw fields that follow a day's cycle, each with its phase, and drift slowly."""
    time = np.arange(n)[:, None]
    wave = np.sin(2 * np.pi * (time / PERIOD + rng.random(d))) * rng.uniform(0.5, 2, d)
    drift = rng.normal(size=d) * time / (10 * PERIOD)
    return wave + drift + 0.5 * factors(rng, n, d)


def groups(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw small groups of fields with clusters of their own, independent of each other."""
    return np.column_stack([clusters(rng, n, min(4, d - start)) for start in range(0, d, 4)])


def walks(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw walks that return to their mean, some soon and some late, with correlated steps."""
    memory = rng.uniform(0.8, 0.99, d)
    rows = factors(rng, n, d)
    rows[0] /= np.sqrt(1 - memory**2)
    for before, row in pairwise(rows):
        row += memory * before
    return rows


def shares(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw shares of a whole, in proportions that go by a hidden state of each record."""
    parts = rng.gamma(rng.uniform(1, 10, (N_REGIMES, d))[rng.integers(N_REGIMES, size=n)])
    return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def bends(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw products, squares, distances and steps of a few hidden factors, and a little noise."""
    k = max(2, d // 4)
    hidden = rng.normal(size=(k, n))
    one = rng.integers(k, size=d)
    a, b = hidden[one], hidden[(one + rng.integers(1, k, size=d)) % k]
    shapes = np.stack([a * b, a**2, np.abs(a - b), np.where(a > 0, b, -1.0)])
    return shapes[np.arange(d) % 4, np.arange(d)].T + 0.2 * rng.normal(size=(n, d))


def loads(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw fields that rise with one load, each bent in its way, and whose noise grows with it."""
    load = rng.beta(2, 3, size=(n, 1))
    noise = (0.02 + 0.3 * load) * rng.normal(size=(n, d))
    return rng.uniform(1, 10, d) * (load ** rng.uniform(0.5, 2, d) + noise)


def parities(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw fields of two states; a state is mostly whether those of the two before it differ."""
    on = rng.random((n, d)) < 0.5
    for k in range(2, d):
        on[:, k] = on[:, k - 1] ^ on[:, k - 2] ^ (rng.random(n) < 0.05)
    return rng.uniform(1, 4, d) * on + rng.uniform(0.1, 0.3, d) * rng.normal(size=(n, d))


DEVELOPMENT: tuple[dict[str, Family], ...] = (
    {
        "clusters": clusters,
        "correlations": factors,
        "heavy tails": heavy_tails,
        "discrete": discrete,
        "regimes": regimes,
    },
    {
        "rings": rings,
        "skewed": skewed,
        "counts": counts,
        "cycles": cycles,
        "groups": groups,
    },
)
"""Families that defaults may be chosen on, those with the same kinds of anomalies together."""

HELD_OUT: dict[str, Family] = {
    "walks": walks,
    "shares": shares,
    "bends": bends,
    "loads": loads,
    "parities": parities,
}
"""Families to report on, and for nothing else."""
