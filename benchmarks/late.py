"""Fields that come late: alarms when they come, and whether faults are found that they show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.stream.late import ENOUGH

from .datasets import Array
from .report import prose, write_report
from .systems import CHOICES, System

COMES, N = 10_000, 24_000
SOON = 1_024
RATE = 0.01
ENTITIES = 40
SHIFT = 2.0
EVERY = 100
SETTLED = COMES + ENOUGH + SOON

TEXT = f"""\
Streams of the families on which choices may be made and which have several fields, two of each, of
{N:,} records. The last field is missing in the first {COMES:,}, beside the same streams with it; in
one record of {EVERY} it has the value of another one of these, as a fault. *Alarms* are the other
records with a p-value of at most {RATE}, over nominal: in the first {SOON:,} records with the
field, and from {SETTLED - COMES:,} records after it came on. *Area* and *precision* are how well
p-values rank these faults from there on. With entities, records are of {ENTITIES} by chance, which
differ by {SHIFT:g} spreads in each field."""

LAYERS = {
    "plain": {},
    "mixtures": {},
    "history": {"history": ("10",)},
    "entity": {"max_entities": ENTITIES},
}


def run(out: Path, quick: bool) -> None:
    """Fields that first come after thousands of records: alarms, and faults that are found."""
    systems = [system for name, system in CHOICES.items() if name != "retries"]
    systems = systems[: 2 if quick else None]
    rows = [
        {"layers": layers, "the last field": when}
        | means([measured(layers, when, *each) for each in streams(systems)])
        for layers in LAYERS
        for when in ("comes late", "is always there")
    ]
    write_report(out, "late", ["Fields that come late", prose(TEXT)], rows, {"rows": rows})


def streams(systems: list[System]) -> list[tuple[int, int, System]]:
    """Return place, seed and system of each stream."""
    return [(place, seed, system) for place, system in enumerate(systems) for seed in range(2)]


def measured(layers: str, when: str, place: int, seed: int, system: System) -> dict[str, float]:
    """Return the figures of one stream."""
    rng = np.random.default_rng([71, place, seed])
    x, entity, label = (
        system(rng, N).copy(),
        rng.integers(ENTITIES, size=N),
        rng.random(N) * EVERY < 1,
    )
    x[label, -1] = rng.permutation(x[label, -1])
    scorer = StreamScorer(OSLRAU(mixtures=layers == "mixtures"), **LAYERS[layers])
    if layers == "entity":
        x += SHIFT * np.nanstd(x, axis=0) * rng.normal(size=(ENTITIES, x.shape[1]))[entity]
    if when == "comes late":
        x[:COMES, -1] = np.nan
    block = scorer.process(x, entity.tolist() if layers == "entity" else None)
    return figures(np.nan_to_num(block.p_value, nan=1.0), label)


def figures(p_value: Array, label: Array) -> dict[str, float]:
    """Return the alarms of usual records, and how well faults are ranked."""
    alarms = (p_value <= RATE) / RATE
    soon, settled = slice(COMES, COMES + SOON), slice(SETTLED, None)
    truth, unusual = label[settled], -p_value[settled]
    return {
        "alarms soon": float(alarms[soon][~label[soon]].mean()),
        "alarms later": float(alarms[settled][~truth].mean()),
        "area": float(roc_auc_score(truth, unusual)),
        "precision": float(average_precision_score(truth, unusual)),
    }


def means(found: list[dict[str, float]]) -> dict[str, str]:
    """Average each figure over the streams."""
    return {name: f"{np.mean([each[name] for each in found]):.3f}" for name in found[0]}
