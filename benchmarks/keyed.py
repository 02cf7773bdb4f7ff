"""Generated streams of many entities, with anomalies that are unusual for their entity only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .datasets import Array

Noise = Callable[[np.random.Generator, tuple[int, int]], Array]

ANOMALIES = 0.005
"""Share of the anomalies of each kind."""

SPIKE = 6.0
"""Deviations of its entity by which a spike lies off."""


ODD = 8.0
"""By how much odd entities differ from the others."""


@dataclass(frozen=True)
class KeyedStream:
    """Records ``x`` (n, d) of entities ``key`` (n,); ``spike`` and ``broken`` (n,) are anomalies.

    A spike is one field off by `SPIKE` deviations of its entity; in a broken record each field is
    that of another record of the entity.
    """

    key: NDArray[np.int64]
    x: Array
    spike: NDArray[np.bool_]
    broken: NDArray[np.bool_]

    @property
    def names(self) -> list[bytes]:
        """The entities as keys of messages."""
        return [b"entity-%d" % key for key in self.key.tolist()]

    @property
    def number(self) -> NDArray[np.int64]:
        """How many records of its entity came before each record (n,)."""
        order = np.argsort(self.key, kind="stable")
        ordered = self.key[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order)) - np.repeat(
            starts, np.diff(np.r_[starts, len(order)])
        )
        return number


def gaussian(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.normal(size=shape)


def student(freedom: float) -> Noise:
    """Return a function that draws values of Student's t."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        return rng.standard_t(freedom, size=shape)

    return draw


