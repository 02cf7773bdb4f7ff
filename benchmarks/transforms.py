"""What fields learned as logarithms gain in log-likelihood."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from faust_oslrau.learner import OSLRAU, StreamScorer

from .families import Family, clusters, counts, factors, heavy_tails
from .report import write_report

N, D = 30_000, 6
TEXT = (
    f"Mean log-likelihood of the second half of {N:,} records of {D} fields, each scored before it "
    "is learned, in nats per record and in the fields' own units: with the transform on every "
    "field, and without."
)


def latencies(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Draw log-normal fields that rise and fall together."""
    return np.asarray(np.exp(1.5 * factors(rng, n, d)))


CASES: list[tuple[str, Family, str]] = [
    ("log-normal, correlated", latencies, "log"),
    ("counts", counts, "log1p"),
    ("Student's t, 3 degrees of freedom", heavy_tails, "asinh"),
    ("Gaussian clusters", clusters, "asinh"),
]


def mean_score(rows: np.ndarray, transforms: dict[int, str]) -> float:
    """Return the mean of the second half of the stream."""
    block = StreamScorer(OSLRAU(), transforms=transforms).process(rows)
    return float(block.log_likelihood[len(rows) // 2 :].mean())


def run(out: Path, quick: bool) -> None:
    """Transforms of skewed fields, counts and heavy tails against none."""
    figures = []
    for name, family, transform in CASES:
        rows = family(np.random.default_rng(0), 2000 if quick else N, D)
        plain = mean_score(rows, {})
        changed = mean_score(rows, dict.fromkeys(range(D), transform))
        figures.append({
            "stream": name, "transform": transform, "without": plain, "with": changed,
            "gain": changed - plain,
        })  # fmt: skip
    shown = [
        {key: f"{x:.2f}" if isinstance(x, float) else x for key, x in figure.items()}
        for figure in figures
    ]
    write_report(out, "transforms", ["What transforms gain", TEXT], shown, figures)
