"""A network in training as compact arrays and back.

Statistics are kept, and parameters made of them anew where that gives the same bits. What is read
is checked: a learner can go on from it.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.density.gaussian_kernels import LEAST_VARIANCE
from faust_oslrau.learner.density.gaussian_mixture import GaussianMixture
from faust_oslrau.learner.density.gaussians import Gaussians
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.queries.scaling import Scaling

from .background import N_BACKGROUND, Background
from .leaves import WIDE, Leaves
from .network import StackedNetwork
from .products import SharedProducts
from .training import SCALE_RECORDS, Training
from .weights import MEMORY

LARGEST = 1e120
"""No number of a healthy model is larger: standardised values are clipped at 1e50."""

STEEPEST = 1e6
"""No entry of a healthy whitening matrix is larger: variances have a floor."""

TYPES = {
    "location": ("<f8", 1),
    "scale": ("<f8", 1),
    "raw": ("<f8", 2),
    "window": ("<f4", 2),
    "history": ("<f8", 2),
    "weight": ("<f8", 1),
    "first_leaf": ("<i8", 1),
    "leaf_mean": ("<f8", 1),
    "leaf_variance": ("<f8", 1),
    "leaf_weight": ("<f8", 1),
    "product_count": ("<f8", 1),
    "leaf_count": ("<f8", 2),
    "leaf_moments": ("<f8", 2),
    "gaussian_count": ("<f8", 1),
    "gaussian_mean": ("<f8", 2),
    "gaussian_sums": ("<f8", 2),
    "gaussian_squares": ("<f8", 2),
    "gaussian_votes": ("<f8", 1),
    "gaussian_shrinkage": ("<f8", 1),
    "background_sums": ("<f8", 2),
    "background_squares": ("<f8", 2),
    "numbers": ("<f8", 1),
}
"""The arrays of a model and their dimensions. Gaussians' are empty where there are none; squares
are lower triangles, row by row."""


def pack_training(training: Training, network: StackedNetwork) -> Arrays:
    """Copy what the network and its training are made of into plain arrays."""
    d, products = network.n_variables, network.products
    mixture = network.mixture or GaussianMixture(0, d)
    background = network.background
    leaves, known, fresh = products.leaves, background.known, background.fresh
    numbers = [training.built, known.count, fresh.count, background.kept]
    arrays = {
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
    return {name: arrays[name].astype(dtype) for name, (dtype, _) in TYPES.items()}


def unpack_training(arrays: Arrays, n_records: int) -> Training:
    """Build the training that ``pack_training`` took apart.

    Raises
    ------
    StateError
        The arrays are not those of a network of sane numbers.
    """
    _check_arrays(arrays)
    d = len(arrays["location"])
    training = Training(d)
    training.scaling = Scaling.of(arrays["location"], arrays["scale"])
    training.n_records = n_records
    built, *of_background = arrays["numbers"].tolist()
    training.built = int(built)
    training.raw, training.window = arrays["raw"], arrays["window"]
    training.history = arrays["history"]
    _check_records(training, d)
    weight = arrays["weight"]
    products = _products(arrays, d)
    _require((weight > 0).all() and abs(weight.sum() - 1.0) < 1e-6, "weights that add up to 1")
    mixture = GaussianMixture.of_state(arrays, "gaussian_", d)
    _check_gaussians(mixture.gaussians)
    background = _background(arrays, d, *of_background)
    _require(training.history.shape[1] == len(weight), "a history of each expert")
    n_experts = 2 + (len(mixture.count) > 0) + N_BACKGROUND
    _require(len(weight) == n_experts, f"{n_experts} experts")
    training.network = StackedNetwork(
        products, mixture if len(mixture.count) > 0 else None, background, weight
    )
    return training


def _require(valid: bool | np.bool_, expected: str) -> None:
    if not valid:
        raise StateError(f"stacked network: expected {expected}")


def _check_arrays(arrays: Arrays) -> None:
    _require(arrays.keys() == TYPES.keys(), f"the arrays {', '.join(TYPES)}")
    may_lack = {"location", "scale", "raw", "window"}
    for name, (dtype, dimensions) in TYPES.items():
        array = arrays[name]
        _require(array.dtype == dtype and array.ndim == dimensions, f"{name} as {dtype}")
        if name in may_lack:
            _require(not np.isinf(array).any(), f"no infinity in {name}")
        elif name not in {"history", "gaussian_votes"}:
            _require((np.abs(array) <= LARGEST).all(), f"finite numbers in {name}")
        else:
            _require(np.isfinite(array).all(), f"finite numbers in {name}")
    _require(len(arrays["numbers"]) == 4, "four numbers")


def _check_records(training: Training, d: int) -> None:
    window, raw = training.window, training.raw
    _require(0 < training.built <= training.n_records, "a network built from known records")
    _require(raw.shape[1] == len(window) == d, f"records of {d} fields")
    scaled = training.built >= SCALE_RECORDS or window.shape[1] == 0
    _require(len(raw) == (0 if scaled else window.shape[1]), "the records of the warm-up")
    _require(len(training.history) <= MEMORY, f"a history of at most {MEMORY} records")
    _require(window.shape[1] in (0, training.n_records), "all records of the warm-up, or none")


def _products(arrays: Arrays, d: int) -> SharedProducts:
    first, n, count = arrays["first_leaf"], len(arrays["leaf_mean"]), arrays["product_count"]
    _require(len(first) == d + 1 and first[0] == 0 and first[-1] == n, "leaves of each variable")
    _require((np.diff(first) >= len(WIDE)).all(), "the wide leaves of each variable")
    mean, variance, weight = (arrays[f"leaf_{name}"] for name in ("mean", "variance", "weight"))
    _require(len(variance) == len(weight) == n, "a variance and a weight for each leaf")
    _require((variance >= LEAST_VARIANCE).all() and (weight > 0).all(), "positive variances")
    _require(len(count) > 0 and (count >= 0).all(), "records of each product")
    leaf_count, moments = arrays["leaf_count"], arrays["leaf_moments"]
    _require(leaf_count.shape == (n, len(count)) and moments.shape == (3, n), "n leaves")
    _require((leaf_count >= 0).all() and (moments[[0, 2]] >= 0).all(), "no negative counts")
    leaves = Leaves(first, mean.copy(), variance.copy(), mean, variance, weight)
    _require((np.abs(leaves.sums(weight) - 1.0) < 1e-6).all(), "weights that add up to 1")
    products = SharedProducts(leaves, len(count))
    products.count, products.leaf_count, products.moments = count, leaf_count, moments
    products.update()
    parameters = np.concatenate([leaves.mean, leaves.variance, products.weight])
    _require((np.abs(parameters) < LARGEST).all(), "leaves of sane numbers")
    _require((products.W > 0).all(), "positive weights of leaves")
    return products


def _background(arrays: Arrays, d: int, known: float, fresh: float, kept: float) -> Background:
    sums, packed = arrays["background_sums"], arrays["background_squares"]
    _require(sums.shape == (2, d) and len(packed) == 2, "two moments of the background")
    _require(known > 0 and fresh >= 0 and 0 < kept <= 1, "records of the background")
    background = Background(d)
    background.kept = kept
    for i, (moments, count) in enumerate(((background.known, known), (background.fresh, fresh))):
        moments.count, moments.sums, start = count, sums[i].copy(), 0
        for b, own in enumerate(moments.squares):
            end = start + len(own) * (len(own) + 1) // 2
            moments.squares[b] = _squares(packed[i : i + 1, start:end], 1, len(own))[0]
            start = end
        _require(packed.shape[1] == start, "squares of the background")
        diagonal = np.concatenate([np.diagonal(squares) for squares in moments.squares])
        enough = count * diagonal * (1.0 + 1e-6) + 1e-6  # by Cauchy and Schwarz, but for rounding
        _require((moments.sums**2 <= enough).all(), "squares of the background")
    background.update()
    for gaussians in background.gaussians:
        _check_gaussians(gaussians)
    return background


def _lower(matrices: list[FloatArray]) -> FloatArray:
    """Lower triangles of matrices, one after the other and row by row."""
    return np.concatenate([matrix[np.tril_indices(len(matrix))] for matrix in matrices])


def _squares(packed: FloatArray, K: int, d: int) -> FloatArray:
    lower = np.tril_indices(d)
    _require(packed.shape == (K, len(lower[0])), "squares of each Gaussian")
    squares = np.zeros((K, d, d))
    squares[:, lower[0], lower[1]] = packed
    return squares


def _check_gaussians(gaussians: Gaussians) -> None:
    _require((np.abs(gaussians.mean) <= LARGEST).all(), "means of sane numbers")
    _require((np.abs(gaussians.whitening) <= STEEPEST).all(), "covariances of sane numbers")
    _require(np.isfinite(gaussians.log_norm).all(), "covariances of sane numbers")
