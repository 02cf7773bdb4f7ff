"""Table 1 of the paper: oSLRAU on seven data sets, ten folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from .crossval import Run, Summary, cross_validate, evaluate, oslrau, summarise
from .datasets import Dataset
from .paper import OSLRAU
from .plan import Plan
from .report import LIKELIHOODS, NOISE, prose, thousands, write_report, write_runs

REPAIR = """\
One error of the authors' code is repaired here: with mini-batches over 1, a product that collapsed
while a sum served its children sent the rows of one child to another. On kinematics the paper's
figure depends on it."""


def run(plan: Plan) -> None:
    """Table 1 of the paper: log-likelihood, size and speed."""
    runs = cross_validate(plan, compare)
    summaries = summarise(runs)
    write_runs(plan.out, "table1", runs)
    write_report(
        plan.out, "table1",
        ["Table 1: oSLRAU as in the paper", LIKELIHOODS, prose(REPAIR), NOISE],
        [row(summary) for summary in summaries],
        [asdict(summary) for summary in summaries],
    )  # fmt: skip


def compare(dataset: Dataset, fold: int) -> Iterator[Run]:
    yield evaluate("oSLRAU", oslrau(), dataset, fold)


def row(summary: Summary) -> dict[str, object]:
    return {
        "data set": summary.dataset,
        "folds": summary.folds,
        "paper": OSLRAU.get(summary.dataset, ""),
        "native": summary.native,
        "honest": summary.honest,
        "nodes": thousands(summary.nodes),
        "parameters": thousands(summary.parameters),
        "learn, points/s": thousands(summary.learn_rate),
        "score, points/s": thousands(summary.score_rate),
    }