def two_states(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Draw records of two states, 5 deviations apart in fields by turns."""
    sign = np.where(np.arange(shape[1]) % 2 == 0, 1.0, -1.0)
    return 0.5 * rng.normal(size=shape) + 2.5 * rng.choice([-1.0, 1.0], (shape[0], 1)) * sign


def even(rng: np.random.Generator, k: int) -> Array:
    return np.full(k, 1.0 / k)


def uneven(rng: np.random.Generator, k: int) -> Array:
    return rng.dirichlet(np.full(k, 0.5))


def power_law(rng: np.random.Generator, k: int) -> Array:
    share = 1.0 / np.arange(1, k + 1)
    return share / share.sum()


def frequent_and_rare(rng: np.random.Generator, k: int) -> Array:
    """Give 40 entities nine records in ten, in very different numbers, and the others one."""
    frequent, rare = rng.dirichlet(np.full(40, 3.0)), rng.dirichlet(np.ones(k - 40))
    return np.concatenate([0.9 * frequent, 0.1 * rare])


def generate(
    rng: np.random.Generator,
    n: int,
    k: int = 200,
    d: int = 6,
    level: float = 3.0,
    spread: float = 0.5,
    kinds: int = 3,
    share: Callable[[np.random.Generator, int], Array] = uneven,
    noise: Noise = gaussian,
    drift: float = 0.0,
    anomalies: float = ANOMALIES,
    odd: int = 0,
) -> KeyedStream:
    """Draw records of ``k`` entities of some kinds, each kind with correlations of its own.

    ``level`` is the deviation of the entities' levels, ``spread`` that of the logarithms of their
    scales, ``drift`` that of a level's steps from record to record, in scales of the entity.
    ``anomalies`` is the share of the anomalies of each kind. Of the first ``odd`` entities, the
    first field's level is off by `ODD` deviations of the others', or its scale is `ODD` times as
    large, by turns.
    """
    mixing = (np.eye(d) + 0.5 * rng.normal(size=(kinds, d, d)))[rng.integers(kinds, size=k)]
    centre, scale = level * rng.normal(size=(k, d)), np.exp(spread * rng.normal(size=(k, d)))
    centre[:odd:2, 0] += ODD * level
    scale[1:odd:2, 0] *= ODD
    key = rng.choice(k, size=n, p=share(rng, k))
    z = noise(rng, (n, d))
    own = np.einsum("nij,nj->ni", mixing[key], z)
    place = rng.random(n)
    spike, broken = place < anomalies, (place >= anomalies) & (place < 2 * anomalies)
    for row in np.flatnonzero(broken):
        others = noise(rng, (d, d))
        own[row] = np.einsum("ij,ij->i", mixing[key[row]], others)
    at, field = np.flatnonzero(spike), rng.integers(d, size=np.count_nonzero(spike))
    deviation = np.sqrt((mixing[key[at], field] ** 2).sum(axis=1))
    own[at, field] += SPIKE * deviation * rng.choice([-1.0, 1.0], len(at))
    if drift > 0.0:
        for entity in range(k):
            rows = key == entity
            own[rows] += drift * rng.normal(size=(np.count_nonzero(rows), d)).cumsum(axis=0)
    return KeyedStream(key, centre[key] + scale[key] * own, spike, broken)


Family = Callable[[np.random.Generator, int], KeyedStream]

DEVELOPMENT: Mapping[str, Family] = {
    "200 entities, 6 fields": partial(generate, k=200),
    "2,000 entities, 6 fields": partial(generate, k=2000),
    "200 entities, 16 fields": partial(generate, k=200, d=16),
    "200 that differ in kind only": partial(generate, k=200, level=0.0, spread=0.0),
}
"""Streams that choices may be made on."""

HELD_OUT: Mapping[str, Family] = {
    "500 entities, 10 fields, 5 kinds": partial(generate, k=500, d=10, kinds=5),
    "power law of frequencies": partial(generate, k=3000, share=power_law),
    "large differences in scale": partial(generate, k=300, level=10.0, spread=1.5, kinds=1),
    "Student's t, 3 degrees of freedom": partial(generate, k=200, noise=student(3.0)),
    "drifting levels": partial(generate, k=100, share=even, drift=0.1),
    "two states": partial(generate, k=200, noise=two_states),
    "200 that do not differ": partial(generate, k=200, level=0.0, spread=0.0, kinds=1),
}
"""Streams to report on."""

_alarming = partial(generate, k=1000, share=frequent_and_rare, anomalies=0.0)

ALARMS_DEVELOPMENT: Mapping[str, Family] = {
    "6 fields, 3 kinds": partial(_alarming, spread=1.0),
    "differ in kind only": partial(_alarming, level=0.0, spread=0.0),
    "two states, 6 fields": partial(_alarming, noise=two_states),
    "Student's t, 5 degrees of freedom": partial(_alarming, noise=student(5.0), spread=1.0),
}
"""Streams without anomalies, of frequent and rare, noisy and quiet entities, for choices."""

ALARMS_HELD_OUT: Mapping[str, Family] = {
    "10 fields, 5 kinds": partial(_alarming, d=10, kinds=5, spread=1.0),
    "scales differ by factors": partial(_alarming, level=10.0, spread=1.5, kinds=1),
    "Student's t, 3 degrees of freedom": partial(_alarming, noise=student(3.0), d=4),
    "drifting levels": partial(_alarming, drift=0.05, spread=1.0),
    "two states, 8 fields": partial(_alarming, noise=two_states, d=8, spread=1.0),
    "do not differ": partial(_alarming, level=0.0, spread=0.0, kinds=1),
}
"""The same, to report on."""

ODD_ENTITIES = 8
_odd = partial(generate, share=even, anomalies=0.0, odd=ODD_ENTITIES)

UNUSUAL: Mapping[str, Family] = {
    "60 entities, 6 fields": partial(_odd, k=60),
    "300 entities, 6 fields": partial(_odd, k=300),
    "300 entities, 16 fields": partial(_odd, k=300, d=16),
    "scales differ by factors": partial(_odd, k=300, spread=1.5),
    "Student's t, 3 degrees of freedom": partial(_odd, k=300, noise=student(3.0)),
    "two states": partial(_odd, k=300, noise=two_states),
}
"""Streams with some entities that are unlike all others, to report on."""
