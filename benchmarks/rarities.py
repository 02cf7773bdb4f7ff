"""Labelled streams: tight groups of anomalies that keep coming, lone ones, and real sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from .contamination import Stream, contaminate, inflate, scatter, shift, spike
from .datasets import Array
from .families import discrete, factors, heavy_tails

N_STREAMS = 40
N_RECORDS = 3_000
FEWEST_FIELDS, MOST_FIELDS = 3, 30
SHARES = (0.003, 0.1)
"""Least and largest share of a group, drawn evenly on a logarithmic scale."""

MOST_CLUSTERS = 5
MOST_ROWS = 5_000
WIDEST = 100
"""Fields from which on a real set is left out."""


def groups() -> Iterator[Stream]:
    """Generate one to five correlated clusters with a tight group of anomalies apart from them."""
    for seed in range(N_STREAMS):
        rng = np.random.default_rng([seed, 1])
        d = int(rng.integers(FEWEST_FIELDS, MOST_FIELDS + 1))
        share = float(np.exp(rng.uniform(*np.log(SHARES))))
        x = usual_clusters(rng, int(rng.integers(1, MOST_CLUSTERS + 1)), d)
        label = rng.random(N_RECORDS) < share
        x[label] = group(rng, x, int(label.sum()))
        yield Stream(f"group {seed}, {d} fields, {share:.1%}", x, label)


def usual_clusters(rng: np.random.Generator, k: int, d: int) -> Array:
    """Draw Gaussian clusters (n, d), each with its own place and correlations."""
    centres = rng.normal(scale=3.0, size=(k, d))
    member = rng.choice(k, size=N_RECORDS, p=rng.dirichlet(np.full(k, 3.0)))
    rows = np.stack([factors(rng, N_RECORDS, d) for _ in range(k)])
    return np.asarray(centres[member] + rows[member, np.arange(N_RECORDS)])


def group(rng: np.random.Generator, x: Array, m: int) -> Array:
    """Draw ``m`` rows close together, a few deviations from a usual record in some fields."""
    d = x.shape[1]
    off = rng.uniform(1.0, 2.5, d) * rng.choice([-1.0, 1.0], d)
    off *= rng.permutation(d) < max(1, d // 4)
    width = rng.uniform(0.02, 0.2)
    centre = x[rng.integers(len(x))] + off * x.std(axis=0)
    return np.asarray(centre + width * x.std(axis=0) * rng.normal(size=(m, d)))


def scattered() -> Iterator[Stream]:
    """Generate heavy tails, discrete columns and correlated factors with lone anomalies."""
    families = {"heavy tails": heavy_tails, "discrete": discrete, "factors": factors}
    for seed in range(N_STREAMS):
        rng = np.random.default_rng([seed, 2])
        name = list(families)[seed % len(families)]
        d = int(rng.integers(FEWEST_FIELDS, MOST_FIELDS + 1))
        share = float(np.exp(rng.uniform(*np.log(SHARES))))
        usual = families[name](rng, N_RECORDS, d)
        kinds = (spike, shift, scatter, inflate)
        yield contaminate(f"{name} {seed}, {d} fields, {share:.1%}", usual, share, kinds, rng)


def sets(folder: Path) -> Iterator[Stream]:
    """Read the labelled sets ``NAME.npz`` of a folder in order of names; without it, none."""
    if not folder.is_dir():
        click.echo(f"{folder}: skipped, no such folder", err=True)
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            x, label = file["x"][:MOST_ROWS].astype(np.float64), file["y"][:MOST_ROWS] == 1
        if x.shape[1] <= WIDEST:
            yield Stream(path.stem, x, label)
