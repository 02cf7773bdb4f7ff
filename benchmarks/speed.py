"""Cost of scoring and learning per point and leaf, beside a bare loop on the same machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from time import process_time
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

from faust_oslrau.learner import OSLRAU, compile_kernels
from faust_oslrau.learner.network.layout import SUM

from .bare import (
    LIBRARY_LOOP,
    LOGARITHM_LOOP,
    MULTIPLY_ADD_LOOP,
    REPEATS,
    VECTOR_LOOP,
    bare_ns,
    quickest,
)
from .datasets import Array, Dataset, Setting
from .plan import Plan
from .plots import plot_costs
from .report import NOISE, prose, write_report

LEAVES = (1_000, 2_000, 4_000, 8_000, 15_000)
VARIABLES = (2, 4, 8, 16, 32)
BATCHES = (1, 4, 16, 64, 256)
MIDDLE_LEAVES, MIDDLE_VARIABLES = 4_000, 8
"""Fixed values of the quantities that do not vary."""

FEW_VARIABLES = (2, 4)
"""Variables for which the smallest and the largest network are scored too."""

ROWS = 1_024
"""How many are scored, at the most in one call."""

DEFAULT_VARIABLES = (2, 4, 8, 16)
DEFAULT_RECORDS = 30_000
"""What `OSLRAU()` learns before it is measured: its budget of nodes is full by then."""

TURNS = 3
"""How often two operations are timed in turn: a busy machine can be slow for seconds."""

PAPER_RUNS = {
    "quake": Setting(1, 10, 0),
    "abalone": Setting(1, 10, 4),
    "kinematics": Setting(8, 10, 4),
    "ca": Setting(10, 10, 4),
    "sensorless": Setting(256, 256, 4),
}

TEXT = f"""\
Networks with univariate leaves, grown on made-up clusters. *Leaves* is the mean during the run. A
*bare loop* does one multiply-add and one exponential for each point and leaf, over as many leaves,
in the same process: once with the library's exponential, once with the learner's, which compiles to
vector instructions. *Multiple* is the cost in units of the latter; a network has one exponential
for several leaves, so that less than 1 is possible. *Rows* is the mini-batch when learning, and
what one call is given when scoring. Learning includes scoring the mini-batch and growing the
network. *Scorings* is the cost in units of scoring the same complete records. *Contributions* are
-log p(x_i | the other fields) of all fields, by one pass up and one down; *of evaluations* is their
share of the time that one evaluation more than there are variables would take instead: of the
records, and of the records without each field. *A field missing* is another one in each record.
*Default* is `OSLRAU()` after {DEFAULT_RECORDS:,} records of the same clusters, with leaves of one
and of several variables. *Least* is what the network's operations take in bare loops on the nearest
cache: a multiply-add for each leaf, an exponential for each child of a weighted sum but the first,
a logarithm for each sum. Products, first children and the way to memory come on top. Runs on data
sets learn folds 2 to 10."""


Query = Callable[[Array], object]


class Cost(NamedTuple):
    """Time for each point and leaf of one operation, and of the bare loops."""

    operation: str
    variables: int
    rows: int
    leaves: float
    ns: float
    bare_ns: float
    library_bare_ns: float
    points_per_second: float
    scorings: float | None = None
    of_evaluations: float | None = None
    least_ns: float | None = None


def run(plan: Plan) -> None:
    """Nanoseconds per point and leaf of scoring and learning, against a bare loop."""
    compile_kernels()
    by_leaves = measure([(n, MIDDLE_VARIABLES) for n in LEAVES], [256], [1, 256], "leaves")
    by_variables = measure([(MIDDLE_LEAVES, d) for d in VARIABLES], [256], [1, 256], "variables")
    by_rows = measure([(MIDDLE_LEAVES, MIDDLE_VARIABLES)], [*BATCHES, ROWS], BATCHES, "rows")
    corners = [(n, d) for d in FEW_VARIABLES for n in (LEAVES[0], LEAVES[-1])]
    by_both = measure(corners, [256, ROWS], [], "leaves and variables")
    costs = [*by_leaves, *by_variables, *by_rows, *by_both, *default_costs(), *paper_runs(plan)]
    plot_costs(
        plan.out / "speed.png",
        {
            f"leaves, {MIDDLE_VARIABLES} variables": lines(by_leaves, "leaves"),
            f"variables, {MIDDLE_LEAVES:,} leaves": lines(by_variables, "variables"),
            f"rows, {MIDDLE_LEAVES:,} leaves of {MIDDLE_VARIABLES} variables": lines(
                by_rows, "rows", by_operation=True
            ),
        },
    )
    write_report(
        plan.out, "speed", ["Speed", prose(TEXT), NOISE],
        [table_row(cost) for cost in costs],
        [cost._asdict() for cost in costs],
        ["speed.png"],
    )  # fmt: skip


def measure(
    networks: Sequence[tuple[int, int]],
    scored: Sequence[int],
    learned: Sequence[int],
    label: str,
) -> list[Cost]:
    """Score and learn with networks of these leaves and variables, in blocks of these rows."""
    return [
        cost
        for leaves, d in track(networks, f"against {label}", console=Console(stderr=True))
        for cost in costs_of(leaves, d, scored, learned)
    ]


def costs_of(leaves: int, d: int, scored: Sequence[int], learned: Sequence[int]) -> Iterator[Cost]:
    model = grown(leaves, d)
    X = clusters(d, ROWS, seed=1)
    for rows in scored:
        cost = scoring_cost("score", model.score_samples, X, rows, n_leaves(model))
        yield cost._replace(least_ns=least_ns(model))
    yield contributions_cost("contributions", model, X)
    for rows in learned:
        yield learning_cost("learn", model, [X[:256] if rows == 1 else X], rows)


def default_costs() -> Iterator[Cost]:
    """Score with the network that a stream gets, records complete and not."""
    for d in track(DEFAULT_VARIABLES, "default networks", console=Console(stderr=True)):
        model = OSLRAU().partial_fit(clusters(d, DEFAULT_RECORDS, seed=2), batch_size=256)
        X = clusters(d, ROWS, seed=1)
        lacking = X.copy()
        lacking[np.arange(len(X)), np.arange(len(X)) % d] = np.nan
        yield scoring_cost("default: score", model.score_samples, X, len(X), n_leaves(model))
        yield contributions_cost("default: contributions", model, X)
        yield in_scorings(model, "default: score, a field missing", model.score_samples, X, lacking)


def in_scorings(
    model: OSLRAU, name: str, query: Query, X: Array, asked: Array | None = None
) -> Cost:
    """Time a query beside scoring the complete rows ``X``, by turns."""
    lacking, n = X if asked is None else asked, n_leaves(model)
    turns = [
        (
            scoring_cost(name, query, lacking, len(X), n),
            scoring_cost("score", model.score_samples, X, len(X), n),
        )
        for _ in range(TURNS)
    ]
    costs, scores = zip(*turns, strict=True)
    cost = min(costs, key=lambda cost: cost.ns)
    return cost._replace(scorings=cost.ns / min(score.ns for score in scores))


def contributions_cost(name: str, model: OSLRAU, X: Array) -> Cost:
    """Time contributions beside scoring, and beside evaluations without one field after another."""
    cost = in_scorings(model, name, model.contributions, X)

    def evaluate() -> None:
        model.score_samples(X)
        for field in range(X.shape[1]):
            lacking = X.copy()
            lacking[:, field] = np.nan
            model.score_samples(lacking)

    return cost._replace(of_evaluations=len(X) / cost.points_per_second / quickest(evaluate))


def scoring_cost(name: str, query: Query, X: Array, rows: int, leaves: int) -> Cost:
    blocks = [X[start : start + rows] for start in range(0, len(X), rows)]

    def score() -> None:
        for block in blocks:
            query(block)

    return cost_of(name, X.shape[1], rows, quickest(score), len(X), leaves)


def learning_cost(name: str, model: OSLRAU, parts: Sequence[Array], batch_size: int) -> Cost:
    """Learn the parts with copies of the model."""
    seconds, leaves = min(learn_once(deepcopy(model), parts, batch_size) for _ in range(REPEATS))
    return cost_of(name, parts[0].shape[1], batch_size, seconds, sum(map(len, parts)), leaves)


def learn_once(model: OSLRAU, parts: Sequence[Array], batch_size: int) -> tuple[float, float]:
    """Return the seconds taken and the mean number of leaves, weighted by points."""
    seconds = work = 0.0
    for X in parts:
        before, start = n_leaves(model), process_time()
        model.partial_fit(X, batch_size=batch_size)
        seconds += process_time() - start
        work += len(X) * (before + n_leaves(model)) / 2
    return seconds, work / sum(map(len, parts))


def cost_of(
    name: str, variables: int, rows: int, seconds: float, points: int, leaves: float
) -> Cost:
    return Cost(
        name, variables, rows, leaves,
        ns=1e9 * seconds / points / leaves,
        bare_ns=bare_ns(round(leaves), VECTOR_LOOP),
        library_bare_ns=bare_ns(round(leaves), LIBRARY_LOOP),
        points_per_second=points / seconds,
    )  # fmt: skip


def paper_runs(plan: Plan) -> Iterator[Cost]:
    """Learn the paper's data sets with the batches that targets are set for."""
    chosen = replace(plan, names=tuple(name for name in PAPER_RUNS if name in plan.names), files=())
    for dataset in chosen.datasets():
        yield paper_run(dataset, PAPER_RUNS[dataset.name])


