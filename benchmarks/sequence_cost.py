"""What a history costs, with each learner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from faust_oslrau.learner import StreamScorer

from .datasets import Array
from .learners import LEARNERS
from .report import prose, write_report
from .sequence_rates import HISTORY

FIELDS = 16
BLOCK = 4096
UNTIMED = 2
"""Blocks before the first that is timed."""

LAYERS: Mapping[str, dict[str, Any]] = {
    "single records": {},
    "history": {"history": HISTORY},
    "history of two spans": {"history": ("10", "100")},
}

TEXT = f"""\
CPU microseconds of one scorer per record of {FIELDS} fields in blocks of {BLOCK:,}, after
{UNTIMED * BLOCK:,} records, and as a multiple of those without history (the median over blocks,
each compared with the same block). The goals are multiples of 2 with a history of one span and 2.5
with two. *Learner* is `oslrau`, alone or with `mixtures`."""


def run(out: Path, quick: bool) -> None:
    """What a history costs, with each learner."""
    rows = [row for name in LEARNERS for row in cost(name, 2 if quick else 12)]
    shown = [
        {key: f"{value:.2f}" if isinstance(value, float) else value for key, value in row.items()}
        for row in rows
    ]
    write_report(out, "sequence-cost", ["Cost of a history", prose(TEXT)], shown, rows)


def cost(learner: str, blocks: int) -> Iterator[dict[str, object]]:
    """Yield the CPU time per record with each choice of layers."""
    scorers = [StreamScorer(LEARNERS[learner](), **layers) for layers in LAYERS.values()]
    micro = timed(scorers, blocks) / BLOCK * 1e6
    multiple = np.median(micro / micro[:, :1], axis=0)
    for name, own, times in zip(LAYERS, np.median(micro, axis=0), multiple, strict=True):
        yield {
            "learner": learner, "scorer": name, "microseconds": float(own), "multiple": float(times)
        }  # fmt: skip


def timed(scorers: list[StreamScorer], blocks: int) -> Array:
    """Return the CPU seconds (blocks, k) of each scorer, by turns, as other work comes and goes."""
    x = np.random.default_rng(0).normal(size=((UNTIMED + blocks) * BLOCK, FIELDS))
    x += np.roll(x, 1, axis=1)
    seconds = np.empty((UNTIMED + blocks, len(scorers)))
    for number, block in enumerate(np.split(x, UNTIMED + blocks)):
        for which, scorer in enumerate(scorers):
            began = process_time()
            scorer.process(block)
            seconds[number, which] = process_time() - began
    return seconds[UNTIMED:]
