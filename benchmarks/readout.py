"""What each part of the readout brings: from measures of a record to p-values and incidents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from faust_oslrau.learner import ScoredBlock
from faust_oslrau.learner.scoring.calibration import Calibration
from faust_oslrau.learner.scoring.reference import RECENT

from . import labelled
from .datasets import Array
from .detectors import boundaries
from .readout_variants import AS_IS, Scorer, Variant, variants
from .report import markdown, prose, write_report
from .systems import (
    CHOICES,
    EXCHANGEABLE,
    FINAL,
    changes,
    with_aftermaths,
    with_faults,
    with_lone,
    with_spikes,
)
from .systems.draws import System

Figures = dict[tuple[str, str], float]
"""A figure's value by its name and its stream."""

N = 12_000
N_USUAL = 20_000
N_FAULTS = 30_000
YOUNG = 1_000
"""Records after which rates are counted."""

FIRST = 256
"""Records after which rankings are compared."""

MISSING = 0.2
RATES = {".01": 0.01, ".001": 0.001}
KINDS = ("burst", "stuck", "lasting", "creep", "relation")

LOOKS = "readout-looks.md"
"""The file that says how often the final families were looked at, and what was found."""

TEXT = f"""\
Streams of the systems in `benchmarks/systems`, {{part}}, and labelled sets, {{sets}}. *Area* and
*precision* (average precision) are those of 1 - p-value, on systems with lone faults in 0.5 % of
{N:,} records, on those with {MISSING:.0%} of all values missing, and on labelled sets; *density* is
the log-likelihood in its place, ranked among its last {RECENT:,}. The columns with .01 and .001 are
shares of p-values at most that, over nominal: of usual systems after {YOUNG:,} of {N_USUAL:,}
records; of streams of {N:,} records that change for good at a random place; of exchangeable records
with codes, counts, flags and rounded numbers. *Repeated* is the share of equal spikes, every 500
records, with a p-value at most 0.001; *after* that of the records of bursts that follow a stuck
field. Faults in {N_FAULTS:,} records are *found* if an incident opens while they last, by kind;
*false* incidents overlap none, for each fault that is found. In all rows but the first, a part is
left out: the difference that it makes, with the paired standard error over streams; in **bold**
beyond two of these. *Plain* is a readout of some 40 lines."""


class Stream(NamedTuple):
    """A stream and what is to be measured on it."""

    name: str
    x: Array
    measure: Callable[[ScoredBlock], dict[str, float]]


@dataclass(frozen=True)
class Measured:
    """The figures of a variant, and its CPU time in microseconds per record."""

    figures: Figures
    micros: float


def run(out: Path, quick: bool, final: bool, learner: str) -> None:
    """What each part of the readout brings, on systems that served for choices or on the others."""
    seeds = 1 if quick else 2
    systems, sets = (FINAL, labelled.HELD_OUT) if final else (CHOICES, labelled.DEVELOPMENT)
    streams = [*streams_of(systems, seeds), *sets_of(sets[:2] if quick else sets)]
    chosen = variants(learner)
    names = [AS_IS, "plain"] if final or quick else [*chosen]
    found = {name: measured(chosen[name], streams) for name in names}
    rows = [row(name, found[name], found[AS_IS]) for name in names]
    part = "six kept for the end" if final else "six that serve for choices"
    text = prose(TEXT.format(part=part, sets="held out" if final else "those of development"))
    figures = {name: means(each.figures) for name, each in found.items()}
    name = f"readout-{learner}{'-final' if final else ''}"
    each = [prose("## By family"), markdown(by_family(found[AS_IS], systems))]
    write_report(out, name, [f"Readout, `{learner}`", text, *each], rows, figures)
    if final:
        note_look(out, learner, figures[AS_IS])


