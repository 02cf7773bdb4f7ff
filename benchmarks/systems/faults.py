"""Faults as systems have them, put into a copy of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.ndimage import maximum_filter1d

from benchmarks.datasets import Array

from .draws import Codes
from .usual import RELATED, Usual, seldom, unseen, usual

FIRST = 2_000
"""Records without faults at the beginning."""

SPACING = 500
"""Least number of records from the end of a fault to the next."""

MOST = 0.05
"""Share of records that faults take up, at most."""

LONE = 0.005
EVERY = 500
SPIKE = 8.0
"""Spreads."""

AFTER_STUCK = 100
"""Records from the end of a stuck field to the burst that follows."""

GROUP = (0.001, 0.004)
"""Least and largest share of records in a group."""

GROUP_WIDTH = (0.02, 0.2)
"""Spreads."""

APART = 50
"""Records around other faults where none of a group is."""


@dataclass(frozen=True)
class Faulty:
    """Records ``x`` (n, d) with faults; ``label`` (n,) is 0 where usual, else a fault's number.

    The fault of number k is of the kind ``kinds[k - 1]``.
    """

    x: Array
    label: Codes
    kinds: tuple[str, ...]


Alter = Callable[[np.random.Generator, Usual, Codes], Array]
"""Takes usual records and places (m,) among them; gives the faulty records (m, d) of there."""


class Kind(NamedTuple):
    """A kind of fault, and the least and largest number of its records."""

    alter: Alter
    shortest: int
    longest: int


def lone(rng: np.random.Generator, about: Usual, at: Codes) -> Array:
    """Put one field far off, or values together that are usual only apart."""
    return (spike if rng.random() < 0.5 else contradiction)(rng, about, at)


def spike(rng: np.random.Generator, about: Usual, at: Codes) -> Array:
    """Move a field by five to ten spreads; a code becomes one that is never seen."""
    rows, field = about.x[at], int(rng.integers(about.x.shape[1]))
    if about.is_code[field]:
        rows[:, field] = unseen(rng, about, field)
    else:
        rows[:, field] += shift(rng, about, field, rng.uniform(5, 10))
    return about.within(rows)


def contradiction(rng: np.random.Generator, about: Usual, at: Codes) -> Array:
    """Take a field's value from a record at the other end of the field that is related to it."""
    field = related_field(rng, about)
    values, partner = about.x[:, field], about.x[:, about.partner[field]]
    low, high = np.quantile(partner, (0.05, 0.95))
    is_high = partner[at[0]] > np.median(partner)
    far = (partner <= low) if is_high else (partner >= high)
    donors = np.flatnonzero(far & (values != values[at[0]]))
    if about.related[field] < RELATED or len(donors) == 0:
        return spike(rng, about, at)
    rows = about.x[at]
    rows[:, field] = values[rng.choice(donors)]
    return rows


def burst(rng: np.random.Generator, about: Usual, at: Codes) -> Array:
    """Move up to a third of the fields by three to six spreads; most codes become a rare one."""
    return displaced(rng, about, at, rng.uniform(3, 6), rng.uniform(0.5, 1))


def stuck(rng: np.random.Generator, about: Usual, at: Codes) -> Array:
    """Hold a field that usually moves at its last value; if none does, at its last unusual one."""
    moving = np.flatnonzero(about.repeats < 0.5)
    field = rng.choice(moving if len(moving) else about.x.shape[1])
    before = about.x[: at[0], field]
    values, counts = np.unique(before, return_counts=True)
    others = before if len(moving) else before[before != values[counts.argmax()]]
    rows = about.x[at]
    rows[:, field] = others[-1] if len(others) else before[-1]
    return rows


def lasting(rng: np.random.Generator, about: Usual, at: Codes) -> Array:
    """Move up to a third of the fields by 1.5 to 4 spreads; a rare code is there too often."""
    return displaced(rng, about, at, rng.uniform(1.5, 4), rng.uniform(0.2, 0.6))


