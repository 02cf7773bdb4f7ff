"""Long streams: what a stacked density costs once it has settled, and what resting parts lose."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import numpy as np

from faust_oslrau.learner import StackedSPN, compile_kernels
from faust_oslrau.learner.stacked.training import Rule, Training, sizes

from .datasets import Array
from .families import DEVELOPMENT, HELD_OUT
from .report import NOISE, prose, write_report

FIELDS = 16
STREAMS = ("clusters", "discrete", "skewed", "groups")
BATCH = 256
RECORDS, QUICK_RECORDS = 131_072, 40_000

STARTS = tuple(1 << power for power in (14, 16))
"""Records before each stretch, which is as long."""

TEXT = """\
Generated streams of 16 fields, in mini-batches of 256. *Score* and *learn* are medians over the
mini-batches of a stretch, in microseconds per record; *mean* is what a record takes, with what is
done now and then. *Lost* is the mean log-likelihood, in nats, that records of the stretch lose
because the model learns a part of those before only; each is scored before it is learned."""


@dataclass(frozen=True)
class Stretch:
    """A part of a stream: the records before it and in it, times per record, and nats lost."""

    stream: str
    start: int
    stop: int
    score_us: float
    learn_us: float
    mean_us: float
    lost: float


class Thorough(Training):
    """A training whose parts learn every record."""

    def share_learned(self, before: int, weight: float) -> float:
        """Return 1."""
        return 1.0


def run(out: Path, quick: bool) -> None:
    """What scoring and learning of long streams cost, and what is lost as parts rest."""
    compile_kernels(StackedSPN)
    families = {name: make for group in (*DEVELOPMENT, HELD_OUT) for name, make in group.items()}
    n = QUICK_RECORDS if quick else RECORDS
    stretches = []
    for name in STREAMS:
        x = families[name](np.random.default_rng(3), n, FIELDS)
        stretches += measure(name, x)
    write_report(
        out, "settled", ["Long streams", prose(TEXT), NOISE],
        [row(stretch) for stretch in stretches], [asdict(stretch) for stretch in stretches],
    )  # fmt: skip


def measure(name: str, x: Array) -> list[Stretch]:
    """Follow a stream by the model as it is, and by one that learns every record."""
    scores, times = follow(x)
    lost = learn_all(x) - scores
    stretches = []
    for start in (n for n in STARTS if n < len(x)):
        stop = min(2 * start, len(x))
        some = times[start // BATCH : stop // BATCH] * 1e6 / BATCH
        score_us, learn_us = np.median(some, axis=0).tolist()
        mean_us, loss = float(some.sum(axis=1).mean()), float(lost[start:stop].mean())
        stretches.append(Stretch(name, start, stop, score_us, learn_us, mean_us, loss))
    return stretches


def follow(x: Array) -> tuple[Array, Array]:
    """Score and learn a stream: log-densities (n,), seconds of both by mini-batch (n / 256, 2)."""
    model, scores, times = StackedSPN().partial_fit(x[:BATCH]), np.zeros(len(x)), [(0.0, 0.0)]
    for start in range(BATCH, len(x), BATCH):
        rows = x[start : start + BATCH]
        began = process_time()
        evaluation = model.evaluate(rows)
        scored = process_time()
        model.partial_fit(rows, evaluation=evaluation)
        times.append((scored - began, process_time() - scored))
        scores[start : start + BATCH] = evaluation.log_density
    return scores, np.array(times)


def learn_all(x: Array) -> Array:
    """Log-densities (n,) of a stream by a network that learns every record."""
    model = StackedSPN()
    share = sizes(x.shape[1], model.max_nodes, None)
    return follow_training(Thorough(x.shape[1]), x, Rule(share, math.inf, model.random_state))


def follow_training(training: Training, x: Array, rule: Rule) -> Array:
    """Log-densities (n,) of records before each is learned; 0 until there is a network."""
    scores = np.zeros(len(x))
    for start in range(0, len(x), BATCH):
        rows, evaluated = x[start : start + BATCH], None
        if training.network is not None:
            Z, jacobian = training.scaling.apply(rows)
            evaluated = training.network.evaluate(Z)
            scores[start : start + BATCH] = evaluated.log_density - jacobian
        training.learn(rows, rule, evaluated)
    return scores


def row(stretch: Stretch) -> dict[str, object]:
    return {
        "stream": stretch.stream,
        "records": f"{stretch.start:,} to {stretch.stop:,}",
        "score, us": f"{stretch.score_us:.1f}",
        "learn, us": f"{stretch.learn_us:.1f}",
        "mean, us": f"{stretch.mean_us:.1f}",
        "lost": f"{stretch.lost:.3f}",
    }
