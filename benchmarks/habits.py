"""Categories of entities: what is usual for one of them, beside what is usual for all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.categories.layer import Categories

from .datasets import Array
from .fields import area
from .report import prose, write_report

WARM_UP = 5_000
"""First records of a stream, which do not count."""

VALUES = 5
SHARES = (1.0, 0.95, 0.7, 1 / VALUES)
"""Of an entity's records, those with its own value; the last is that of chance."""

TEXT = f"""\
Streams of 20,000 records of three numbers and two categories, of devices that come at random. Each
device has one of {VALUES} values of the first category of its own, which a *share* of its records
have; the others have any. In 0.3 % of the records, the faults, a device has the value of another
one. *Area* is that under the ROC curve of the p-value, after {WARM_UP:,} records; *found* and
*rate* are the shares of faults and of usual records with a p-value at most 0.01, the second in
units of 0.01. *Without* are the same records scored without the counts of each device's own
categories; *cost* is the CPU time over that without. Means of the streams. Where records have
values by chance, nothing is a fault."""


class Stream(NamedTuple):
    """Rows (n, 5), the device of each, and which are faults."""

    rows: Array
    device: list[str]
    is_fault: Array


def run(out: Path, quick: bool) -> None:
    """Faults that only an entity's own categories show."""
    n, seeds = (WARM_UP + 1_000, 1) if quick else (20_000, 4)
    list(measured(devices(0, 30, 1.0, WARM_UP + 1_000)))  # compiles
    rows = [row(k, share, n, seeds) for share in SHARES for k in (30, 1_000)]
    blocks = ["Categories of entities", prose(TEXT)]
    write_report(out, "habits", blocks, rows, rows)


def row(k: int, share: float, n: int, seeds: int) -> dict[str, object]:
    """Return the figures of streams of ``k`` devices."""
    found = np.array([list(measured(devices(seed, k, share, n))) for seed in range(seeds)])
    ours, without = found.mean(axis=0)
    shown: dict[str, object] = {"devices": f"{k:,}", "share": f"{share:.2f}"}
    for name, (ranking, hits, rate, _) in (("", ours), (", without", without)):
        shown |= {f"area{name}": f"{ranking:.3f}", f"found{name}": f"{hits:.2f}"}
        shown[f"rate{name}"] = f"{rate:.2f}"
    return shown | {"cost": f"{found[:, 0, 3].sum() / found[:, 1, 3].sum():.2f}"}


def devices(seed: int, k: int, share: float, n: int) -> Stream:
    """Return a stream of ``k`` devices that have values of their own in a ``share`` of records."""
    rng = np.random.default_rng([83, seed, k])
    device, home = rng.integers(k, size=n), rng.integers(VALUES, size=k)
    is_fault = (rng.random(n) < 0.003) & (np.arange(n) >= WARM_UP)
    own = rng.random(n) < (share - 1 / VALUES) / (1 - 1 / VALUES)
    value = np.where(own, home[device], rng.integers(VALUES, size=n))
    other = (home[device] + rng.integers(1, VALUES, size=n)) % VALUES
    value = np.where(is_fault, other, value)
    numbers = rng.normal(size=(n, 3)) + 3.0 * rng.normal(size=(k, 3))[device]
    rows = np.column_stack([numbers, value, rng.integers(3, size=n)])
    return Stream(rows, [str(each) for each in device], is_fault)


def measured(stream: Stream) -> Iterator[list[float]]:
    """Yield area, faults found, rate of usual records, CPU time: with own categories, without."""
    for by_entity in (True, False):
        scorer = StreamScorer(OSLRAU(), n_categories=2, max_entities=10_000)
        if not by_entity:
            scorer._state.categories = Categories(2)
        began = process_time()
        p_value = scorer.process(stream.rows, stream.device).p_value[WARM_UP:]
        seconds, is_fault = process_time() - began, stream.is_fault[WARM_UP:]
        usual, faults = p_value[~is_fault], p_value[is_fault]
        hits, rate = ((p <= 0.01).mean() for p in (faults, usual))
        yield [area(usual, faults), hits, rate / 0.01, seconds]
