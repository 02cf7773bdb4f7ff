"""oSLRAU against simpler densities on the same folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from .crossval import Run, Summary, cross_validate, evaluate, oslrau, oslrau_default, summarise
from .datasets import Dataset
from .mixtures import N_COMPONENTS, offline_mixture, online_mixture, single_gaussian
from .plan import Plan
from .random_structure import random_structure
from .report import LIKELIHOODS, NOISE, prose, thousands, write_report, write_runs

METHODS = f"""\
oSLRAU has the settings of Table 1. *Default* is `OSLRAU()` as a stream gets it, in mini-batches
of 256 and within 2,000 nodes; its variance floor counts in native too. *Random structure* is a
random tree of at least as many nodes with the same parameter learning. *Online EM* is a mixture
of {N_COMPONENTS} Gaussians with full covariances in the same mini-batches, with Cappé and
Moulines' step size. All of these see each row once. *scikit-learn* fits such a mixture offline,
in many passes. *Gaussian* is a single one."""


def run(plan: Plan) -> None:
    """oSLRAU beside a Gaussian, mixtures online and offline, and a random structure."""
    runs = cross_validate(plan, compare)
    summaries = summarise(runs)
    write_runs(plan.out, "baselines", runs)
    write_report(
        plan.out, "baselines",
        ["Baselines", prose(METHODS), LIKELIHOODS, NOISE],
        [row(summary) for summary in summaries],
        [asdict(summary) for summary in summaries],
    )  # fmt: skip


def compare(dataset: Dataset, fold: int) -> Iterator[Run]:
    learned = evaluate("oSLRAU", oslrau(), dataset, fold)
    yield learned
    yield evaluate("oSLRAU, default", oslrau_default, dataset, fold)
    yield evaluate("random structure", random_structure(learned.nodes, fold), dataset, fold)
    yield evaluate("online EM", online_mixture, dataset, fold)
    yield evaluate("scikit-learn", offline_mixture, dataset, fold)
    yield evaluate("Gaussian", single_gaussian, dataset, fold)


def row(summary: Summary) -> dict[str, object]:
    return {
        "data set": summary.dataset,
        "method": summary.method,
        "folds": summary.folds,
        "native": summary.native,
        "honest": summary.honest,
        "nodes": thousands(summary.nodes),
        "parameters": thousands(summary.parameters),
        "learn, points/s": thousands(summary.learn_rate),
    }
