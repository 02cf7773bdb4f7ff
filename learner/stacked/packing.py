"""A network in training as compact arrays and back.

Statistics are kept, and parameters made of them anew where that gives the same bits. What is read
is checked: a learner can go on from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.queries.scaling import Scaling

from .background import N_BACKGROUND, N_STRENGTHS, Background, Moments
from .gaussians import GaussianMixture, Gaussians, shrinkages
from .leaves import LEAST_VARIANCE, WIDE, Leaves
from .network import StackedNetwork
from .products import SharedProducts
from .replacement import POOL, RECENT, Replacement
from .training import SCALE_RECORDS, Training
from .tree import Tree
from .weights import MEMORY

Arrays = dict[str, NDArray[Any]]

LARGEST = 1e120
"""No number of a healthy model is larger: standardised values are clipped at 1e50."""

LARGEST_FACTOR = 1e7
"""No factor expected of a record is larger: values are clipped, and noise has a floor."""

STEEPEST = 1e6
"""No entry of a healthy whitening matrix is larger: variances have a floor."""

TYPES = {
    "location": ("<f8", 1),
    "scale": ("<f8", 1),
    "raw": ("<f8", 2),
    "window": ("<f4", 2),
    "sample": ("<f4", 2),
    "history": ("<f8", 2),
    "recent": ("<f8", 1),
    "pool": ("<f8", 2),
    "centre": ("<f8", 2),
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
    "votes": ("<f8", 1),
    "background_sums": ("<f8", 2),
    "background_squares": ("<f8", 2),
    "tree": ("|u1", 1),
    "numbers": ("<f8", 1),
}
"""The arrays of a model and their dimensions. Gaussians' are empty where there are none; squares
are lower triangles, row by row."""

FACTORS, STANDING = "background_factors", "background_standing"

TYPES_IN_BLOCKS = TYPES | {FACTORS: ("<f8", 3), STANDING: ("<i8", 1)}
"""Those of a model with blocks of variables, which have factors in common."""


def pack_training(training: Training, network: StackedNetwork) -> Arrays:
    """Copy what the network and its training are made of into plain arrays."""
    d, products = network.n_variables, network.products
    mixture = network.mixture or GaussianMixture(0, d)
    background = network.background
    tree, leaves, lower = network.tree, products.leaves, np.tril_indices(d)
    known, fresh = background.known, background.fresh
    numbers = [
        training.built, training.renewing, mixture.shrinkage,
        known.count, fresh.count, background.kept,
    ]  # fmt: skip
    arrays = {
        "location": training.scaling.location,
        "scale": training.scaling.scale,
        "raw": training.raw,
        "window": training.window,
        "sample": training.sample,
        "history": training.history,
        "recent": training.replacement.recent,
        "pool": training.replacement.pool,
        "centre": training.replacement.centre,
        "weight": network.weight,
        "first_leaf": leaves.first,
        "leaf_mean": leaves.prior_mean,
        "leaf_variance": leaves.prior_variance,
        "leaf_weight": leaves.prior_weight,
        "product_count": products.count,
        "leaf_count": products.leaf_count,
        "leaf_moments": products.moments,
        "gaussian_count": mixture.count,
        "gaussian_mean": mixture.gaussians.mean,
        "gaussian_sums": mixture.sums,
        "gaussian_squares": mixture.squares[:, lower[0], lower[1]],
        "votes": mixture.votes,
        "background_sums": np.stack([known.sums, fresh.sums]),
        "background_squares": np.stack([_lower(each.squares) for each in (known, fresh)]),
        FACTORS: np.stack([_of_factors(each) for each in (known, fresh)]),
        STANDING: background.standing,
        "tree": np.frombuffer(b"" if tree is None else tree.learner.to_bytes(), np.uint8),
        "numbers": np.array(numbers, np.float64),
    }
    types = TYPES if len(background.blocks) == 1 else TYPES_IN_BLOCKS
    return {name: arrays[name].astype(dtype) for name, (dtype, _) in types.items()}


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
    built, renewing, shrinkage, *of_background = arrays["numbers"].tolist()
    training.built, training.renewing = int(built), bool(renewing)
    training.raw, training.window = arrays["raw"], arrays["window"]
    training.sample, training.history = arrays["sample"], arrays["history"]
    training.replacement = _replacement(arrays, d)
    _check_records(training, d)
    weight = arrays["weight"]
    products, mixture = _products(arrays, d), None
    _require((weight > 0).all() and abs(weight.sum() - 1.0) < 1e-6, "weights that add up to 1")
    tree = Tree.from_bytes(arrays["tree"].tobytes(), d) if len(arrays["tree"]) > 0 else None
    if len(arrays["gaussian_count"]) > 0:
        mixture = _mixture(arrays, d, shrinkage)
    background = _background(arrays, d, *of_background)
    _require(training.history.shape[1] == len(weight), "a history of each expert")
    n_experts = 2 + (mixture is not None) + N_BACKGROUND + (tree is not None)
    _require(len(weight) == n_experts, f"{n_experts} experts")
    training.network = StackedNetwork(products, mixture, background, tree, weight)
    return training


def _require(valid: bool | np.bool_, expected: str) -> None:
    if not valid:
        raise StateError(f"stacked network: expected {expected}")


def _check_arrays(arrays: Arrays) -> None:
    types = TYPES_IN_BLOCKS if FACTORS in arrays else TYPES
    _require(arrays.keys() == types.keys(), f"the arrays {', '.join(types)}")
    may_lack = {"location", "scale", "raw", "window", "sample", "pool", "centre"}
    for name, (dtype, dimensions) in types.items():
        array = arrays[name]
        _require(array.dtype == dtype and array.ndim == dimensions, f"{name} as {dtype}")
        if name in may_lack:
            _require(not np.isinf(array).any(), f"no infinity in {name}")
        elif name not in {"history", "recent", "votes"}:
            _require((np.abs(array) <= LARGEST).all(), f"finite numbers in {name}")
        else:
            _require(np.isfinite(array).all(), f"finite numbers in {name}")
    _require(len(arrays["numbers"]) == 6, "six numbers")


def _check_records(training: Training, d: int) -> None:
    window, raw = training.window, training.raw
    _require(0 < training.built <= training.n_records, "a network built from known records")
    _require(raw.shape[1] == len(window) == len(training.sample) == d, f"records of {d} fields")
    scaled = training.built >= SCALE_RECORDS or window.shape[1] == 0
    _require(len(raw) == (0 if scaled else window.shape[1]), "the records of the warm-up")
    _require(len(training.history) <= MEMORY, f"a history of at most {MEMORY} records")
    _require(
        not training.renewing or training.sample.shape[1] > 0, "a sample to propose leaves from"
    )
    ended = window.shape[1] == 0 and training.sample.shape[1] > 0
    _require(ended or window.shape[1] == training.n_records, "all records of the warm-up")


def _replacement(arrays: Arrays, d: int) -> Replacement:
    replacement = Replacement(d)
    replacement.recent = arrays["recent"]
    replacement.pool, replacement.centre = arrays["pool"], arrays["centre"]
    _require(len(replacement.recent) <= RECENT, f"at most {RECENT} recent log-densities")
    for records in (replacement.pool, replacement.centre):
        _require(len(records) == d and records.shape[1] <= POOL, f"at most {POOL} odd records")
    return replacement


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


def _mixture(arrays: Arrays, d: int, shrinkage: float) -> GaussianMixture:
    count, sums, mean = (arrays[f"gaussian_{name}"] for name in ("count", "sums", "mean"))
    K = len(count)
    _require(K > 0 and (count >= 0).all() and count.sum() > 0, "records of each Gaussian")
    _require(sums.shape == mean.shape == (K, d), "sums of each Gaussian")
    _require(len(arrays["votes"]) == len(shrinkages(d)), "votes for each shrinkage")
    _require(shrinkage > 0, "a positive shrinkage")
    mixture = GaussianMixture(K, d)
    mixture.count, mixture.sums, mixture.gaussians.mean = count, sums, mean
    mixture.squares = _squares(arrays["gaussian_squares"], K, d)
    mixture.shrinkage, mixture.votes = shrinkage, arrays["votes"]
    mixture.update()
    _check_gaussians(mixture.gaussians)
    return mixture


def _background(arrays: Arrays, d: int, known: float, fresh: float, kept: float) -> Background:
    sums, packed = arrays["background_sums"], arrays["background_squares"]
    _require(sums.shape == (2, d) and len(packed) == 2, "two moments of the background")
    _require(known > 0 and fresh >= 0 and 0 < kept <= 1, "records of the background")
    of_factors = arrays.get(FACTORS, np.empty((2, d + 1, 0)))
    q = of_factors.shape[2]
    background = Background(d, q)
    _require((q > 0) == (len(background.blocks) > 1), "factors of several blocks")
    _require(of_factors.shape == (2, q + d + 1, q), "moments of the factors")
    background.kept = kept
    background.standing = _standing(arrays.get(STANDING, background.standing))
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
        moments.factor_squares = of_factors[i, :q].copy()
        moments.factor_products = of_factors[i, q:-1].copy()
        moments.factor_sums = of_factors[i, -1].copy()
        _check_factors(moments, diagonal)
    _check_standardised(background.known)
    background.update()
    for gaussians in background.gaussians.gaussians:
        _check_gaussians(gaussians)
    return background


def _standing(standing: NDArray[np.int64]) -> NDArray[np.int64]:
    """Check which strengths of the background stand for others: those that stand for themselves."""
    _require(standing.shape == (N_STRENGTHS,), "what stands for each of three strengths")
    _require(((standing >= 0) & (standing < N_STRENGTHS)).all(), "strengths of the background")
    _require((standing[standing] == standing).all(), "strengths that stand for themselves")
    return standing.copy()


def _check_factors(moments: Moments, squares: NDArray[np.float64]) -> None:
    """Refuse moments of factors that no records have; ``squares`` (d,) are those of variables."""
    own = np.diagonal(moments.factor_squares)
    products, sums = moments.factor_products**2, moments.factor_sums**2
    enough = (np.outer(squares, own), moments.count * own)
    for found, bound in zip((products, sums), enough, strict=True):
        _require((found <= bound * (1.0 + 1e-6) + 1e-6).all(), "moments of the factors")
    _require((own <= LARGEST_FACTOR**2 * moments.count).all(), "factors of sane numbers")
    least = np.linalg.eigvalsh(moments.factor_squares).min(initial=0.0)
    _require(least >= -1e-10 * (1.0 + own.sum()), "moments of the factors")


def _check_standardised(known: Moments) -> None:
    """Refuse factors of more variance than 1, and such as explain more than a variable's."""
    centre = known.factor_sums / known.count
    covariance = known.factor_squares / known.count - np.outer(centre, centre)
    variances = np.linalg.eigvalsh(covariance)
    _require((variances >= -1e-6).all() and (variances <= 1.0 + 1e-6).all(), "standard factors")
    enough = known.variance * (1.0 + 1e-6) + 1e-6
    _require(((known.loadings**2).sum(axis=1) <= enough).all(), "factors of what varies")


def _of_factors(moments: Moments) -> NDArray[np.float64]:
    """Moments of the factors with each other, with the variables and with 1, (q + d + 1, q)."""
    return np.vstack([moments.factor_squares, moments.factor_products, moments.factor_sums])


def _lower(matrices: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Lower triangles of matrices, one after the other and row by row."""
    return np.concatenate([matrix[np.tril_indices(len(matrix))] for matrix in matrices])


def _squares(packed: NDArray[np.float64], K: int, d: int) -> NDArray[np.float64]:
    lower = np.tril_indices(d)
    _require(packed.shape == (K, len(lower[0])), "squares of each Gaussian")
    squares = np.zeros((K, d, d))
    squares[:, lower[0], lower[1]] = packed
    return squares


def _check_gaussians(gaussians: Gaussians) -> None:
    _require((np.abs(gaussians.mean) <= LARGEST).all(), "means of sane numbers")
    _require((np.abs(gaussians.whitening) <= STEEPEST).all(), "covariances of sane numbers")
    _require(np.isfinite(gaussians.log_norm).all(), "covariances of sane numbers")
