"""Records of numbers and categories, as systems write them, with anomalies of three kinds.

Each family draws records in which categories depend on each other and numbers on categories. An
anomaly is a category that hardly ever comes (``rare value``), two categories that never come
together though each is usual (``rare pair``), or a number that is usual for another category
(``other number``). ``CHOICES`` served to choose by; ``HELD_OUT`` did not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

KINDS = ("rare value", "rare pair", "other number")

ANOMALIES, FEW = 0.005, 0.0005
"""Shares of the records that are anomalies: so many that areas are sure, and so few that an alarm
rate of 0.001 can tell them from usual records."""


class Mixed(NamedTuple):
    """Records with labels.

    Attributes
    ----------
    numbers
        (n, d).
    categories
        (n, c), as numbers that stand for values.
    kind
        The kind of the anomaly (n,), an index of ``KINDS``, -1 for a usual record.
    """

    numbers: FloatArray
    categories: IntArray
    kind: IntArray

    @property
    def rows(self) -> FloatArray:
        """Numbers beside categories (n, d + c)."""
        return np.column_stack([self.numbers, self.categories])


Family = Callable[[np.random.Generator, int], tuple[FloatArray, IntArray]]


def mixed(family: Family, seed: int, n: int, anomalies: float = ANOMALIES) -> Mixed:
    """Draw ``n`` records of a family, with anomalies after the first sixth."""
    rng = np.random.default_rng([777, seed])
    numbers, categories = family(rng, n)
    kind = np.full(n, -1)
    candidates = iter(rng.permutation(np.arange(n // 6, n)).tolist())
    for i in range(int(anomalies * n)):
        which = i % len(KINDS)
        spoilt = (r for r in candidates if _spoil(rng, numbers, categories, r, KINDS[which]))
        kind[next(spoilt)] = which
    return Mixed(numbers, categories, kind)


def _spoil(
    rng: np.random.Generator, numbers: FloatArray, categories: IntArray, at: int, kind: str
) -> bool:
    """Turn a record into an anomaly, by what other records have; tell whether that could be done.

    Any value may be usual beside those of the record, so that no pair is rare.
    """
    other = int(rng.integers(len(numbers)))
    f = int(rng.integers(categories.shape[1]))
    if kind == "rare value":
        categories[at, f] = 1000 + rng.integers(3)
    elif kind == "rare pair":
        for _ in range(200):  # a value that comes with one of the others never, or hardly ever
            value = categories[int(rng.integers(len(numbers))), f]
            others = np.delete(np.arange(categories.shape[1]), f)
            same = (categories[:, f] == value)[:, None] & (
                categories[:, others] == categories[at, others]
            )
            if same.sum(axis=0).min(initial=len(numbers)) <= len(numbers) // 5000:
                categories[at, f] = value
                return True
        return False
    else:
        spread = np.array([[_range(x, c) for x in numbers.T] for c in categories.T])
        g, j = np.unravel_index(spread.argmax(), spread.shape)
        own = np.median(numbers[categories[:, g] == categories[at, g], j])
        for _ in range(200):  # the record whose number is farthest from those of the category
            candidate = int(rng.integers(len(numbers)))
            if abs(numbers[candidate, j] - own) > abs(numbers[other, j] - own):
                other = candidate
        numbers[at, j] = numbers[other, j]
    return True


def _range(x: FloatArray, category: IntArray) -> float:
    """Return how far the medians of a number are apart, in its deviations."""
    medians = [np.median(x[category == value]) for value in np.unique(category)]
    return float(np.ptp(medians) / (x.std() + 1e-12))


def _pick(rng: np.random.Generator, table: FloatArray, given: IntArray) -> IntArray:
    """Draw one column for each of ``given`` (n,), rows of a table of probabilities."""
    bounds = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)
    return np.asarray((rng.random((len(given), 1)) > bounds[given]).sum(axis=1), np.int64)


def _zipf(rng: np.random.Generator, k: int, n: int, power: float = 1.0) -> IntArray:
    weights = 1.0 / np.arange(1, k + 1) ** power
    return rng.choice(k, n, p=weights / weights.sum())


def _sparse(rng: np.random.Generator, rows: int, columns: int, most: int) -> FloatArray:
    """Return a table in which each row has up to ``most`` columns that come."""
    table = np.zeros((rows, columns))
    for row in table:
        row[rng.permutation(columns)[: rng.integers(1, most + 1)]] = rng.uniform(0.2, 1.0)
    return table


def web(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """Requests: service, method and status; latency and bytes."""
    service = _zipf(rng, 8, n)
    method = _pick(rng, _sparse(rng, 8, 4, 2), service)
    status = _pick(rng, np.array([[0.97, 0.01, 0.02, 0.0], [0.5, 0.48, 0.02, 0.0]] * 4), service)
    latency = np.exp(rng.normal(rng.uniform(2, 7, 8)[service], 0.3))
    size = np.exp(rng.normal(rng.uniform(4, 10, 4)[method], 0.6))
    return np.column_stack([np.log(latency), np.log(size)]), np.column_stack(
        [service, method, status]
    )


def payments(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """Payments: merchant, country, currency; amount, fee, items."""
    merchant, country = _zipf(rng, 12, n), _zipf(rng, 20, n)
    currency = _pick(rng, _sparse(rng, 20, 6, 2) ** 3, country)
    amount = rng.normal(rng.uniform(1, 6, 12)[merchant], rng.uniform(0.2, 0.6, 12)[merchant])
    fee = 0.4 * amount + rng.normal(0, 0.1, n)
    return np.column_stack([amount, fee, rng.poisson(3, n)]), np.column_stack(
        [merchant, country, currency]
    )


def rooms(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """A building: room and mode; temperature, power, humidity and two of no interest."""
    room = rng.integers(6, size=n)
    mode = _pick(rng, np.array([[0.7, 0.3, 0.0], [0.0, 0.4, 0.6]] * 3), room)
    temperature = rng.normal(rng.uniform(16, 24, 6)[room], 0.4)
    power = np.abs(rng.normal(np.array([50.0, 900.0, 1400.0])[mode], 40.0))
    humidity = 60 - temperature + rng.normal(0, 2.0, n)
    more = rng.normal(size=(n, 2))
    return np.column_stack([temperature, power, humidity, more]), np.column_stack([room, mode])


def unrelated(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """Categories and numbers that have nothing to do with each other, but for one pair."""
    first = _zipf(rng, 5, n)
    second = _pick(rng, _sparse(rng, 5, 5, 2), first)
    third = _zipf(rng, 9, n)
    numbers = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4))
    numbers[:, 0] += 6.0 * first
    return numbers, np.column_stack([first, second, third])


def daemons(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """A log: host, daemon and level; length of the message and duration."""
    host = _zipf(rng, 40, n, 0.7)
    daemon = _pick(rng, _sparse(rng, 40, 10, 4), host)
    level = _pick(rng, _sparse(rng, 10, 4, 3), daemon)
    length = rng.normal(rng.uniform(20, 200, 10)[daemon], 8.0)
    duration = rng.normal(rng.uniform(0, 5, 10)[daemon], rng.uniform(0.2, 0.8, 10)[daemon])
    return np.column_stack([length, duration]), np.column_stack([host, daemon, level])


def parcels(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """Parcels: depot, carrier and class; weight, hours, price."""
    depot, kind = _zipf(rng, 15, n), _zipf(rng, 4, n)
    carrier = _pick(rng, _sparse(rng, 15, 5, 3), depot)
    weight = rng.normal(np.array([0.5, 2.0, 3.5, 5.5])[kind], 0.3)
    hours = rng.gamma(20.0, rng.uniform(1, 4, 5)[carrier] / 20.0)
    price = weight + 0.5 * hours + rng.normal(0, 0.2, n)
    return np.column_stack([weight, hours, price]), np.column_stack([depot, carrier, kind])


def calls(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """Calls: plan, cell and direction; duration, signal, hops, jitter."""
    plan, cell = _zipf(rng, 5, n), _zipf(rng, 60, n, 0.5)
    direction = _pick(
        rng,
        np.array(
            [[0.5, 0.5, 0.0], [0.0, 0.3, 0.7], [1.0, 0.0, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]]
        ),
        plan,
    )
    duration = rng.normal(rng.uniform(1, 6, 5)[plan], 0.5)
    signal = rng.normal(rng.uniform(-110, -60, 60)[cell], 3.0)
    more = np.abs(rng.normal(size=(n, 2)))
    return np.column_stack([duration, signal, more]), np.column_stack([plan, cell, direction])


def builds(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """Builds: project, branch and result; minutes and tests."""
    project = _zipf(rng, 25, n)
    branch = _zipf(rng, 3, n)
    result = _pick(rng, np.array([[0.9, 0.1, 0.0], [0.99, 0.01, 0.0], [0.6, 0.3, 0.1]]), branch)
    minutes = rng.normal(rng.uniform(1, 40, 25)[project], rng.uniform(0.5, 2.0, 25)[project])
    tests = rng.normal(rng.uniform(100, 4000, 25)[project], 20.0)
    tests[result == 2] = 0.0
    return np.column_stack([minutes, tests]), np.column_stack([project, branch, result])


CHOICES: dict[str, Family] = {f.__name__: f for f in (web, payments, rooms, unrelated)}

HELD_OUT: dict[str, Family] = {f.__name__: f for f in (daemons, parcels, calls, builds)}
