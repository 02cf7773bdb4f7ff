"""What a history sees: faults in sequences, against single records and peers that know the past."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from river.anomaly import HalfSpaceTrees
from river.preprocessing import MinMaxScaler
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from faust_oslrau.learner import OSLRAU, StreamScorer

from .datasets import Array
from .learners import WITH_MIXTURES
from .report import environment, markdown, prose, write_page
from .sequence_rates import HISTORY, found_faults, goals, usual, without_memory
from .timed import DEVELOPMENT, FIRST_FAULT, HELD_OUT, Base, with_faults

FORGET = 0.999
"""Weight of a record in the autoregression, as a share of that of the next one."""

SHINGLE = 8
"""Records of a shingle."""

EVERY = 4
"""The forest with shingles learns every so many of them, as it is slow."""

Scores = Mapping[str, Array]

TEXT = """\
Sequences of 6 fields with faults from record 4,000 on: values that are stuck, shifts of level,
added variance and fields that no longer belong to the others, of 60 records each (*lasting*), and
single records that are far from the ones before. Area under the ROC curve and average precision
against the records without a fault, means of two seeds. *Record* is the p-value, *given the past*
minus the log-likelihood. The records after a fault count as usual, although their history still
holds it. *Mixtures* has mixtures beside the network. *VAR* is a recursive vector
autoregression of one lag with a full covariance; *trees* are River's HalfSpaceTrees on shingles of
8 records."""

RATES_TEXT = """\
## Alarms and likelihood

Sequences without faults, from record 4,000 on, means of twelve seeds: share of the records with a
p-value at most 0.01 and 0.001, and the mean log-likelihood. The goal is 1.5 times the nominal rate.
*Learner* is `oslrau`, alone or with `mixtures`. *Known regimes* are those with at least 500
records so far: the first records of a regime are unusual."""

FOUND_TEXT = """\
## Alarms of faults that last

Without and with a history: faults of 60 records with an alarm at the rate; how many records of the
fault came before it (median), and how many alarms such a fault has on average."""

MEMORYLESS_TEXT = """\
## Records that do not depend on each other

What a history costs there: the difference of mean log-likelihoods, and the rates without and with
it, from record 4,000 on, means of two seeds of 16,000 records of 8 fields. The goal for a history
by default is a loss of at most 0.02 nats."""

FILES_TEXT = """\
## Files

Runs with labels `y`: faults as found with one threshold for all runs (F1, the best one), and area
under the ROC curve, mean of the runs. The goals are an F1 of 0.70 and an area of 0.80. *32 records*
are means of the surprise over 32 records."""


def run(out: Path, quick: bool, files: tuple[Path, ...] = ()) -> None:
    """Faults in sequences: a history against single records, an autoregression and trees."""
    n, seeds = (6000, 1) if quick else (24_000, 2)
    blocks, figures = ["Sequences", prose(TEXT)], []
    for title, families in (("Held-out families", HELD_OUT), ("Development families", DEVELOPMENT)):
        found = [row for name, base in families.items() for row in faults(name, base, n, seeds)]
        figures += found
        blocks += [f"## {title}", markdown([rounded(row) for row in found])]
        click.echo(blocks[-1], err=True)
    every: Mapping[str, Base] = {**HELD_OUT, **DEVELOPMENT}
    if quick:
        every = {"memoryless": DEVELOPMENT["memoryless"]}
    repeats = 1 if quick else 12
    rates = [row for name, base in every.items() for row in usual(name, base, n, repeats)]
    alarmed = [row for name, base in every.items() for row in found_faults(name, base, n, seeds)]
    memoryless = list(without_memory(5000 if quick else 16_000, seeds))
    tables = [(RATES_TEXT, [goals(), *rates]), (FOUND_TEXT, alarmed), (MEMORYLESS_TEXT, memoryless)]
    if files:
        tables.append((FILES_TEXT, list(runs(files))))
    for text, rows in tables:
        blocks += [prose(text), markdown([rounded(row) for row in rows])]
        figures += rows
    write_page(out, "sequences", blocks, {"figures": figures}, "benchmarks", environment())


def single(x: Array) -> Scores:
    block = StreamScorer(OSLRAU()).process(x)
    return {"single records": surprise(block.p_value)}


def with_past(x: Array) -> Scores:
    block = StreamScorer(OSLRAU(), history=HISTORY).process(x)
    return {
        "history: record": surprise(block.p_value),
        "history: given the past": -np.nan_to_num(block.log_likelihood),
    }


def with_mixtures(x: Array) -> Scores:
    block = StreamScorer(WITH_MIXTURES(), history=HISTORY).process(x)
    return {"mixtures: record": surprise(block.p_value)}


def peers(x: Array) -> Scores:
    return {"VAR": autoregression(x), "trees": trees(x)}


def surprise(p_value: Array) -> Array:
    return np.asarray(-np.log(np.where(np.isnan(p_value), 1.0, p_value)))


def autoregression(x: Array) -> Array:
    """Score each record (n,) by a recursive least-squares prediction from the one before.

    Units come from the first 200 records.
    """
    d = x.shape[1]
    P, B, C = np.eye(d + 1), np.zeros((d + 1, d)), np.eye(d)
    Z = (x - x[:200].mean(axis=0)) / (x[:200].std(axis=0) + 1e-12)
    score = np.zeros(len(x))
    for t in range(1, len(Z)):
        z = np.r_[1.0, Z[t - 1]]
        error = Z[t] - z @ B
        solved = np.linalg.solve(C, error)
        score[t] = error @ solved + np.linalg.slogdet(C)[1]
        gain = P @ z / (FORGET + z @ P @ z)
        B += np.outer(gain, error)
        P = (P - np.outer(gain, z @ P)) / FORGET
        share = max(1.0 / (t + 1), 1.0 - FORGET)
        C = (1.0 - share) * C + share * (np.outer(error, error) + 1e-6 * np.eye(d))
    return score


def trees(x: Array) -> Array:
    """Score each record (n,) by River's trees on the last records, scaled to [0, 1]."""
    scaler, forest, score = MinMaxScaler(), HalfSpaceTrees(seed=0), np.zeros(len(x))
    for t in range(SHINGLE, len(x)):
        row = dict(enumerate(x[t - SHINGLE + 1 : t + 1].ravel().tolist()))
        scaler.learn_one(row)
        scaled = scaler.transform_one(row)
        score[t] = forest.score_one(scaled)
        if t % EVERY == 0:
            forest.learn_one(scaled)
    return score


