"""MStream, for records of numbers and categories.

Bhatia, Jain, Li, Kumar and Hooi, "MStream: Fast Anomaly Detection in Multi-Aspect Streams", 2021,
with the defaults of its authors' code: two hash functions of 1,024 buckets, and current counts that
fade to .6 with each tick of the clock.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.datasets import Array

ROWS, BUCKETS, FADING = 2, 1024, 0.6
PRIME = 2_147_483_647
"""Of the hash functions, which are linear."""

TICK = 256
"""Records of a tick, as the streams have no clock: a learning batch of ours."""


class Counts:
    """How often something came, in this tick (recent ones count less) and in all, by bucket."""

    def __init__(self) -> None:
        self._current, self._total = np.zeros((2, ROWS, BUCKETS))

    def score(self, buckets: Array, ticks: int) -> float:
        """Count one more in a bucket of each row; return how far it is from its mean of a tick.

        The statistic of the chi-squared test, of the least count.
        """
        at = np.arange(ROWS), buckets
        self._current[at] += 1.0
        self._total[at] += 1.0
        current, total = self._current[at].min(), self._total[at].min()
        if ticks < 2:
            return 0.0
        return float((current - total / ticks) ** 2 * ticks**2 / (total * (ticks - 1)))

    def fade(self) -> None:
        """Begin the next tick."""
        self._current *= FADING


def mstream(numbers: Array, categories: Array) -> Array:
    """Score records (n,) as they come, high = anomalous: their fields, and each record as one."""
    d, c = numbers.shape[1], categories.shape[1]
    counts = [Counts() for _ in range(d + c + 1)]
    scores = np.zeros(len(numbers))
    for i, buckets in enumerate(_buckets(numbers, categories)):
        if i > 0 and i % TICK == 0:
            for each in counts:
                each.fade()
        ticks = 1 + i // TICK
        each_score = (of.score(at, ticks) for of, at in zip(counts, buckets, strict=True))
        scores[i] = np.log1p(sum(each_score))
    return scores


def _buckets(numbers: Array, categories: Array) -> Iterator[Array]:
    """Yield the buckets (d + c + 1, rows) of each record: of its fields, then of all together."""
    rng = np.random.default_rng(0)
    factors = rng.integers(1, PRIME, (2, ROWS, categories.shape[1] + 1))
    hashed = (categories.astype(np.int64)[:, None] * factors[0, :, 1:] + factors[1, :, 1:]) % PRIME
    directions = rng.normal(size=(ROWS, int(np.log2(BUCKETS)), numbers.shape[1]))
    scaled = _scaled(numbers)
    bits = np.einsum("rkd,nd->nrk", directions, scaled) > 0
    of_numbers = bits @ (1 << np.arange(bits.shape[2]))
    whole = (of_numbers + hashed.sum(axis=2)) % BUCKETS
    alone = np.minimum((scaled * BUCKETS).astype(np.int64), BUCKETS - 1)
    for i in range(len(numbers)):
        fields = np.repeat(alone[i][:, None], ROWS, axis=1)
        yield np.vstack([fields, hashed[i].T % BUCKETS, whole[i]])


def _scaled(numbers: Array) -> Array:
    """Return logarithms of numbers between the least and the largest one so far, from 0 to 1."""
    logs = np.sign(numbers) * np.log1p(np.abs(numbers))
    least, most = np.minimum.accumulate(logs), np.maximum.accumulate(logs)
    width = np.where(most > least, most - least, 1.0)
    return np.asarray((logs - least) / width)
