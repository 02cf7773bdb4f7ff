"""How many values of a sequence are within the band in which they were expected, and its cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import click
import numpy as np

from faust_oslrau.learner import OSLRAU, ScoredBlock, StackedSPN, StreamScorer

from .datasets import Array
from .report import markdown, prose, write_report
from .sequence_rates import HISTORY
from .timed import DEVELOPMENT, FIELDS, FIRST_FAULT, HELD_OUT, recursive

MACHINES = 40
PER_DAY = 144
"""Records of a day: one every ten minutes."""

LEARNERS = {"oslrau": OSLRAU, "stacked": StackedSPN}

TEXT = """\
Sequences of 6 fields without faults, from record 4,000 on: the share of the values within the band,
below and above it, means over all fields and seeds. A band reaches from the quantile at 1 % to that
at 99 %, so 0.98 of the values should be within; the goal is 0.97 to 0.99. *Width* is the median
width of a band as a multiple of that by the same model without the past. No choice was made on any
of these sequences."""

COST_TEXT = """\
## Cost

CPU microseconds of one scorer per record of 16 fields in blocks of 4,096, after 8,192 records,
without and with forecasts. *Multiple* is with forecasts by without."""


def run(out: Path, quick: bool) -> None:
    """Measure how many values are within the band in which they were expected, and its cost."""
    n, seeds = (6000, 1) if quick else (24_000, 2)
    rows = [row for name in LEARNERS for row in coverage(name, n, seeds)]
    costs = [cost(name, history, 2 if quick else 8)
             for name in LEARNERS for history in (None, HISTORY)]  # fmt: skip
    blocks = ["Forecasts", prose(TEXT), markdown([rounded(row) for row in rows]), prose(COST_TEXT)]
    write_report(
        out, "forecasts", blocks, [rounded(row) for row in costs], {"rows": rows, "costs": costs}
    )


def coverage(learner: str, n: int, seeds: int) -> Iterator[dict[str, Any]]:
    for name, base in {**HELD_OUT, **DEVELOPMENT}.items():
        for past, layers in (("none", {}), ("history", {"history": HISTORY})):
            found = []
            for seed in range(seeds):
                x = base(np.random.default_rng([29, len(name), seed]), n)
                plain = bands(learner, x)
                block = bands(learner, x, **layers) if layers else plain
                found.append(figures(x, block, plain))
            yield row(learner, name, past, found)
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng([30, seed])
        x = recursive(rng, n, 0.5) / 3.0
        x += 3.0 * np.sin(2 * np.pi * np.arange(n)[:, None] / PER_DAY + np.arange(FIELDS))
        places = np.column_stack([np.arange(n), 1_700_000_000_000 + 600_000 * np.arange(n)])
        seasonal = bands(learner, x, places=places, seasons="UTC")
        found.append(figures(x, seasonal, bands(learner, x)))
    yield row(learner, "daily pattern", "season", found)
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng([31, seed])
        of = rng.integers(MACHINES, size=n)
        level, scale = 10.0 * rng.normal(size=(2, MACHINES, FIELDS))
        x = level[of] + np.exp(scale[of] / 20.0) * recursive(rng, n, 0.0)
        keys = [b"%d" % machine for machine in of]
        own = bands(learner, x, keys, max_entities=MACHINES)
        found.append(figures(x, own, bands(learner, x)))
    yield row(learner, "machines", "entity", found)


def bands(
    learner: str, x: Array, keys: Any = None, places: Any = None, **layers: Any
) -> ScoredBlock:
    scorer = StreamScorer(LEARNERS[learner](), forecasting=True, **layers)
    return scorer.process(x, keys, places)


def figures(x: Array, block: ScoredBlock, plain: ScoredBlock) -> list[float]:
    late = slice(FIRST_FAULT, None)
    low, high = (block.forecast.low[late], block.forecast.high[late])
    width = np.median(high - low)
    by_itself = np.median(plain.forecast.high[late] - plain.forecast.low[late])
    below, above = float((x[late] < low).mean()), float((x[late] > high).mean())
    return [1.0 - below - above, below, above, float(width / by_itself)]


def row(learner: str, family: str, past: str, found: list[list[float]]) -> dict[str, Any]:
    means = dict(zip(("within", "below", "above", "width"), np.mean(found, axis=0).tolist(), strict=True))
    result = {"learner": learner, "family": family, "past": past, **means}
    click.echo(result, err=True)
    return result


def cost(learner: str, history: tuple[str, ...] | None, chunks: int) -> dict[str, Any]:
    x = np.random.default_rng(0).normal(size=(8192 + chunks * 4096, 16))
    x += np.roll(x, 1, axis=1)
    scorers = [
        StreamScorer(LEARNERS[learner](), history=history, forecasting=wanted)
        for wanted in (False, True)
    ]
    seconds = np.empty((chunks, 2))
    for scorer in scorers:
        scorer.process(x[:8192])
    for chunk in range(chunks):  # by turns, as other work on the machine comes and goes
        part = x[8192 + 4096 * chunk : 8192 + 4096 * (chunk + 1)]
        for number, scorer in enumerate(scorers):
            began = process_time()
            scorer.process(part)
            seconds[chunk, number] = process_time() - began
    without, with_bands = (np.median(seconds, axis=0) / 4096 * 1e6).tolist()
    return {
        "learner": learner, "history": "no" if history is None else "yes",
        "without": without, "with": with_bands, "multiple": with_bands / without,
    }  # fmt: skip


def rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a table."""
    return {name: f"{value:.{4 if name in ('within', 'below', 'above') else 2}f}"
            if isinstance(value, float) else value for name, value in row.items()}  # fmt: skip
