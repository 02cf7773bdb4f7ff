"""The paper's studies of one parameter: correlation threshold, leaf size, early stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from .crossval import Run, Summary, cross_validate, evaluate, oslrau, summarise
from .datasets import Dataset
from .plan import Plan
from .plots import plot_study
from .report import LIKELIHOODS, NOISE, thousands, write_report, write_runs

THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
LEAF_SIZES = (1, 2, 3, 4, 5)
EARLY = 1 / 9
"""Share of the training data after which the early stop freezes the structure."""


def threshold(plan: Plan) -> None:
    """How log-likelihood, time and size follow the correlation threshold."""
    runs = cross_validate(plan, compare_thresholds)
    write_study(plan, "threshold", "Correlation threshold", runs)
    plot_study(plan.out / "threshold.png", "correlation threshold", summarise(runs))


def compare_thresholds(dataset: Dataset, fold: int) -> Iterator[Run]:
    for value in THRESHOLDS:
        yield evaluate(str(value), oslrau(corr_threshold=value), dataset, fold)


def leaf_size(plan: Plan) -> None:
    """How log-likelihood, time and size follow the most variables in a leaf."""
    runs = cross_validate(plan, compare_leaf_sizes)
    write_study(plan, "leaf-size", "Most variables in a multivariate leaf", runs)
    plot_study(plan.out / "leaf-size.png", "most variables in a leaf", summarise(runs))


def compare_leaf_sizes(dataset: Dataset, fold: int) -> Iterator[Run]:
    for value in LEAF_SIZES[: dataset.x.shape[1]]:
        yield evaluate(str(value), oslrau(max_leaf_vars=value), dataset, fold)


def early_stop(plan: Plan) -> None:
    """Structure learning on the first ninth of the data against all of it."""
    runs = cross_validate(plan, compare_early_stop)
    write_study(plan, "early-stop", "Early stop of structure learning", runs)


def compare_early_stop(dataset: Dataset, fold: int) -> Iterator[Run]:
    yield evaluate("full", oslrau(), dataset, fold)
    n = int(EARLY * np.count_nonzero(dataset.fold != fold))
    yield evaluate("early stop", oslrau(structure_until=n), dataset, fold)


def write_study(plan: Plan, name: str, title: str, runs: list[Run]) -> None:
    summaries = summarise(runs)
    plots = [] if name == "early-stop" else [f"{name}.png"]
    write_runs(plan.out, name, runs)
    write_report(
        plan.out, name, [title, LIKELIHOODS, NOISE],
        [row(summary) for summary in summaries],
        [asdict(summary) for summary in summaries],
        plots,
    )  # fmt: skip


def row(summary: Summary) -> dict[str, object]:
    return {
        "data set": summary.dataset,
        "": summary.method,
        "folds": summary.folds,
        "native": summary.native,
        "honest": summary.honest,
        "nodes": thousands(summary.nodes),
        "parameters": thousands(summary.parameters),
        "learning, s": f"{summary.learn_seconds:.2f}",
    }
