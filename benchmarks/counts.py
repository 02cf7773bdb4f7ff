"""Fields that count events: as counts, as numbers, and on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from faust_oslrau.learner import OSLRAU, StreamScorer

from .report import markdown, prose, write_report

FloatArray = NDArray[np.float64]
Row = dict[str, object]
Family = Callable[[np.random.Generator, int], tuple[FloatArray, FloatArray]]
"""Returns counts (n, 4) and, where they belong to them, other numbers (n, 4)."""

WARM_UP = 2000
"""First records of a stream, which do not count."""

FAULTS = 20
"""Faults of each kind."""

TREATMENTS: Mapping[str, str | None] = {"numbers": None, "log1p": "log1p", "counts": "count"}

TEXT = """\
Streams of 12,000 records of four counts and four other numbers, with 20 faults of each of three
kinds: a count far above its mean, one of the two larger counts far below it, another number 4.5
deviations off. *Area* is the area under the ROC curve of the p-value for each kind, *AP* the
average precision for all, *gain* that less the one of numbers, by pairs, ± standard errors over the
streams. *Rate* is the realised over the nominal rate of usual records. Families of *choices* served
to choose how counts are learned; those *held out* were looked at once."""


def run(out: Path, quick: bool) -> None:
    """Anomalies of counts, learned in three ways."""
    n, seeds = (4000, 2) if quick else (12_000, 4)
    tables, figures = [], []
    for title, families in (("Choices", CHOICES), ("Held out", HELD_OUT)):
        found = [
            row for name, family in families.items() for row in measured(name, family, n, seeds)
        ]
        tables += [f"## {title}", markdown(found)]
        figures += found
        click.echo("\n".join(tables[-2:]), err=True)
    blocks = ["Counts", prose(TEXT), *tables[:-1]]
    write_report(out, "counts", blocks, found, figures)


def measured(name: str, family: Family, n: int, seeds: int) -> list[Row]:
    """Return the figures of one family for each way."""
    by: dict[str, list[FloatArray]] = {label: [] for label in TREATMENTS}
    for seed in range(seeds):
        X, kind = stream(family, np.random.default_rng([17, seed, n]), n)
        for label, transform in TREATMENTS.items():
            named = {} if transform is None else dict.fromkeys(range(4), transform)
            p = StreamScorer(OSLRAU(), transforms=named).process(X).p_value[WARM_UP:]
            by[label].append(figures_of(p, kind[WARM_UP:]))
    rows = []
    for label, values in by.items():
        mean = np.mean(values, axis=0)
        gains = np.array(values)[:, 3] - np.array(by["numbers"])[:, 3]
        error = gains.std(ddof=1) / np.sqrt(seeds)
        names = ("area: high", "area: low", "area: other", "AP", "rate .01", "rate .001")
        row: Row = {"family": name, "learned as": label}
        row |= {which: f"{value:.3f}" for which, value in zip(names, mean, strict=True)}
        rows.append(row | {"gain": f"{gains.mean():+.3f} ± {error:.3f}"})
    return rows


def figures_of(p: FloatArray, kind: NDArray[np.int64]) -> FloatArray:
    """Return areas of the three kinds, average precision, and two rates."""
    unusual, usual = -np.log(p), kind == 0
    areas = [
        roc_auc_score((kind == k)[usual | (kind == k)], unusual[usual | (kind == k)])
        for k in (1, 2, 3)
    ]
    rates = [np.mean(p[usual] <= alpha) / alpha for alpha in (0.01, 0.001)]
    return np.array([*areas, average_precision_score(~usual, unusual), *rates])


def stream(
    family: Family, rng: np.random.Generator, n: int
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return rows (n, 8) and the kind (n,) of the fault in each, 0 for none."""
    counts, others = family(rng, n)
    kind = np.zeros(n, np.int64)
    at = rng.choice(np.arange(WARM_UP, n), 3 * FAULTS, replace=False)
    kind[at] = np.repeat([1, 2, 3], FAULTS)
    mean, deviation, spread = counts.mean(axis=0), counts.std(axis=0), others.std(axis=0)
    for row in at.tolist():
        if kind[row] == 1:
            field = rng.integers(4)
            counts[row, field] += np.ceil(mean[field] + 4 * deviation[field] + 2)
        elif kind[row] == 2:
            field = rng.integers(2, 4)
            counts[row, field] = 0 if rng.random() < 0.7 else counts[row, field] // 6
        else:
            field = rng.integers(4)
            others[row, field] += rng.choice([-4.5, 4.5]) * spread[field]
    return np.column_stack([counts, others]), kind


def small(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Small counts of Poisson's distribution, beside numbers that move together."""
    others = rng.normal(size=(n, 1)) * rng.normal(size=4) + 0.5 * rng.normal(size=(n, 4))
    return rng.poisson([0.05, 0.2, 1.0, 5.0], (n, 4)).astype(float), others


def load(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Counts that follow a load, as the numbers beside them do."""
    level = 0.14 * np.cumsum(rng.normal(0, 0.05, n)) + 0.5 * rng.normal(size=n)
    counts = rng.poisson(np.exp(level)[:, None] * [0.3, 2.0, 10.0, 60.0]).astype(float)
    return counts, level[:, None] + 0.3 * rng.normal(size=(n, 4))


def overdispersed(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Negative binomial counts."""
    means = rng.gamma(1.5, np.array([0.1, 0.5, 3.0, 20.0]) / 1.5, (n, 4))
    return rng.poisson(means).astype(float), rng.normal(size=(n, 4))


def zeros(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Counts of which half are zero."""
    counts = (rng.random((n, 4)) < 0.5) * rng.poisson([0.2, 3.0, 8.0, 30.0], (n, 4))
    return counts.astype(float), rng.normal(size=(n, 4))


def queues(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Lengths of queues, each a walk that is served, beside waiting times."""
    counts = np.zeros((n, 4))
    for i in range(1, n):
        served = rng.poisson([0.6, 1.5, 5.0, 14.0])
        counts[i] = np.maximum(counts[i - 1] + rng.poisson([0.3, 1.1, 4.2, 12.5]) - served, 0)
    return counts, np.log1p(counts) + 0.4 * rng.normal(size=(n, 4))


def visits(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Visits a minute with a daily course, and what they cause."""
    course = 1.2 + np.sin(2 * np.pi * np.arange(n) / 1440)
    counts = rng.poisson(course[:, None] * [0.1, 1.0, 4.0, 40.0]).astype(float)
    return counts, 0.05 * counts[:, 3:] + 0.3 * rng.normal(size=(n, 4))


def defects(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Defects in samples of 50, at rates of two products."""
    product = rng.integers(2, size=(n, 1))
    rates = np.where(product, [0.002, 0.02, 0.2, 0.4], [0.004, 0.01, 0.1, 0.5])
    return rng.binomial(50, rates).astype(float), 2.0 * product + 0.5 * rng.normal(size=(n, 4))


def retries(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Tries until success: mostly one, sometimes many."""
    tries = rng.geometric([0.95, 0.8, 0.4, 0.1], (n, 4)) - 1
    return tries.astype(float), 0.1 * tries.sum(axis=1, keepdims=True) + rng.normal(size=(n, 4))


CHOICES = {"small": small, "load": load, "overdispersed": overdispersed, "zeros": zeros}
HELD_OUT = {"queues": queues, "visits": visits, "defects": defects, "retries": retries}
