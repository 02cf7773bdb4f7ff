"""Few leaves at quantiles or many: what each is worth on streams of 16 fields."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from faust_oslrau.learner import StackedSPN, compile_kernels
from faust_oslrau.learner.stacked.leaves import MOST_LEAVES
from faust_oslrau.learner.stacked.training import Rule, Sizes, Training, sizes

from .datasets import Array
from .families import DEVELOPMENT, HELD_OUT
from .report import prose, write_report
from .settled import BATCH, FIELDS, follow_training

RECORDS, QUICK_RECORDS = 16_384, 4_352
EARLY = 4096
LARGEST = 50.0
"""Nats by which one record at most counts in a difference."""

TEXT = """\
Generated streams of 16 fields, in mini-batches of 256; each record is scored before it is learned.
*Many* is the mean log-likelihood, in nats, with as many leaves at quantiles for each field as the
nodes allow, *few* what the model's 24 gain. Each cell has records 256 to 4,096 first, and those
after them second. *Walks* and the streams below it are held out."""


@dataclass(frozen=True)
class Gain:
    """A stream's mean log-likelihood with many leaves, and what few gain: early and late."""

    stream: str
    held_out: bool
    many: tuple[float, float]
    few: tuple[float, float]


def run(out: Path, quick: bool) -> None:
    """Few leaves at quantiles or many: what each is worth."""
    compile_kernels(StackedSPN)
    n = QUICK_RECORDS if quick else RECORDS
    gains = []
    for group in (*DEVELOPMENT, HELD_OUT):
        for name, make in group.items():
            x = make(np.random.default_rng(3), n, FIELDS)
            gains.append(compare(name, x, held_out=group is HELD_OUT))
    blocks = ["Few leaves or many", prose(TEXT)]
    write_report(out, "leaves", blocks, [row(g) for g in gains], [asdict(g) for g in gains])


def compare(name: str, x: Array, *, held_out: bool) -> Gain:
    """Follow a stream with many leaves and with few."""
    default = StackedSPN()
    few = sizes(x.shape[1], default.max_nodes, None)
    many = follow(x, few._replace(quantiles=MOST_LEAVES))
    gain = np.clip(follow(x, few) - many, -LARGEST, LARGEST)
    return Gain(name, held_out, early_and_late(many), early_and_late(gain))


def follow(x: Array, share: Sizes) -> Array:
    """Log-densities (n,) of a stream by networks of some sizes."""
    return follow_training(Training(x.shape[1]), x, Rule(share, math.inf, 0))


def early_and_late(values: Array) -> tuple[float, float]:
    """Means of the first and of the later records."""
    return float(values[BATCH:EARLY].mean()), float(values[EARLY:].mean())


def row(gain: Gain) -> dict[str, object]:
    return {
        "stream": gain.stream,
        "many": "{:.2f} / {:.2f}".format(*gain.many),
        "few": "{:+.3f} / {:+.3f}".format(*gain.few),
    }
