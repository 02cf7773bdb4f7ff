"""Networks in training as compact arrays and back.

Statistics are kept, and parameters made of them anew where that gives the same bits. What is read
is checked: a learner can go on from it.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.density.gaussian_kernels import LEAST_VARIANCE
from faust_oslrau.learner.density.gaussian_mixture import GaussianMixture
from faust_oslrau.learner.density.gaussians import Gaussians
from faust_oslrau.learner.queries.scaling import Scaling
from faust_oslrau.learner.state import record_count
from faust_oslrau.learner.state_schema import POSITIVE, Entry, counts, expect, read

from .background import N_BACKGROUND, Background
from .contest import MOST, Alarm, Contest
from .leaves import WIDE, Leaves
from .network import MEMORY, StackedNetwork
from .products import SharedProducts
from .training import SCALE_RECORDS, Training

SANE = 1e120
"""No number of a healthy model is larger: standardised values are clipped at 1e50."""

STEEPEST = 1e6
"""No entry of a healthy whitening matrix is larger: variances have a floor."""

SCHEMA = {
    "raw": Entry(("r", "d"), nan=True),
    "window": Entry(("d", "w"), dtype="<f4", nan=True),
    "history": Entry(("h", "M")),
    "weight": Entry(("M",), POSITIVE, SANE),
    "first_leaf": counts("f"),
    "leaf_mean": Entry(("n",), -SANE, SANE),
    "leaf_variance": Entry(("n",), LEAST_VARIANCE, SANE),
    "leaf_weight": Entry(("n",), POSITIVE, SANE),
    "product_count": Entry(("K",), 0, SANE),
    "leaf_count": Entry(("n", "K"), 0, SANE),
    "leaf_moments": Entry((3, "n"), [[0.0], [-SANE], [0.0]], SANE),
    "background_sums": Entry((2, "d"), -SANE, SANE),
    "background_squares": Entry((2, "b"), -SANE, SANE),
    "numbers": Entry((4,), [1, POSITIVE, 0, POSITIVE], [SANE, SANE, SANE, 1]),
}
"""The arrays of a model, beside those of its Gaussians; squares are lower triangles, row by row."""


def pack_training(training: Training, network: StackedNetwork) -> Arrays:
    """Copy what the network and its training are made of into plain arrays."""
    d, products = network.n_variables, network.products
    mixture = network.mixture or GaussianMixture(0, d)
    background = network.background
    leaves, known, fresh = products.leaves, background.known, background.fresh
    numbers = [training.built, known.count, fresh.count, background.kept]
    return {
        "location": training.scaling.location,
        "scale": training.scaling.scale,
        "raw": training.raw,
        "window": training.window,
        "history": training.history,
        "weight": network.weight,
        "first_leaf": leaves.first,
        "leaf_mean": leaves.prior_mean,
        "leaf_variance": leaves.prior_variance,
        "leaf_weight": leaves.prior_weight,
        "product_count": products.count,
        "leaf_count": products.leaf_count,
        "leaf_moments": products.moments,
        **mixture.state("gaussian_"),
        "background_sums": np.stack([known.sums, fresh.sums]),
        "background_squares": np.stack([_lower(each.squares) for each in (known, fresh)]),
        "numbers": np.array(numbers, np.float64),
    }


def unpack_training(arrays: Arrays, n_records: int, prefix: str = "") -> Training:
    """Build the training that ``pack_training`` took apart; its arrays' names have a prefix.

    StateError if they are not those of a network of sane numbers.
    """
    scaling = Scaling.of_state(arrays, prefix)
    d = len(scaling.scale)
    found = dict(zip(SCHEMA, read(arrays, SCHEMA, prefix, d=d), strict=True))
    training = Training(d)
    training.scaling = scaling
    training.n_records = n_records
    built, *of_background = found["numbers"].tolist()
    training.built = int(built)
    training.raw, training.window = found["raw"], found["window"]
    training.history = found["history"]
    _check_records(training)
    weight = found["weight"]
    expect(abs(weight.sum() - 1.0) < 1e-6, "weights that add up to 1")
    products = _products(found, d)
    mixture = GaussianMixture.of_state(arrays, f"{prefix}gaussian_", d)
    _check_gaussians(mixture.gaussians)
    background = _background(found, d, *of_background)
    n_experts = 2 + (len(mixture.count) > 0) + N_BACKGROUND
    expect(len(weight) == n_experts, f"{n_experts} experts")
    training.network = StackedNetwork(
        products, mixture if len(mixture.count) > 0 else None, background, weight
    )
    return training


def _check_records(training: Training) -> None:
    window, raw = training.window, training.raw
    expect(training.built <= training.n_records, "a network built from known records")
    scaled = training.built >= SCALE_RECORDS or window.shape[1] == 0
    expect(len(raw) == (0 if scaled else window.shape[1]), "the records of the warm-up")
    expect(len(training.history) <= MEMORY, f"a history of at most {MEMORY} records")
    expect(window.shape[1] in (0, training.n_records), "all records of the warm-up, or none")


def _products(arrays: Arrays, d: int) -> SharedProducts:
    first, n, count = arrays["first_leaf"], len(arrays["leaf_mean"]), arrays["product_count"]
    expect(len(first) == d + 1 and first[0] == 0 and first[-1] == n, "leaves of each variable")
    expect((np.diff(first) >= len(WIDE)).all(), "the wide leaves of each variable")
    mean, variance, weight = (arrays[f"leaf_{name}"] for name in ("mean", "variance", "weight"))
    expect(len(count) > 0, "a product")
    leaves = Leaves(first, mean.copy(), variance.copy(), mean, variance, weight)
    expect((np.abs(leaves.sums(weight) - 1.0) < 1e-6).all(), "weights that add up to 1")
    products = SharedProducts(leaves, len(count))
    products.count, products.leaf_count = count, arrays["leaf_count"]
    products.moments = arrays["leaf_moments"]
    products.update()
    parameters = np.concatenate([leaves.mean, leaves.variance, products.weight])
    expect((np.abs(parameters) < SANE).all(), "leaves of sane numbers")
    expect((products.W > 0).all(), "positive weights of leaves")
    return products


def _background(arrays: Arrays, d: int, known: float, fresh: float, kept: float) -> Background:
    sums, packed = arrays["background_sums"], arrays["background_squares"]
    background = Background(d)
    background.kept = kept
    for i, (moments, count) in enumerate(((background.known, known), (background.fresh, fresh))):
        moments.count, moments.sums, start = count, sums[i].copy(), 0
        for b, own in enumerate(moments.squares):
            end = start + len(own) * (len(own) + 1) // 2
            moments.squares[b] = _squares(packed[i : i + 1, start:end], 1, len(own))[0]
            start = end
        expect(packed.shape[1] == start, "squares of the background")
        diagonal = np.concatenate([np.diagonal(squares) for squares in moments.squares])
        enough = count * diagonal * (1.0 + 1e-6) + 1e-6  # by Cauchy and Schwarz, but for rounding
        expect((moments.sums**2 <= enough).all(), "squares of the background")
    background.update()
    for gaussians in background.gaussians:
        _check_gaussians(gaussians)
    return background


def _lower(matrices: list[FloatArray]) -> FloatArray:
    """Lower triangles of matrices, one after the other and row by row."""
    return np.concatenate([matrix[np.tril_indices(len(matrix))] for matrix in matrices])


def _squares(packed: FloatArray, K: int, d: int) -> FloatArray:
    lower = np.tril_indices(d)
    expect(packed.shape == (K, len(lower[0])), "squares of each Gaussian")
    squares = np.zeros((K, d, d))
    squares[:, lower[0], lower[1]] = packed
    return squares


def _check_gaussians(gaussians: Gaussians) -> None:
    expect((np.abs(gaussians.mean) <= SANE).all(), "means of sane numbers")
    expect((np.abs(gaussians.whitening) <= STEEPEST).all(), "covariances of sane numbers")
    expect(np.isfinite(gaussians.log_norm).all(), "covariances of sane numbers")


CHALLENGER = "challenger_"
"""Prefix of the names of the challenger's arrays."""

