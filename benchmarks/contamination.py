"""Labelled streams: usual records with anomalies of several kinds among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .datasets import Array
from .families import DEVELOPMENT, HELD_OUT, Family

Kind = Callable[[np.random.Generator, Array, Array], Array]
"""Takes usual rows (k, d) and the whole stream (n, d); gives anomalies (k, d)."""


@dataclass(frozen=True)
class Stream:
    """Records ``x`` (n, d) of which those with ``label`` (n,) are anomalies."""

    name: str
    x: Array
    label: NDArray[np.bool_]


def spike(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Move one field by six to twelve deviations."""
    far = rng.uniform(6, 12, len(rows)) * rng.choice([-1.0, 1.0], len(rows))
    one = np.arange(rows.shape[1]) == rng.integers(rows.shape[1], size=(len(rows), 1))
    return rows + one * far[:, None] * pool.std(axis=0)


def shift(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Move a third of the fields by two to four deviations."""
    far = rng.uniform(2, 4, rows.shape) * rng.choice([-1.0, 1.0], rows.shape)
    return rows + some(rng, rows, 1 / 3) * far * pool.std(axis=0)


def swap(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Take a third of the fields from another record: each usual, but not together."""
    other = pool[rng.integers(len(pool), size=len(rows))]
    return np.where(some(rng, rows, 1 / 3), other, rows)


def scatter(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Take each field from a record of its own."""
    return np.take_along_axis(pool, rng.integers(len(pool), size=rows.shape), axis=0)


def dropout(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Set a field to a value well below all its usual ones."""
    low = pool.min(axis=0) - pool.std(axis=0)
    one = np.arange(rows.shape[1]) == rng.integers(rows.shape[1], size=(len(rows), 1))
    return np.where(one, low, rows)


def mirror(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Turn half of the fields over, within their range."""
    turned = pool.min(axis=0) + pool.max(axis=0) - rows
    return np.where(some(rng, rows, 1 / 2), turned, rows)


def between(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Take the mean of two records, as smoothing across a change does."""
    return (rows + pool[rng.integers(len(pool), size=len(rows))]) / 2


def inflate(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Take all fields twice to three times as far from their medians."""
    median = np.median(pool, axis=0)
    return median + rng.uniform(2, 3, (len(rows), 1)) * (rows - median)


def stuck(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Hold a third of the fields at their medians."""
    return np.where(some(rng, rows, 1 / 3), np.median(pool, axis=0), rows)


def noise(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Add noise of two deviations to all fields."""
    return rng.normal(rows, 2.0 * pool.std(axis=0))


def miswire(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Set a third of the fields to the value of the field before them, in their own units."""
    mean, deviation = pool.mean(axis=0), pool.std(axis=0)
    before = np.roll((rows - mean) / deviation, 1, axis=1)
    return np.where(some(rng, rows, 1 / 3), mean + before * deviation, rows)


def stretch(rng: np.random.Generator, rows: Array, pool: Array) -> Array:
    """Scale a third of the fields by 1.5 to 2.5, each by its own."""
    return np.where(some(rng, rows, 1 / 3), rng.uniform(1.5, 2.5, rows.shape) * rows, rows)


def some(rng: np.random.Generator, rows: Array, share: float) -> NDArray[np.bool_]:
    """Choose a share of each row's fields, at least one."""
    order = rng.permuted(np.tile(np.arange(rows.shape[1]), (len(rows), 1)), axis=1)
    return order < max(1, round(share * rows.shape[1]))


DEVELOPMENT_KINDS: tuple[tuple[Kind, ...], ...] = (
    (spike, shift, swap, scatter),
    (dropout, mirror, between, inflate),
)
HELD_OUT_KINDS: tuple[Kind, ...] = (stuck, noise, miswire, stretch)

SHAPES = ((3, 0.1), (10, 0.01), (30, 0.001), (100, 0.01))
"""Fields, and the share of anomalies."""


def contaminate(
    name: str, usual: Array, share: float, kinds: tuple[Kind, ...], rng: np.random.Generator
) -> Stream:
    """Put anomalies of all kinds, in equal parts, at random places of a stream."""
    x, label = usual.copy(), np.zeros(len(usual), np.bool_)
    places = rng.choice(len(usual), size=max(len(kinds), round(share * len(usual))), replace=False)
    label[places] = True
    for kind, at in zip(kinds, np.array_split(places, len(kinds)), strict=True):
        x[at] = kind(rng, usual[at], usual)
    return Stream(name, x, label)


def streams(
    families: Mapping[str, Family], kinds: tuple[Kind, ...], n: int, seeds: int, first: int = 0
) -> Iterator[Stream]:
    """Generate the labelled streams of some families, the same at every call.

    Families are numbered from the first; its number is part of what seeds a stream.
    """
    for number, (name, family) in enumerate(families.items(), first):
        for d, share in SHAPES:
            for seed in range(seeds):
                rng = np.random.default_rng([number, d, seed, len(kinds)])
                yield contaminate(
                    f"{name}, {d} fields, {share:.1%}", family(rng, n, d), share, kinds, rng
                )


def development(n: int, seeds: int) -> Iterator[Stream]:
    """Streams that defaults may be chosen on."""
    for families, kinds in zip(DEVELOPMENT, DEVELOPMENT_KINDS, strict=True):
        yield from streams(families, kinds, n, seeds)


def held_out(n: int, seeds: int) -> Iterator[Stream]:
    """Streams to report on; neither their records nor their anomalies are like the others."""
    return streams(HELD_OUT, HELD_OUT_KINDS, n, seeds, first=sum(map(len, DEVELOPMENT)))