def creep(rng: np.random.Generator, about: Usual, at: Codes) -> Array:
    """Drift to two to four spreads in a field; a rare code is there more and more often."""
    rows, field, rising = (
        about.x[at],
        int(rng.integers(about.x.shape[1])),
        np.linspace(0, 1, len(at)),
    )
    if about.is_code[field]:
        rows[rng.random(len(at)) < 0.6 * rising, field] = seldom(rng, about, field)
    else:
        rows[:, field] += rising * shift(rng, about, field, rng.uniform(2, 4))
    return about.within(rows)


def relation(rng: np.random.Generator, about: Usual, at: Codes) -> Array:
    """Take a field that is related to another one from other records."""
    rows, field = about.x[at], related_field(rng, about)
    rows[:, field] = about.x[rng.integers(len(about.x), size=len(at)), field]
    return rows


def group(rng: np.random.Generator, about: Usual, at: Codes) -> Array:
    """Draw records close together, which differ from a usual one in up to a third of the fields."""
    centre = about.x[rng.integers(len(about.x), size=1)]
    for field in some(rng, about):
        if about.is_code[field]:
            centre[:, field] = seldom(rng, about, field)
        else:
            centre[:, field] += shift(rng, about, field, rng.uniform(2.5, 5))
    width = rng.uniform(*GROUP_WIDTH) * np.where(about.is_code, 0.0, about.spread)
    return about.within(centre + width * rng.normal(size=(len(at), len(width))))


def displaced(
    rng: np.random.Generator, about: Usual, at: Codes, spreads: float, share: float
) -> Array:
    """Move up to a third of the fields by so many spreads; a share of codes become a rare one."""
    rows = about.x[at]
    for field in some(rng, about):
        if about.is_code[field]:
            rows[rng.random(len(at)) < share, field] = seldom(rng, about, field)
        else:
            rows[:, field] += shift(rng, about, field, spreads)
    return about.within(rows)


def shift(rng: np.random.Generator, about: Usual, field: int, spreads: float) -> float:
    """Give a way of so many spreads, up, or down if the field has the room."""
    sign = rng.choice([-1.0, 1.0]) if spreads <= about.room[field] else 1.0
    return float(sign * spreads * about.spread[field])