def note_look(out: Path, learner: str, figures: Mapping[str, float]) -> None:
    """Append a line on this look at the final families."""
    numbers = ", ".join(f"{name} {value:.3f}" for name, value in figures.items())
    with (out / LOOKS).open("a") as file:
        file.write(f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, `{learner}`: {numbers}\n")


def streams_of(systems: Mapping[str, System], seeds: int) -> Iterator[Stream]:
    """Generate the streams of some systems, and exchangeable ones."""
    for place, (name, system) in enumerate(systems.items()):
        for seed in range(seeds):
            rng = np.random.default_rng([61, place, seed])
            called = f"{name}, {seed}"
            lone = with_lone(system(rng, N), rng)
            yield Stream(called, lone.x, ranking("lone", lone.label > 0))
            missing = np.where(rng.random(lone.x.shape) < MISSING, np.nan, lone.x)
            missing[np.isnan(missing).all(axis=1), 0] = 0.0
            if missing.shape[1] > 2:
                yield Stream(called, missing, ranking("missing", lone.label > 0))
            yield Stream(called, system(rng, N_USUAL), rates("usual", YOUNG))
            yield Stream(called, changes(system, rng, N).x, rates("changed", FIRST))
            spikes = with_spikes(system(rng, N), rng)
            yield Stream(called, spikes.x, share("repeated", spikes.label > 0))
            after = with_aftermaths(system(rng, N), rng)
            is_burst = np.isin(after.label, 1 + np.flatnonzero(np.array(after.kinds) == "burst"))
            yield Stream(called, after.x, share("after", is_burst))
            for kind in KINDS:
                faulty = with_faults(system(rng, N_FAULTS), rng, kinds=(kind,))
                if faulty.kinds:
                    yield Stream(called, faulty.x, incidents(kind, faulty.label))
    for place, (name, draw) in enumerate(EXCHANGEABLE.items()):
        for seed in range(seeds):
            x = draw(np.random.default_rng([62, place, seed]), N_USUAL)
            yield Stream(f"{name}, {seed}", x, rates("exchangeable", YOUNG))


def sets_of(names: tuple[str, ...]) -> Iterator[Stream]:
    """Load the labelled sets."""
    for stream in labelled.real_streams(names, 1):
        yield Stream(stream.name, stream.x, ranking("labelled", stream.label))


def ranking(name: str, label: NDArray[np.bool_]) -> Callable[[ScoredBlock], dict[str, float]]:
    """Return what measures how well p-values, and log-likelihoods, rank the labelled records."""

    def measure(block: ScoredBlock) -> dict[str, float]:
        truth = label[FIRST:]
        if not truth.any():
            return {}
        found = {}
        density = ranked(block.log_likelihood)
        for prefix, usual in (("", block.p_value), ("density ", density)):
            if np.isnan(usual[FIRST:]).all():
                continue
            unusual = -np.nan_to_num(usual, nan=np.nanmax(usual))[FIRST:]
            found[f"{prefix}{name} area"] = float(roc_auc_score(truth, unusual))
            found[f"{prefix}{name} precision"] = float(average_precision_score(truth, unusual))
        return found

    return measure


def ranked(log_likelihood: Array) -> Array:
    """Return p-values (m,) of log-likelihoods alone: their ranks among the last before them."""
    p_value = np.full(len(log_likelihood), np.nan)
    for start, stop in boundaries(len(p_value)):
        recent = log_likelihood[max(start - RECENT, 0) : start]
        known = Calibration(np.sort(recent[~np.isnan(recent)]))
        p_value[start:stop] = known.p_value(log_likelihood[start:stop])
    return p_value


def rates(name: str, after: int) -> Callable[[ScoredBlock], dict[str, float]]:
    """Return what measures realised over nominal rates of p-values after some records."""

    def measure(block: ScoredBlock) -> dict[str, float]:
        found = realised(block.p_value[after:])
        return {f"{name} {written}": over for written, over in found.items()}

    return measure


def realised(p_value: Array) -> dict[str, float]:
    """Return realised over nominal rates of p-values (m,)."""
    return {written: float((p_value <= rate).mean() / rate) for written, rate in RATES.items()}


def share(name: str, label: NDArray[np.bool_]) -> Callable[[ScoredBlock], dict[str, float]]:
    """Return what measures which share of labelled records have a p-value at most 0.001."""

    def measure(block: ScoredBlock) -> dict[str, float]:
        return {name: float((block.p_value[label] <= 0.001).mean())}

    return measure


def incidents(kind: str, label: NDArray[np.int64]) -> Callable[[ScoredBlock], dict[str, float]]:
    """Return what measures how many faults have an incident, and how many incidents no fault."""

    def measure(block: ScoredBlock) -> dict[str, float]:
        found, false = set(), 0
        last = {e.incident.start: e.incident for e in block.incidents}  # as it was at its end
        for incident in last.values():
            found |= {label[incident.opened.number]} - {0}
            false += not label[incident.start.number : incident.latest.number + 1].any()
        n = len(np.unique(label)) - 1
        return {f"found {kind}": len(found) / n, "false": false / max(len(found), 1)}

    return measure


def measured(variant: Variant, streams: list[Stream]) -> Measured:
    """Measure a variant on all streams."""
    figures: Figures = {}
    began, records = time.process_time(), 0
    for number, stream in enumerate(streams):
        with variant.changed():
            scorer: Scorer = variant.make()
            block = scorer.process(stream.x)
        records += len(stream.x)
        for name, value in stream.measure(block).items():
            figures[name, f"{number}, {stream.name}"] = value
    micros = 1e6 * (time.process_time() - began) / records
    click.echo(f"{variant.name}: {means(figures)}, {micros:.1f} us", err=True)
    return Measured(figures, micros)


def means(figures: Figures) -> dict[str, float]:
    """Average each figure over its streams."""
    names = dict.fromkeys(name for name, _ in figures)
    return {
        name: float(np.mean([value for (own, _), value in figures.items() if own == name]))
        for name in names
    }


def row(name: str, found: Measured, whole: Measured) -> dict[str, object]:
    """Write a variant's figures: as they are, or against those of the whole readout."""
    written: dict[str, object] = {"variant": name}
    for figure, mean in means(whole.figures).items():
        if found is whole:
            written[figure] = f"{mean:.3f}"
            continue
        both = [
            (found.figures[key], value)
            for key, value in whole.figures.items()
            if key[0] == figure and key in found.figures
        ]
        written[figure] = difference(np.array(both)) if both else ""
    return written | {"us": f"{found.micros:.1f}"}


def difference(both: Array) -> str:
    """Write the mean difference (k, 2) with its standard error, bold beyond two of these."""
    gap = both[:, 0] - both[:, 1]
    mean, error = gap.mean(), gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.inf
    text = f"{mean:+.3f} ± {error:.3f}"
    return f"**{text}**" if abs(mean) > 2 * error else text


def by_family(found: Measured, systems: Mapping[str, System]) -> list[dict[str, object]]:
    """Write the rates, and the rankings beside those of the density, of each family."""
    rows = []
    for name in systems:
        own = {key: value for key, value in found.figures.items() if f", {name}," in f", {key[1]},"}
        rows.append({"family": name} | {key: f"{value:.3f}" for key, value in means(own).items()})
    columns = dict.fromkeys(key for row in rows for key in row)
    return [{key: row.get(key, "") for key in columns} for row in rows]