def paper_run(dataset: Dataset, setting: Setting) -> Cost:
    model = OSLRAU.paper(min_count=setting.min_count, max_leaf_vars=setting.max_leaf_vars)
    return learning_cost(dataset.name, model, list(dataset.train(1)), setting.batch_size)


@cache
def grown(leaves: int, d: int) -> OSLRAU:
    """Grow a network to at least this many leaves."""
    model = OSLRAU.paper(min_count=10, max_leaf_vars=0)
    seed = 2
    while n_leaves(model) < leaves:
        for X in np.array_split(clusters(d, 1_000, seed), 100):
            if n_leaves(model) < leaves:
                model.partial_fit(X)
        seed += 1
    return model


def clusters(d: int, n: int, seed: int) -> Array:
    """Draw rows of twenty correlated clusters, the same for every seed."""
    shape, rng = np.random.default_rng(0), np.random.default_rng(seed)
    centres, mixing = shape.normal(size=(20, d)), shape.normal(size=(20, d, d)) / np.sqrt(d)
    cluster = rng.integers(20, size=n)
    return centres[cluster] + np.einsum("nij,nj->ni", mixing[cluster], rng.normal(size=(n, d)))


def n_leaves(model: OSLRAU) -> int:
    """Count the leaves; none before the first record."""
    if model.n_records_ == 0:
        return 0
    return model.node_counts_["leaf"] + model.node_counts_["multivariate_leaf"]