METHODS: tuple[Callable[[Array], Scores], ...] = (single, with_past, with_mixtures, peers)


def faults(name: str, base: Base, n: int, seeds: int) -> Iterator[dict[str, object]]:
    """Yield the figures of each method on the sequences of one family."""
    found: dict[str, list[Array]] = {}
    for seed in range(seeds):
        sequence = with_faults(base, np.random.default_rng([seed, len(name)]), n)
        late = np.arange(n) >= FIRST_FAULT
        usual_rows = late & ~(sequence.lasting | sequence.single)
        for method in METHODS:
            for label, score in method(sequence.x).items():
                pair = [quality(score, usual_rows, kind)
                        for kind in (sequence.lasting, sequence.single)]  # fmt: skip
                found.setdefault(label, []).append(np.ravel(pair))
        click.echo(f"{name}: {seed}", err=True)
    for label, values in found.items():
        area, precision, of_single, its_precision = np.mean(values, axis=0).tolist()
        yield {
            "family": name, "score": label, "lasting: area": area, "AP": precision,
            "single: area": of_single, "its AP": its_precision,
        }  # fmt: skip


def quality(score: Array, usual_rows: NDArray[np.bool_], kind: NDArray[np.bool_]) -> Array:
    rows = usual_rows | kind
    label = kind[rows]
    if not label.any():
        return np.array([np.nan, np.nan])
    return np.array(
        [roc_auc_score(label, score[rows]), average_precision_score(label, score[rows])]
    )


def runs(files: tuple[Path, ...]) -> Iterator[dict[str, object]]:
    """Yield how well labelled runs are ranked, with one threshold for all of them."""
    found: dict[str, list[tuple[Array, Array]]] = {}
    for file in files:
        with np.load(file) as arrays:
            x, y = arrays["x"].astype(np.float64), arrays["y"].astype(bool)
        if not y.any():
            continue
        scores = {**single(x), **with_past(x), **with_mixtures(x), "VAR": autoregression(x)}
        for label, score in scores.items():
            found.setdefault(label, []).append((score, y))
            found.setdefault(f"{label}, 32 records", []).append((trailing(score), y))
    for label, pairs in found.items():
        score, y = (np.concatenate(column) for column in zip(*pairs, strict=True))
        precision, recall, _ = precision_recall_curve(y, score)
        best = (2 * precision * recall / np.maximum(precision + recall, 1e-12)).max()
        areas = [roc_auc_score(y, score) for score, y in pairs]
        yield {"score": label, "F1": float(best), "area": float(np.mean(areas))}


def trailing(score: Array, length: int = 32) -> Array:
    total, end = np.cumsum(np.r_[0.0, score]), np.arange(1, len(score) + 1)
    start = np.maximum(end - length, 0)
    return np.asarray((total[end] - total[start]) / (end - start))


def rounded(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row of a table."""
    return {name: f"{value:.{4 if ' 0.0' in name else 2}f}" if isinstance(value, float) else value
            for name, value in row.items()}  # fmt: skip