def some(rng: np.random.Generator, about: Usual) -> list[int]:
    """Choose fields, from one to a third of them."""
    d = about.x.shape[1]
    return list(rng.permutation(d)[: rng.integers(1, max(1, d // 3) + 1)].tolist())


def related_field(rng: np.random.Generator, about: Usual) -> int:
    """Choose a field that is related to another one; if none is, any."""
    related = np.flatnonzero(about.related >= RELATED)
    return int(rng.choice(related if len(related) else about.x.shape[1]))


KINDS: Mapping[str, Kind] = {
    "lone": Kind(lone, 1, 1),
    "burst": Kind(burst, 10, 30),
    "stuck": Kind(stuck, 100, 300),
    "lasting": Kind(lasting, 150, 400),
    "creep": Kind(creep, 500, 1_000),
    "relation": Kind(relation, 20, 100),
}
"""Faults of records one after the other; those of a ``group`` are scattered."""

Fault = tuple[str, Codes]
"""A fault's kind, and where its records (m,) are."""


def with_faults(
    x: Array,
    rng: np.random.Generator,
    kinds: Sequence[str] = (*KINDS, "group"),
    first: int = FIRST,
    spacing: int = SPACING,
) -> Faulty:
    """Put faults of each kind apart from each other until they take up their share of records.

    A stream of one field has no relation to break. A fault longer than what is left of the share
    is left out, so a stream of 20,000 records seldom has all kinds.
    """
    kinds = [kind for kind in kinds if kind != "relation" or x.shape[1] > 1]
    size = round(rng.uniform(*GROUP) * len(x)) if "group" in kinds else 0
    in_turn = [kind for kind in kinds if kind != "group"]
    faults = [*planned(rng, len(x), int(MOST * len(x)) - size, in_turn, first, spacing)]
    if size > 0:
        faults.append(("group", scattered(rng, len(x), [at for _, at in faults], size, first)))
    return altered(x, rng, faults)


def planned(
    rng: np.random.Generator, n: int, left: int, kinds: Sequence[str], first: int, spacing: int
) -> Iterator[Fault]:
    """Place faults by turns, each turn in an order of its own, while there is room for them."""
    start = first
    while kinds and left >= min(KINDS[kind].shortest for kind in kinds):
        for kind in rng.permutation(kinds).tolist():
            length = length_of(rng, kind)
            if start + length > n:
                return
            if length <= left:
                yield kind, np.arange(start, start + length)
                left -= length
                start += length + gap(rng, spacing)


def length_of(rng: np.random.Generator, kind: str) -> int:
    """Draw the number of a fault's records."""
    return int(rng.integers(KINDS[kind].shortest, KINDS[kind].longest + 1))


def gap(rng: np.random.Generator, spacing: int) -> int:
    """Draw the number of usual records after a fault, at least the spacing."""
    return int(rng.integers(spacing, 3 * spacing // 2 + 1))


def scattered(
    rng: np.random.Generator, n: int, others: Sequence[Codes], size: int, first: int
) -> Codes:
    """Choose records (size,) at random, none of them near other faults."""
    taken = np.zeros(n)
    for at in others:
        taken[at] = 1.0
    free = np.flatnonzero(maximum_filter1d(taken, 2 * APART + 1) == 0)
    free = free[free >= first]
    return np.sort(rng.choice(free, size=min(size, len(free)), replace=False))


def altered(x: Array, rng: np.random.Generator, faults: Sequence[Fault]) -> Faulty:
    """Put faults into a copy of a stream, in the order of their first records."""
    about, y, label = usual(x), x.copy(), np.zeros(len(x), np.int64)
    faults = sorted(
        (fault for fault in faults if len(fault[1])), key=lambda fault: int(fault[1][0])
    )
    for number, (kind, at) in enumerate(faults, 1):
        y[at] = (group if kind == "group" else KINDS[kind].alter)(rng, about, at)
        label[at] = number
    return Faulty(y, label, tuple(kind for kind, _ in faults))


def with_lone(
    x: Array, rng: np.random.Generator, share: float = LONE, first: int = FIRST
) -> Faulty:
    """Put a share of lone faults at random places, for figures of how faults rank."""
    places = first + rng.choice(len(x) - first, size=round(share * len(x)), replace=False)
    return altered(x, rng, [("lone", places[k : k + 1]) for k in range(len(places))])


def with_spikes(
    x: Array, rng: np.random.Generator, every: int = EVERY, first: int = FIRST
) -> Faulty:
    """Put the same spike in the same field again and again, after so many records each time."""
    about, y, label = usual(x), x.copy(), np.zeros(len(x), np.int64)
    field, at = int(rng.integers(x.shape[1])), np.arange(first, len(x), every)
    if about.is_code[field]:
        y[at, field] = unseen(rng, about, field)
    else:
        y[at, field] += shift(rng, about, field, SPIKE)
    y[at], label[at] = about.within(y[at]), np.arange(1, len(at) + 1)
    return Faulty(y, label, ("spike",) * len(at))


def with_aftermaths(
    x: Array, rng: np.random.Generator, first: int = FIRST, spacing: int = SPACING
) -> Faulty:
    """Put a stuck field with a burst soon after it, again and again."""
    left, start, faults = int(MOST * len(x)), first, list[Fault]()
    while True:
        held, struck = length_of(rng, "stuck"), length_of(rng, "burst")
        after = start + held + AFTER_STUCK
        if held + struck > left or after + struck > len(x):
            return altered(x, rng, faults)
        faults.append(("stuck", np.arange(start, start + held)))
        faults.append(("burst", np.arange(after, after + struck)))
        left -= held + struck
        start = after + struck + gap(rng, spacing)