def least_ns(model: OSLRAU) -> float:
    """Return the time of a density's operations in bare loops, per point and leaf.

    A leaf takes a multiply-add, a sum takes each of its children but the first into a total, with
    an exponential, and then the logarithm.
    """
    nodes, leaves = model.network_.nodes[model.network_.live], n_leaves(model)
    is_sum = nodes["kind"] == SUM
    sums, children = int(is_sum.sum()), int(nodes["n_children"][is_sum].sum())
    multiply_add, exponential, logarithm = (
        bare_ns(leaves, loop) for loop in (MULTIPLY_ADD_LOOP, VECTOR_LOOP, LOGARITHM_LOOP)
    )
    exponentials = (exponential - multiply_add) * (children - sums)
    return multiply_add + (exponentials + (logarithm - multiply_add) * sums) / leaves


def lines(
    costs: Sequence[Cost], quantity: str, by_operation: bool = False
) -> dict[str, list[tuple[float, float]]]:
    """Sort the costs into one line for each operation, or operation and rows, and the bare loop."""
    result: dict[str, list[tuple[float, float]]] = {}
    for cost in costs:
        label = cost.operation if by_operation else f"{cost.operation}, {cost.rows} rows"
        result.setdefault(label, []).append((getattr(cost, quantity), cost.ns))
    bare = [(getattr(cost, quantity), cost.bare_ns) for cost in costs if cost.operation == "score"]
    return result | {"bare loop": bare}


def table_row(cost: Cost) -> dict[str, object]:
    return {
        "operation": cost.operation,
        "variables": cost.variables,
        "rows": cost.rows,
        "leaves": f"{cost.leaves:,.0f}",
        "ns per point and leaf": f"{cost.ns:.2f}",
        "bare loop, library's, ns": f"{cost.library_bare_ns:.2f}",
        "bare loop, ns": f"{cost.bare_ns:.2f}",
        "multiple": f"{cost.ns / cost.bare_ns:.2f}",
        "least, ns": "" if cost.least_ns is None else f"{cost.least_ns:.2f}",
        "scorings": "" if cost.scorings is None else f"{cost.scorings:.1f}",
        "of evaluations": "" if cost.of_evaluations is None else f"{cost.of_evaluations:.2f}",
        "points/s": f"{cost.points_per_second:,.0f}",
    }
