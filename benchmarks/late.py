"""Fields that come late: alarms when they come, and whether faults are found that they show."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.stream.late import ENOUGH

from .datasets import Array
from .mixed import CHOICES as MIXED_CHOICES
from .mixed import Family, mixed
from .report import prose, write_report
from .systems import CHOICES, System

COMES, N = 10_000, 24_000
SOON = 1_024
RATE = 0.01
ENTITIES = 40
SHIFT = 2.0
EVERY = 100
SETTLED = COMES + ENOUGH + SOON

Kind = TypeVar("Kind", System, Family)

TEXT = f"""\
Streams of {N:,} records, two of each family or system on which choices may be made, whose last
field is missing in the first {COMES:,}, beside the same streams with it. *Alarms* are usual records
with a p-value of at most {RATE}, over nominal: in the first {SOON:,} records with the field, and
from {ENOUGH:,} records after it came on. *Area* and *precision* are how well p-values rank faults
from {SETTLED - COMES:,} records after it came on. With entities, records are of {ENTITIES} by
chance, which differ by {SHIFT:g} spreads in each number. Of numbers, streams are those of systems
with several fields, and a fault is a value of the last field in place of that of another record, in
one record of {EVERY}. Of categories, they are those of `fields` with its faults, as many; the
category that is late is the first one, on which others and numbers depend."""

LAYERS = {
    "plain": {},
    "mixtures": {},
    "history": {"history": ("10",)},
    "entity": {"max_entities": ENTITIES},
}


class Stream(NamedTuple):
    """Rows (n, d + c) whose last field is the one that is late, and which are faults (n,)."""

    rows: Array
    entity: Array
    label: Array
    n_categories: int


def run(out: Path, quick: bool) -> None:
    """Fields that first come after thousands of records: alarms, and faults that are found."""
    most = 2 if quick else None
    systems = [system for name, system in CHOICES.items() if name != "retries"][:most]
    families = list(MIXED_CHOICES.values())[:most]
    streams = {
        "a number": [of_numbers(*each) for each in twice(systems)],
        "a category": [of_categories(*each) for each in twice(families)],
    }
    rows = [
        {"the last field": what, "layers": layers, "it": when}
        | means([measured(layers, when, stream) for stream in of])
        for what, of in streams.items()
        for layers in LAYERS
        for when in ("comes late", "is always there")
    ]
    write_report(out, "late", ["Fields that come late", prose(TEXT)], rows, {"rows": rows})


def twice(kinds: list[Kind]) -> list[tuple[int, int, Kind]]:
    """Return place, seed and kind of each stream."""
    return [(place, seed, kind) for place, kind in enumerate(kinds) for seed in range(2)]


def of_numbers(place: int, seed: int, system: System) -> Stream:
    """Return a stream of a system in which some values of the last field are those of others."""
    rng = np.random.default_rng([71, place, seed])
    x, entity = system(rng, N).copy(), rng.integers(ENTITIES, size=N)
    label = rng.random(N) * EVERY < 1
    x[label, -1] = rng.permutation(x[label, -1])
    return Stream(x, entity, label, 0)


def of_categories(place: int, seed: int, family: Family) -> Stream:
    """Return a stream of numbers and categories, the first category last."""
    rng = np.random.default_rng([72, place, seed])
    numbers, categories, kind = mixed(family, 1000 + 10 * place + seed, N, 1 / EVERY)
    rows = np.column_stack([numbers, np.roll(categories, -1, axis=1)])
    return Stream(rows, rng.integers(ENTITIES, size=N), kind >= 0, categories.shape[1])


def measured(layers: str, when: str, stream: Stream) -> dict[str, float]:
    """Return the figures of one stream."""
    x, entity, label, c = stream
    learner, d = OSLRAU(mixtures=layers == "mixtures"), x.shape[1] - c
    scorer, x = StreamScorer(learner, n_categories=c, **LAYERS[layers]), x.copy()
    if layers == "entity":
        levels = np.random.default_rng(73).normal(size=(ENTITIES, d))
        x[:, :d] += SHIFT * np.nanstd(x[:, :d], axis=0) * levels[entity]
    if when == "comes late":
        x[:COMES, -1] = np.nan
    block = scorer.process(x, entity.tolist() if layers == "entity" else None)
    return figures(np.nan_to_num(block.p_value, nan=1.0), label)


def figures(p_value: Array, label: Array) -> dict[str, float]:
    """Return the alarms of usual records, and how well faults are ranked."""
    alarms = (p_value <= RATE) / RATE
    soon, later = slice(COMES, COMES + SOON), slice(COMES + ENOUGH, None)
    settled = slice(SETTLED, None)
    truth, unusual = label[settled], -p_value[settled]
    return {
        "alarms soon": float(alarms[soon][~label[soon]].mean()),
        "alarms later": float(alarms[later][~label[later]].mean()),
        "area": float(roc_auc_score(truth, unusual)),
        "precision": float(average_precision_score(truth, unusual)),
    }


def means(found: list[dict[str, float]]) -> dict[str, str]:
    """Average each figure over the streams."""
    return {name: f"{np.mean([each[name] for each in found]):.3f}" for name in found[0]}
