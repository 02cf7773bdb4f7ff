"""Categories of entities: what is usual for one of them, beside what is usual for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from unittest.mock import patch

import numpy as np

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.arrays import IntArray, Mask
from faust_oslrau.learner.categories.by_entity import EntityCounts
from faust_oslrau.learner.categories.values import MISSING

from .fields import area
from .habit_systems import FIRST, SYSTEMS, Stream, faults
from .report import prose, write_report

N = 20_000
SEEDS = 4
VALUES = 5
SHARES = (1.0, 0.95, 0.7, 1 / VALUES)
"""Of an entity's records, those with its own value; the last is that of chance."""

TEXT = f"""\
Streams of {N:,} records, the first {FIRST:,} without faults. *Devices* have three numbers and two
categories, and come at random. Each has one of {VALUES} values of the first category of its own,
which a *share* of its records have; the others have any. In 0.3 % of the later records, the faults,
a device has the value of another one. Where records have values by chance, nothing is a fault.
*Logins*, *terminals*, *machines* and *pods* are systems that served for no choice
(`benchmarks/habit_systems.py`), looked at four times; the entities of the last are alike. *Area* is
that under the ROC curve of the p-value of later records; *found* and *rate* are the shares of
faults and of usual ones with a p-value at most 0.01, the second in units of 0.01; *nats* is the
mean log-likelihood.
*Without* are the same records scored without the counts of each entity's own categories; *cost* is
the CPU time over that without. Means of {SEEDS} streams."""


def run(out: Path, quick: bool) -> None:
    """Faults that only an entity's own categories show."""
    n, seeds = (FIRST + 1_000, 1) if quick else (N, SEEDS)
    list(measured(devices(np.random.default_rng(0), FIRST + 1_000, 30, 1.0)))  # compiles
    streams = {
        f"{k:,} devices, share {share:.2f}": partial(devices, k=k, share=share)
        for share in SHARES
        for k in (30, 1_000)
    }
    rows = [row(name, make, n, seeds) for name, make in (streams | SYSTEMS).items()]
    blocks = ["Categories of entities", prose(TEXT)]
    write_report(out, "habits", blocks, rows, rows)


def row(
    name: str, make: Callable[[np.random.Generator, int], Stream], n: int, seeds: int
) -> dict[str, object]:
    """Return the figures of some streams."""
    streams = (make(np.random.default_rng([83, seed]), n) for seed in range(seeds))
    found = np.array([list(measured(stream)) for stream in streams])
    ours, without = found.mean(axis=0)
    shown: dict[str, object] = {"streams": name}
    for which, (ranking, hits, rate, nats, _) in (("", ours), (", without", without)):
        shown |= {f"area{which}": f"{ranking:.3f}", f"found{which}": f"{hits:.2f}"}
        shown |= {f"rate{which}": f"{rate:.2f}", f"nats{which}": f"{nats:.2f}"}
    return shown | {"cost": f"{found[:, 0, -1].sum() / found[:, 1, -1].sum():.2f}"}


def devices(rng: np.random.Generator, n: int, k: int, share: float) -> Stream:
    """Return a stream of ``k`` devices that have values of their own in a ``share`` of records."""
    device, home = rng.integers(k, size=n), rng.integers(VALUES, size=k)
    is_fault = faults(rng, n)
    own = rng.random(n) < (share - 1 / VALUES) / (1 - 1 / VALUES)
    value = np.where(own, home[device], rng.integers(VALUES, size=n))
    other = (home[device] + rng.integers(1, VALUES, size=n)) % VALUES
    value = np.where(is_fault, other, value)
    numbers = rng.normal(size=(n, 3)) + 3.0 * rng.normal(size=(k, 3))[device]
    rows = np.column_stack([numbers, value, rng.integers(3, size=n)])
    return Stream(rows, device, is_fault, 2)


def measured(stream: Stream) -> Iterator[list[float]]:
    """Yield area, faults found, rate of usual records, nats, CPU time; then without own counts."""
    entity = [str(each) for each in stream.entity]
    for take in (EntityCounts.take, of_nobody):
        scorer = StreamScorer(OSLRAU(), n_categories=stream.n_categories, max_entities=10_000)
        began = process_time()
        with patch.object(EntityCounts, "take", take):
            block = scorer.process(stream.rows, entity)
        seconds, is_fault = process_time() - began, stream.is_fault[FIRST:]
        p_value, nats = block.p_value[FIRST:], block.log_likelihood[FIRST:].mean()
        usual, hit = p_value[~is_fault], p_value[is_fault]
        found, rate = ((p <= 0.01).mean() for p in (hit, usual))
        yield [area(usual, hit), found, rate / 0.01, nats, seconds]


def of_nobody(self: EntityCounts, entities: IntArray, fresh: Mask) -> IntArray:
    """Return that no record's entity is known."""
    return np.full(len(entities), MISSING)
