"""Sudden changes: how fast a stacked density follows, what a fault costs, and false challengers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from faust_oslrau.learner import OSLRAU, StackedSPN
from faust_oslrau.learner.stacked import members
from faust_oslrau.learner.stream.shares import Shares

from .crossval import HONEST_FLOOR
from .datasets import Array
from .families import DEVELOPMENT, HELD_OUT
from .plan import Plan
from .report import markdown, prose, write_report

SETS = ("abalone", "ca", "labelled/Wilt", "sensorless")
MOST_RECORDS = 20_000
SEEDS = 3
BATCH = 256
FIRST_ENDS = (16, 48, 112, 240)

HORIZONS = {
    "before": (-500, 0),
    "first 256": (0, 256),
    "next 256": (256, 512),
    "to 1,000": (512, 1000),
    "to 2,000": (1000, 2000),
    "last 500": (-500, None),
}
"""Records counted from the change, the last ones from the end."""

FAULTS = (600, 1500)
BEFORE_FAULT = 3000
STARTS = (0, 64, 128, 192)
"""Where a fault begins in a mini-batch."""

STATIONARY = 20
STATIONARY_RECORDS = 100_000
STATIONARY_FIELDS = 8
CHANGING = ("regimes", "cycles")
"""Families whose streams change by nature."""

PERMANENT_TEXT = """\
A change for good: records in random order, whose columns are reversed and negated from the middle
on. Mean log-likelihood of records scored before they are learned, in mini-batches of 256, without
the guard, over three random orders. *Stacked* weighs its networks as `StreamScorer` does, by all
records before the one that is scored. With *shares of the root*, the learner alone, their weights
stay for a mini-batch. *One network* has no challengers. Leaf variances are at least 1e-4 in the
units of the data, those of *oslrau* in units of its first records."""

FAULT_TEXT = """\
Faults: the same change for some records only, after 3,000. *Loss* is what the first 256 usual
records lose against a model that was not given the fault, in nats: the mean over four places of the
fault in a mini-batch, and the largest. *Shares of the root* is the mean of the learner alone."""

STATIONARY_TEXT = """\
No change: generated streams. *Challengers* counts the mini-batches after which a new one stood
beside the network."""


@dataclass(frozen=True)
class Course:
    """One learner on one set with a change: mean log-likelihood by horizon, over the orders."""

    dataset: str
    learner: str
    means: dict[str, float]


@dataclass(frozen=True)
class Fault:
    """What the first usual records after a fault lost, for each start.

    ``of_root`` is what they lose if the networks' shares are those of the root.
    """

    dataset: str
    records: int
    losses: list[float]
    of_root: list[float]


@dataclass(frozen=True)
class Stationary:
    """A stream without a change."""

    family: str
    seed: int
    challengers: int


def run(plan: Plan) -> None:
    """Sudden changes of the stacked density: for good, for a fault, and none."""
    sets = {Path(name).name: plan.folder / f"{name}.npz" for name in SETS}
    present = {name: load(path) for name, path in sets.items() if path.is_file()}
    for name in sets.keys() - present.keys():
        click.echo(f"{name}: skipped, there is no {sets[name]}", err=True)
    for path in plan.files:
        present[path.stem] = load(path)
    courses = [course for name, x in present.items() for course in follow(name, x)]
    faults = [fault for name, x in present.items() for fault in suffer(name, x)]
    stationary = list(stand_still(STATIONARY_RECORDS))
    paragraphs = [
        "Sudden changes",
        prose(PERMANENT_TEXT),
        markdown([course_row(course) for course in courses]),
        prose(FAULT_TEXT),
        markdown([fault_row(fault) for fault in faults]),
        prose(STATIONARY_TEXT),
    ]
    figures = {
        "courses": [asdict(course) for course in courses],
        "faults": [asdict(fault) for fault in faults],
        "stationary": [asdict(stream) for stream in stationary],
    }
    write_report(plan.out, "change", paragraphs, stationary_rows(stationary), figures)


def load(path: Path) -> Array:
    with np.load(path) as arrays:
        return np.asarray(arrays["x"], np.float64)


def ordered(x: Array, seed: int) -> Array:
    return x[np.random.default_rng(seed).permutation(len(x))[:MOST_RECORDS]]


def changed(rows: Array) -> Array:
    return -rows[:, ::-1]


def ends(n: int) -> Iterator[int]:
    """Yield where mini-batches end."""
    yield from (end for end in (*FIRST_ENDS, *range(FIRST_ENDS[-1] + BATCH, n, BATCH)) if end < n)
    yield n


def follow(name: str, x: Array) -> Iterator[Course]:
    """Score each learner on a set whose second half is changed."""
    learners: dict[str, tuple[Callable[[], OSLRAU | StackedSPN], Callable[..., Array]]] = {
        "stacked": (StackedSPN, score_by_record),
        "stacked, shares of the root": (StackedSPN, score),
        "stacked, one network": (lambda: StackedSPN(retire_after=None), score),
        "oslrau": (OSLRAU, score),
    }
    for learner, (make, scored) in learners.items():
        orders = [by_horizon(make(), scored, ordered(x, seed)) for seed in range(SEEDS)]
        means = {name: float(np.mean([order[name] for order in orders])) for name in HORIZONS}
        yield Course(name, learner, means)
        click.echo(f"{name}, {learner}", err=True)


def by_horizon(
    model: OSLRAU | StackedSPN, scored: Callable[..., Array], x: Array
) -> dict[str, float]:
    n = len(x) // 2
    rows = np.concatenate([x[:n], changed(x[n:])])
    scores, start = np.full(len(rows), np.nan), 0
    for end in ends(len(rows)):
        if start > 0:
            scores[start:end] = scored(model, rows[start:end])
        model.partial_fit(rows[start:end])
        start = end
    before, after = scores[:n], scores[n:]
    parts = {name: after[slice(*places)] for name, places in HORIZONS.items()}
    parts["before"] = before[-500:]
    return {name: float(np.nanmean(part)) for name, part in parts.items() if len(part) > 0}


def score(model: OSLRAU | StackedSPN, rows: Array) -> Array:
    if isinstance(model, StackedSPN):
        return model.score_samples(rows, variance_floor=HONEST_FLOOR / model.scale_**2)
    return model.score_samples(rows, variance_floor=HONEST_FLOOR)


def score_by_record(model: StackedSPN, rows: Array) -> Array:
    """Score the rows (m, d) of one mini-batch with shares of two networks that follow each row."""
    evaluation, floor = model.evaluate(rows), HONEST_FLOOR / model.scale_**2
    scores, posterior = members.log_densities(evaluation.members, rows, floor)
    if len(evaluation.members) == 1:
        return scores
    by_network = scores[:, None] + np.log(posterior / model.shares)
    floored = evaluation._replace(told=evaluation.told._replace(each=by_network))
    return Shares().take(model, floored)[1].log_density


def suffer(name: str, x: Array) -> Iterator[Fault]:
    """Measure what faults of each length cost the usual records after them."""
    rows = ordered(x, 0)
    boundary = FIRST_ENDS[-1] + min(BEFORE_FAULT, len(rows) // 2) // BATCH * BATCH
    for records in FAULTS:
        if boundary + records + BATCH <= len(rows):
            losses = [loss(rows, boundary - start, records) for start in STARTS]
            yield Fault(name, records, *np.array(losses).T.tolist())


def loss(rows: Array, start: int, records: int) -> tuple[float, float]:
    """Return what the first usual records after a fault at ``start`` lose by it, in nats.

    And what they lose with the networks' shares in the root.
    """
    rows = rows[: start + records + BATCH].copy()
    fault = slice(start, start + records)
    rows[fault] = changed(rows[fault])
    is_usual = np.ones(len(rows), np.bool_)
    is_usual[fault] = False
    with_fault, without, first = StackedSPN(), StackedSPN(), 0
    losses, of_root = np.zeros((2, len(rows)))
    for end in ends(len(rows)):
        batch = rows[first:end]
        if first > 0:
            usual = score(without, batch)
            losses[first:end] = usual - score_by_record(with_fault, batch)
            of_root[first:end] = usual - score(with_fault, batch)
        with_fault.partial_fit(batch)
        without.partial_fit(batch[is_usual[first:end]])
        first = end
    return float(losses[-BATCH:].mean()), float(of_root[-BATCH:].mean())


def stand_still(n: int) -> Iterator[Stationary]:
    """Count challengers on streams that do not change."""
    families = {k: family for group in (*DEVELOPMENT, HELD_OUT) for k, family in group.items()}
    names = [name for name in families if name not in CHANGING]
    for seed in range(STATIONARY):
        name = names[seed % len(names)]
        rows = families[name](np.random.default_rng(seed), n, STATIONARY_FIELDS)
        yield Stationary(name, seed, count_challengers(rows))
        click.echo(f"{name}, stream {seed}", err=True)


def count_challengers(rows: Array) -> int:
    model, found, stood = StackedSPN(), 0, False
    for start in range(0, len(rows), BATCH):
        model.partial_fit(rows[start : start + BATCH])
        stands = model.established is not model
        found += stands and not stood
        stood = stands
    return found


def course_row(course: Course) -> dict[str, object]:
    return {
        "data set": course.dataset,
        "learner": course.learner,
        **{name: f"{course.means[name]:.2f}" for name in HORIZONS},
    }


def fault_row(fault: Fault) -> dict[str, object]:
    return {
        "data set": fault.dataset,
        "records": fault.records,
        "loss": f"{np.mean(fault.losses):.2f}",
        "largest": f"{max(fault.losses):.2f}",
        "shares of the root": f"{np.mean(fault.of_root):.2f}",
    }


def stationary_rows(streams: list[Stationary]) -> list[dict[str, object]]:
    """Sum up the streams of each family."""
    rows = []
    for family in dict.fromkeys(stream.family for stream in streams):
        some = [stream for stream in streams if stream.family == family]
        challengers = sum(stream.challengers for stream in some)
        rows.append({"family": family, "streams": len(some), "challengers": challengers})
    return rows
