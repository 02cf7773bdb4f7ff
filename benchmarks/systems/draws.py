"""What the processes of systems are made of: memory, states, lags, on and off, dead bands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from benchmarks.datasets import Array

Codes = NDArray[np.int64]

System = Callable[[np.random.Generator, int], Array]
"""Takes a generator and the number of records n; draws parameters, then records (n, d)."""

DAY = 1_440
"""Records of a day, one a minute."""

LIFE = 60_000
"""Records until what leaks or ages is replaced."""


def memory(rng: np.random.Generator, n: int, keep: float) -> Array:
    """Draw a stationary sequence (n,) of unit variance that keeps a share of its last value."""
    start = [keep * rng.normal()]
    return np.asarray(lfilter([np.sqrt(1 - keep**2)], [1, -keep], rng.normal(size=n), zi=start)[0])


def wander(rng: np.random.Generator, n: int, keep: float, size: float) -> Array:
    """Draw a positive factor (n,) around 1 whose logarithm has a memory, and such a deviation."""
    return np.asarray(np.exp(size * memory(rng, n, keep)), np.float64)


def age(n: int) -> Codes:
    """Count the records (n,) since something was new: it is replaced at the end of its life."""
    return np.arange(n) % LIFE


def settle(target: Array, keep: float) -> Array:
    """Follow a target (n,) with a lag, as a temperature or a turning mass does."""
    return np.asarray(lfilter([1 - keep], [1, -keep], target, zi=[keep * target[0]])[0])


def sojourns(rng: np.random.Generator, n: int, records: Array) -> Codes:
    """Draw states (n,); each lasts so many records in the mean, then another comes."""
    state = np.cumsum(rng.integers(1, len(records), size=n)) % len(records)
    lasts = 1 + rng.exponential(records[state]).astype(np.int64)
    needed = np.cumsum(lasts) - lasts < n
    return np.repeat(state[needed], lasts[needed])[:n]


def runs(n: int, starts: Codes, lasts: Codes) -> NDArray[np.bool_]:
    """Tell which records (n,) are within a run, of those that start there and last so long."""
    change = np.zeros(n + 1)
    np.add.at(change, np.minimum(starts, n), 1.0)
    np.add.at(change, np.minimum(starts + lasts, n), -1.0)
    return np.asarray(np.cumsum(change[:n]) > 0)


def events(rng: np.random.Generator, rate: Array, records: tuple[float, float]) -> Array:
    """Draw 1 (n,) while an event of a time within bounds lasts, else 0; they begin at a rate."""
    starts = np.flatnonzero(rng.random(len(rate)) < rate)
    lasts = rng.uniform(*records, len(starts)).astype(np.int64)
    return runs(len(rate), starts, lasts).astype(np.float64)


def dead_band(x: Array, band: float) -> Array:
    """Report a value (n,) anew only when it has left a band around the one reported last."""
    reported = x.copy()
    for t in range(1, len(x)):
        if abs(x[t] - reported[t - 1]) < band:
            reported[t] = reported[t - 1]
    return reported


def noisy(rng: np.random.Generator, x: Array, share: float) -> Array:
    """Multiply values by log-normal noise of about so large a share."""
    return np.asarray(x * np.exp(share * rng.normal(size=np.shape(x))))


def hour_wave(n: int, period: int, peak: float) -> Array:
    """Give a wave (n,) between -1 and 1 whose top is at a part of the period."""
    return np.asarray(np.cos(2 * np.pi * (np.arange(n) / period - peak)))
