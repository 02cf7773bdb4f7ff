"""How often a stationary stream raises an alarm, against the rate that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import numpy as np

from faust_oslrau.learner import OSLRAU, StreamScorer

from .datasets import Array, load_file
from .families import clusters, discrete, factors, heavy_tails
from .plots import plot_rates
from .report import prose, write_report
from .systems import EXCHANGEABLE

RATES = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
STATED = (0.01, 0.001)
"""The rates that the table shows."""

FIELDS = 8

JITTER = 0.1
"""Deviation of the noise added to resampled rows, in deviations of each field."""

DRIFT = 3.0
"""Deviations that each field moves over the whole of a drifting stream."""

CHUNK = 50_000

TEXT = """\
Records of streams that do not change, after the first 10,000, whose p-value is at most the nominal
rate: realised over nominal, 1 is exact. Data sets are resampled with jitter of a tenth of each
field's deviation, so that a million records are a million different ones. *Atoms* has flags, whole
numbers and values that are often zero. *Slow drift* moves each field by three deviations over the
whole stream. The streams from *status codes* on have exchangeable records, most of them with values
that repeat: equal records get about equal p-values there, and at most the nominal rate is wanted.
The learner is a worker's default."""

Source = Callable[[np.random.Generator, int], Array]


def run(out: Path, quick: bool, files: tuple[Path, ...] = ()) -> None:
    """Realised alarm rates over a million records, against the nominal ones."""
    n = 30_000 if quick else 1_000_000
    rows, curves = [], {}
    for name, chunks in streams(n, files):
        counts, counted = alarms(chunks, after=n // 100)
        ratios = counts / (counted * np.array(RATES))
        curves[name] = [*zip(RATES, ratios.round(4).tolist(), strict=True)]
        rows.append({"stream": name, "records": f"{counted:,}"} | stated(ratios))
        click.echo(f"{name}: {rows[-1]}", err=True)
    plot_rates(out / "calibration.png", curves)
    write_report(
        out, "calibration", ["Calibration", prose(TEXT)],
        rows, curves, ["calibration.png"],
    )  # fmt: skip


def stated(ratios: Array) -> dict[str, object]:
    return {f"at {rate}": f"{ratios[RATES.index(rate)]:.3f}" for rate in STATED}


def alarms(chunks: Iterator[Array], after: int) -> tuple[Array, int]:
    """Count the p-values at most each rate, and the records, from number ``after`` on."""
    scorer = StreamScorer(OSLRAU())
    counts, seen = np.zeros(len(RATES)), 0
    for rows in chunks:
        p_value = scorer.process(rows).p_value[max(after - seen, 0) :]
        counts += [np.count_nonzero(p_value <= rate) for rate in RATES]
        seen += len(rows)
    return counts, seen - after


def streams(n: int, files: tuple[Path, ...]) -> Iterator[tuple[str, Iterator[Array]]]:
    """Return the streams by name, each as chunks with ``n`` rows in total."""
    families = {
        "correlations": factors, "clusters": clusters, "heavy tails": heavy_tails,
        "atoms": discrete,
    }  # fmt: skip
    for name, family in families.items():
        rng = np.random.default_rng(0)
        yield name, chunked(family(rng, n, FIELDS))
    x = factors(np.random.default_rng(0), n, FIELDS)
    yield "slow drift", chunked(x + DRIFT * x.std(axis=0) * np.linspace(0, 1, n)[:, None])
    for name, draw in EXCHANGEABLE.items():
        yield name, chunked(draw(np.random.default_rng(0), n))
    for path in files:
        yield path.stem, resampled(load_file(path).x, n)


def chunked(x: Array) -> Iterator[Array]:
    return (x[start : start + CHUNK] for start in range(0, len(x), CHUNK))


def resampled(x: Array, n: int) -> Iterator[Array]:
    """Draw rows with replacement and add a little noise."""
    rng = np.random.default_rng(0)
    for start in range(0, n, CHUNK):
        rows = x[rng.integers(len(x), size=min(CHUNK, n - start))]
        yield rows + JITTER * x.std(axis=0) * rng.normal(size=rows.shape)
