"""Rows drawn from the mixed density of an entity, with some fields held fixed."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .habit_kernels import KINDS, NETWORK, OWN, Predicted, Shared
from .mixed_kernels import growth
from .student import LEAST_PIVOT, log_student

FloatArray = NDArray[np.float64]


class Sampled(Protocol):
    """A density that rows can be drawn from."""

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density (m,) of each row in nats."""

    def sample(
        self, n: int = 1, *, given: ArrayLike | None = None, random_state: np.random.Generator
    ) -> FloatArray:
        """Draw ``n`` rows (n, d), with the observed fields of the row ``given`` held fixed."""


class Part(NamedTuple):
    """The missing fields of a row by one part of the mixture, given the observed ones.

    Attributes
    ----------
    log_weight
        Logarithm of its weight times its density of the observed fields.
    mean, root
        Location (k,) and a square root (k, k) of the squared scales.
    freedom
        Degrees of freedom of Student's t; infinite for a Gaussian.
    """

    log_weight: float
    mean: FloatArray
    root: FloatArray
    freedom: float


def draw(
    network: Sampled,
    shared: Shared,
    predicted: Predicted,
    row: FloatArray,
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return ``n`` rows (n, d): ``row`` (d,) with its missing fields drawn given the observed ones.

    ``predicted`` is that of this row alone; all is in units of its entity.
    """
    missing = np.isnan(row)
    parts = _parts(shared, predicted, row, missing)
    log_weight = [part.log_weight for part in parts]
    first = math.log(predicted.weight[0, NETWORK]) + network.score_samples(row[None])[0]
    share = np.exp(np.array([first, *log_weight]) - max(first, *log_weight))
    counts = rng.multinomial(n, share / share.sum()).tolist()
    found, at = np.tile(row, (n, 1)), counts[0]
    if at > 0:
        found[:at] = network.sample(at, given=row, random_state=rng)
    for part, m in zip(parts, counts[1:], strict=True):
        found[at : at + m, missing] = _drawn(part, m, rng)
        at += m
    return rng.permutation(found)


def _parts(
    shared: Shared, predicted: Predicted, row: FloatArray, missing: NDArray[np.bool_]
) -> list[Part]:
    """Return all parts but the network: the kinds and the own covariance."""
    found, d = [], len(row)
    for k, mean in enumerate(shared.mean):
        weight = predicted.weight[0, KINDS] * predicted.kind_weight[0, k]
        found.append(_part(weight, mean, shared.covariance[k], np.inf, row, missing))
    weight, covariance = predicted.weight[0, OWN], predicted.covariance[0]
    freedom = float(predicted.freedom[0])
    return [*found, _part(weight, np.zeros(d), covariance, freedom, row, missing)]


def _part(
    weight: float,
    mean: FloatArray,
    lower: FloatArray,
    freedom: float,
    row: FloatArray,
    missing: NDArray[np.bool_],
) -> Part:
    covariance, off = _full(lower, len(row)), row[~missing] - mean[~missing]
    among, between = covariance[np.ix_(~missing, ~missing)], covariance[np.ix_(~missing, missing)]
    solved = np.linalg.solve(among, np.column_stack([off, between]))
    n, square = len(off), float(off @ solved[:, 0])
    log_scale = 0.5 * np.linalg.slogdet(among)[1].item()
    scales = covariance[np.ix_(missing, missing)] - between.T @ solved[:, 1:]
    scales *= growth(freedom, square, n)
    joint = log_student(square, log_scale, freedom, n)
    centre = mean[missing] + between.T @ solved[:, 0]
    return Part(math.log(weight) + joint, centre, _root(scales), freedom + n)


def _drawn(part: Part, m: int, rng: np.random.Generator) -> FloatArray:
    z = rng.normal(size=(m, len(part.mean))) @ part.root.T
    if part.freedom < np.inf:
        z *= np.sqrt(part.freedom / rng.chisquare(part.freedom, size=(m, 1)))
    drawn: FloatArray = part.mean + z
    return drawn


def _full(lower: FloatArray, d: int) -> FloatArray:
    """Return the symmetric matrix (d, d) of a lower triangle."""
    i, j = np.tril_indices(d)
    full = np.empty((d, d))
    full[i, j] = full[j, i] = lower
    return full


def _root(scales: FloatArray) -> FloatArray:
    """Return a matrix (k, k) that times its transpose is ``scales``, whose rounding it forgives."""
    values, vectors = np.linalg.eigh(scales)
    root: FloatArray = vectors * np.sqrt(np.maximum(values, LEAST_PIVOT))
    return root