CONTEST = {
    "alarm_rows": Entry(("m", "d"), nan=True),
    "alarm_log_density": Entry(("m",)),
    "contest": Entry((9,), nan=True),
}
"""The arrays beside those of the networks."""


def pack_contest(contest: Contest) -> Arrays:
    """Copy networks and alarm into plain arrays; none before anything was learned."""
    first, second, alarm = contest.incumbent, contest.challenger, contest.alarm
    if first.network is None:
        return {}
    numbers = [
        first.n_records, 0 if second is None else second.n_records, contest.share,
        *contest.unneeded, alarm.unchecked, alarm.checks, alarm.mean, alarm.variance,
    ]  # fmt: skip
    arrays = pack_training(first, first.network) | {
        "alarm_rows": alarm.rows,
        "alarm_log_density": alarm.log_density,
        "contest": np.array(numbers, np.float64),
    }
    if second is not None and second.network is not None:
        packed = pack_training(second, second.network)
        arrays |= {CHALLENGER + name: array for name, array in packed.items()}
    return arrays


def unpack_contest(arrays: Arrays, n_records: int) -> Contest:
    """Build the contest that ``pack_contest`` took apart; StateError for numbers beyond those."""
    rows, log_density, numbers = read(arrays, CONTEST)
    first, second, share, *unneeded = numbers.tolist()[:5]
    incumbent = unpack_training(arrays, _count(first, n_records))
    contest = Contest(incumbent.n_variables)
    contest.n_records = n_records
    contest.incumbent = incumbent
    if any(name.startswith(CHALLENGER) for name in arrays):
        contest.challenger = unpack_training(arrays, _count(second, n_records), CHALLENGER)
    contest.share = share
    contest.unneeded = [_count(n, n_records) for n in unneeded]
    contest.alarm = _alarm(rows, log_density, numbers.tolist()[5:], incumbent)
    _require_shares(contest)
    expect(arrays.keys() == pack_contest(contest).keys(), "no other arrays")
    return contest


def _alarm(
    rows: FloatArray, log_density: FloatArray, numbers: list[float], training: Training
) -> Alarm:
    unchecked, checks, mean, variance = numbers
    n, d = rows.shape
    expect(d == training.n_variables and n <= MOST, "unlikely records")
    alarm = Alarm(d)
    alarm.rows, alarm.log_density = rows, log_density
    alarm.unchecked, alarm.checks = record_count(unchecked), record_count(checks)
    expect(alarm.unchecked <= n and (n > 0 or alarm.checks == 0), "records of an alarm")
    known = not math.isnan(mean) and variance >= 0.0
    expect(known or (math.isnan(mean) and alarm.checks == 0), "a level of the log-density")
    alarm.mean, alarm.variance = mean, variance
    return alarm


def _require_shares(contest: Contest) -> None:
    if contest.challenger is None:
        expect(contest.share == 1.0, "no share for a challenger")
        return
    expect(0.0 < contest.share < 1.0, "a share for a challenger")
    widths = {each.n_variables for each in (contest.incumbent, contest.challenger)}
    expect(len(widths) == 1, "networks of the same fields")


def _count(value: float, most: int) -> int:
    count = record_count(value)
    expect(count <= most, "no more records than were learned")
    return count
