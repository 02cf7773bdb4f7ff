"""What the measures of the p-value cost, and how they keep up with streams that move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

import click
import numpy as np

from faust_oslrau.app.offline.quality import alarm_curve
from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.scoring.neighbours import Neighbours
from faust_oslrau.learner.scoring.tail_mass import TailMass

from .contamination import DEVELOPMENT_KINDS, Stream, contaminate
from .datasets import Array
from .families import clusters, factors, rings
from .report import markdown, prose, write_report

FIELDS = (4, 16, 64)
BATCH = 256
ROUNDS = 7

MEMORIES = (None, 8_000, 2_000)
FROM = 10_000
"""Records of a moving stream that are not counted."""

MOVES = 6.0
"""Deviations that each field moves over the whole of a stream."""

RATES = (0.01, 0.001)
ANOMALIES = 0.01

TEXT = f"""\
CPU microseconds per record in batches of {BATCH} records, a learning boundary after each, and the
state in kB: of the distance to recent records and of the mass further out. The smallest of {ROUNDS}
rounds; each measure is timed alone, as the scorer calls it."""

MOVING = f"""\
## Streams that move

Each field moves by {MOVES:.0f} deviations over the stream ("moving"), or not ("still"); one record
in 100 is anomalous. Without forgetting and with a `memory` of 8,000 and 2,000 records: how often
usual records have p-values of at most 0.01 and 0.001, the area under the ROC curve and the average
precision of the p-values, after the first {FROM:,} records. Means over three families of 8
fields."""


def run(out: Path, quick: bool) -> None:
    """What the p-value's measures cost; p-values of streams that move, with and without memory."""
    n = 8_192 if quick else 65_536
    costs = [row for d in FIELDS for row in cost(n, d)]
    moving = [*keeping_up(2 * FROM if quick else 40_000)]
    write_report(
        out, "upkeep", ["Upkeep of p-values", prose(TEXT), markdown(costs), MOVING],
        moving, {"cost": costs, "moving": moving},
    )  # fmt: skip


def cost(n: int, d: int) -> Iterator[dict[str, object]]:
    """Time both measures on ``n`` records of ``d`` fields."""
    x = clusters(np.random.default_rng(0), n, d)
    measures: dict[str, Callable[[], tuple[float, int]]] = {
        "distance to recent records": lambda: of_neighbours(x),
        "mass further out": lambda: of_tail_mass(x),
    }
    for name, measured in measures.items():
        seconds, size = zip(*(measured() for _ in range(ROUNDS)), strict=True)
        microseconds = 1e6 * min(seconds) / n
        yield {
            "fields": d, "measure": name, "µs per record": f"{microseconds:.2f}",
            "state, kB": f"{size[-1] / 1000:.0f}",
        }  # fmt: skip


def of_neighbours(x: Array) -> tuple[float, int]:
    """Return the CPU seconds of a stream's distances, and the bytes of the state."""
    measured, began = Neighbours(), process_time()
    for batch in np.split(x, len(x) // BATCH):
        measured.distance(batch)
        measured.update(batch)
    return process_time() - began, measured.rows.nbytes + measured.variance.nbytes


def of_tail_mass(x: Array) -> tuple[float, int]:
    """Return the same of the mass; the rows that it is fitted to are those of the neighbours."""
    recent, measured, seconds = Neighbours(), TailMass(), 0.0
    for batch in np.split(x, len(x) // BATCH):
        recent.update(batch)
        began = process_time()
        measured.log_mass(batch)
        measured.update(recent.rows, recent.n)
        seconds += process_time() - began
    return seconds, sum(array.nbytes for array in measured.state().values())


def keeping_up(n: int) -> Iterator[dict[str, object]]:
    """Score streams that move and streams that do not, with each memory."""
    for name, moves in (("still", 0.0), ("moving", MOVES)):
        for memory in MEMORIES:
            figures = np.mean([figures_of(stream, memory) for stream in streams(n, moves)], axis=0)
            names = (*(f"at {rate}" for rate in RATES), "area", "precision")
            rounded = dict(zip(names, (f"{figure:.4f}" for figure in figures), strict=True))
            yield {"stream": name, "memory": memory or "off"} | rounded
            click.echo(f"{name}, memory {memory}", err=True)


def streams(n: int, moves: float) -> Iterator[Stream]:
    for number, family in enumerate((clusters, factors, rings)):
        rng = np.random.default_rng([22, number])
        usual = family(rng, n, 8)
        usual += moves * usual.std(axis=0) * np.linspace(0, 1, n)[:, None]
        yield contaminate(family.__name__, usual, ANOMALIES, DEVELOPMENT_KINDS[0], rng)


def figures_of(stream: Stream, memory: int | None) -> list[float]:
    """Return the realised rates of usual records, the area and the average precision."""
    p_value = StreamScorer(OSLRAU(memory=memory)).process(stream.x).p_value[FROM:]
    label = stream.label[FROM:]
    curve = alarm_curve(label, -p_value)
    rates = [float(np.mean(p_value[~label] <= rate)) for rate in RATES]
    return [*rates, curve.area_under_roc, curve.average_precision]
