"""oSLRAU against other densities on the same folds, and on streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from faust_oslrau.learner import compile_kernels

from . import baseline_streams
from .baseline_streams import default, with_mixtures
from .crossval import (
    Estimate,
    Run,
    Summary,
    cross_validate,
    evaluate,
    oslrau,
    summarise,
)
from .datasets import LARGE, Dataset
from .mixtures import N_COMPONENTS, offline_mixture, single_gaussian
from .opponents import FEW, HOURS, QUICK, fits
from .opponents.sizes import MOST_HELD_OUT, MOST_SEEN, Size
from .plan import Plan
from .prequential import short
from .random_structure import random_structure
from .report import (
    LIKELIHOODS,
    NOISE,
    far_records,
    markdown,
    prose,
    thousands,
    write_report,
    write_runs,
)

ENORMOUS = 1e4

SLOW_FOLDS = 2
"""Test folds of the opponents that are not quick."""

METHODS = f"""\
oSLRAU has the settings of Table 1. *Default* is `OSLRAU()` as a stream gets it, in mini-batches
of 256 and within 2,000 nodes; its own variance floor, a share of the variance of the first records,
counts in native too. *Mixtures* is `OSLRAU(mixtures=True)`, as a stream. The honest floor
of both is in the data's units. *Random structure* is a random tree of at least as many nodes as
oSLRAU's with the same parameter learning. *Online EM* (Cappé and Moulines' step size) and *moment
matching* (online, Bayesian) learn the parameters of such a tree, or of a mixture of {N_COMPONENTS}
Gaussians with full covariances. *Online RealNVP* takes a step for every 100 rows; *precision
matrix* is River's, as one Gaussian. All of these see each row once.

The others are learned offline, from all rows at once. *scikit-learn* fits a mixture of
{N_COMPONENTS} Gaussians, *Gaussian* is a single one. *RealNVP* and the *Einsum network* (SPFlow)
are trained until the loss on a tenth of the training rows, at most {MOST_HELD_OUT:,}, stops
falling, or until the end of the epoch in which they have seen {MOST_SEEN:,} rows: on flow_size the
first, so that RealNVP sees each row there once at most. *Boltzmann machines* are
two, stacked; their log-likelihood is estimated by importance samples of hidden units, with a
normalising constant by annealed importance sampling. The *moment matching network* has Parzen
windows around 10,000 samples. The *kernel density* takes up to 10,000 random rows, the *vine
copula* (pyvinecopulib, with kernels for single fields) 5,000. RealNVP, the machines and the moment
matching network have about as many parameters as oSLRAU's, the Einsum network at most as many.
Nothing was chosen on a test fold.

A floor for RealNVP is Gaussian noise of that variance on the test records: the mean density of 16
draws, whose logarithm is a little low. The vine is fitted to records with such noise. Opponents
that take minutes are run on the first {SLOW_FOLDS} test folds. Where there are {LARGE:,} rows or
more, these learn {FEW:,} random ones: {"; ".join(HOURS)}."""


def run(plan: Plan) -> None:
    """oSLRAU beside the paper's opponents and today's: test folds, and streams."""
    compile_kernels()
    runs = cross_validate(plan, compare)
    write(plan.out, runs, list(baseline_streams.measure(plan, runs)))


def write(out: Path, runs: list[Run], streams: list[baseline_streams.Stream]) -> None:
    """Write the figures of every fold and stream, and the tables."""
    summaries = summarise(runs)
    write_runs(out, "baselines", runs)
    write_report(
        out, "baselines",
        [
            "Baselines", prose(METHODS), LIKELIHOODS, NOISE,
            markdown([row(summary) for summary in summaries]), *far_records(means(summaries)),
            prose(baseline_streams.TEXT),
        ],
        [baseline_streams.row(stream) for stream in streams],
        {
            "folds": [asdict(summary) for summary in summaries],
            "streams": [asdict(stream) for stream in streams],
        },
    )  # fmt: skip


def compare(dataset: Dataset, fold: int) -> Iterator[Run]:
    learned = evaluate("oSLRAU", oslrau(), dataset, fold)
    yield learned
    yield evaluate("oSLRAU, default", default, dataset, fold)
    yield evaluate("oSLRAU, mixtures", with_mixtures, dataset, fold)
    yield evaluate("random structure", random_structure(learned.nodes, fold), dataset, fold)
    for name, fit in fits(dataset, Size(learned.nodes, learned.parameters, fold)).items():
        if fold <= SLOW_FOLDS or name in QUICK:
            yield evaluate(name, fit, dataset, fold)
    yield evaluate("scikit-learn", offline_mixture, dataset, fold)
    yield evaluate("Gaussian", single_gaussian, dataset, fold)


def row(summary: Summary) -> dict[str, object]:
    return {
        "data set": summary.dataset,
        "method": summary.method,
        "folds": summary.folds,
        "native": estimate(summary.native),
        "honest": estimate(summary.honest),
        "nodes": thousands(summary.nodes) if summary.nodes else "",
        "parameters": thousands(summary.parameters),
        "learn, points/s": thousands(summary.learn_rate),
        "learn, s": f"{summary.learn_seconds:.1f}",
    }


def means(summaries: list[Summary]) -> dict[tuple[str, str], float]:
    return {(each.dataset, each.method): each.native.mean for each in summaries}


def estimate(value: Estimate) -> str:
    """Write an estimate, or its mean in few characters if that is enormous."""
    return short(value.mean, ".0f") if abs(value.mean) >= ENORMOUS else str(value)
