"""Kernels that tell what the other variables of a row say of each one, by a Gaussian over all.

A variable is left out by downdating: its value moves y = W (x - mean) along its column of W. So the
part of y along that column is subtracted from the squared distance. Rows that lack values or are
far from the Gaussian are taken one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    Value,
    aligned_stack,
    all_below,
    choose,
    fma,
    load,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import log_positive

from .gaussian_kernels import LOG_2PI, whiten
from .missing_kernels import (
    add_direction,
    fill_missing,
    new_scratch,
    remove_direction,
    remove_directions,
    squared_length,
    whiten_observed,
)
from .mixtures import add_component

FAR = 1e3
"""Distance from a Gaussian, in standard deviations, from which on rounding would cost more than
1e-10 of what remains of the others."""

DISTANCE, NORM, MEAN, VARIANCE = range(4)
"""What is said of each variable: the squared distance of the others and what to add to the log norm
for their log-density, then its mean and variance given them."""


class Room(NamedTuple):
    """Scratch for Gaussians over up to d variables.

    Attributes
    ----------
    said
        What is said of each variable (4, d, WIDTH).
    alone
        Precision of each variable given all others, and the norm without it (2, d).
    lanes
        Distances from the mean, then y, and the squared distance (2 d + 1, WIDTH).
    z, x
        A row (d,), and the same with what it lacks (d,).
    covariance
        Of what it lacks (d, d).
    scratch
        Directions, as `missing_kernels` has them.
    """

    said: Array
    alone: Array
    lanes: Array
    z: Array
    x: Array
    covariance: Array
    scratch: Array


@kernel
def new_room(d: int) -> Room:
    """Return scratch for Gaussians over up to ``d`` variables."""
    return Room(
        np.empty((4, d, WIDTH)), np.empty((2, d)), np.zeros((2 * d + 1, WIDTH)), np.empty(d),
        np.empty(d), np.empty((d, d)), new_scratch(d),
    )  # fmt: skip


@kernel
def prepare(W: Array, alone: Array) -> None:
    """Fill ``alone`` (2, d) for `given_others`."""
    for v in range(len(W)):
        precision = 0.0
        for c in range(v, len(W)):
            precision = fma(W[c, v], W[c, v], precision)
        alone[0, v] = precision
        alone[1, v] = 0.5 * (LOG_2PI - log_positive(precision))


@kernel
def given_others(
    Z: Array, variables: Array, start: int, n: int, mean: Array, W: Array, room: Room
) -> None:
    """Fill ``room.said`` with what the others say of each of the ``variables`` (k,).

    In ``n`` columns of ``Z`` from ``start`` on, which come in whole lanes, by a Gaussian for which
    ``room.alone`` is prepared.
    """
    aligned_stack()
    k, said = len(variables), room.said
    dx, y = room.lanes[:k], room.lanes[k : 2 * k]
    for a in range(k):
        store(dx, a, 0, load(Z, variables[a], start) - mean[a])
    squared = whiten(W, dx, y)
    for a in range(k):
        along = spread(0.0)
        for c in range(a, k):
            along = fma(W[c, a], load(y, c, 0), along)
        shift = along / room.alone[0, a]
        store(said[DISTANCE], a, 0, squared - along * shift)
        store(said[NORM], a, 0, spread(room.alone[1, a]))
        store(said[MEAN], a, 0, mean[a] + (load(dx, a, 0) - shift))
        store(said[VARIANCE], a, 0, spread(1.0 / room.alone[0, a]))
    if all_below(choose(squared == squared, squared, np.inf), FAR**2):
        return
    store(room.lanes, 2 * k, 0, squared)
    for i in range(n):
        if not room.lanes[2 * k, i] < FAR**2:
            for a in range(k):
                room.z[a] = Z[variables[a], start + i]
            one_given_others(i, mean, W, room)


@kernel
def one_given_others(i: int, mean: Array, W: Array, room: Room) -> None:
    """Fill lane ``i`` of ``room.said`` for the row ``room.z``, by what is observed of it."""
    d, said, scratch = len(mean), room.said, room.scratch
    z, y, rest = room.z[:d], scratch[2 * d], scratch[2 * d + 1]
    n, norm = fill_missing(z, mean, W, scratch, room.x, room.covariance)
    missing, total = 0, squared_length(y, d) if n < d else 0.0
    for v in range(d):
        if z[v] != z[v]:
            said[DISTANCE, v, i], said[NORM, v, i] = total, norm
            said[MEAN, v, i], said[VARIANCE, v, i] = room.x[v], room.covariance[missing, missing]
            missing += 1
            continue
        length, centre = add_direction(W, v, n, scratch), z[v]
        rest[:] = y
        along = remove_direction(rest, scratch[n], d)
        if abs(along) > FAR:  # without the variable from the start
            whiten_observed(z, mean, W, v, rest)
            remove_directions(rest, n, d, scratch)
            along, centre = remove_direction(rest, scratch[n], d), mean[v]
        said[DISTANCE, v, i] = squared_length(rest, d) if n < d - 1 else 0.0
        said[NORM, v, i] = norm + 0.5 * LOG_2PI - log_positive(length)
        said[MEAN, v, i], said[VARIANCE, v, i] = centre - along / length, 1.0 / (length * length)


@kernel
def add_gaussians(
    block: Array,
    variables: Array,
    n: int,
    mean: Array,
    whitening: Array,
    log_norm: Array,
    widths: Array,
    log_weight: Array,
    rest: Array,
    mixtures: Array,
) -> None:
    """Merge Gaussians, each at several widths, into the mixtures of ``n`` columns of a block.

    They are Gaussians of the ``variables`` (k,), which do not depend on the others; ``rest``
    (3, WIDTH) has the squared distances of these, log-densities at distance 0 and observed
    variables. ``log_weight`` (K, S) is that of each Gaussian at each width in the whole network.
    Moments are those of the Gaussian at its own width.
    """
    aligned_stack()
    k, room = len(variables), new_room(len(variables))
    said, counts = room.said, np.zeros((1, WIDTH))
    for v in variables:
        store(counts, 0, 0, load(counts, 0, 0) + count_observed(block, v))
    for one in range(len(mean)):
        prepare(whitening[one], room.alone)
        given_others(block, variables, 0, n, mean[one], whitening[one], room)
        for a in range(k):
            v = variables[a]
            others = load(counts, 0, 0) - count_observed(block, v) + load(rest, 2, 0)
            distance = load(said[DISTANCE], a, 0) + load(rest, 0, 0)
            norm = log_norm[one] + load(said[NORM], a, 0) + load(rest, 1, 0)
            own_mean, own_variance = load(said[MEAN], a, 0), load(said[VARIANCE], a, 0)
            for s in range(len(widths)):
                log_density = norm - others * log_positive(widths[s])
                log_density = log_density - distance * (0.5 / (widths[s] * widths[s]))
                log_density = log_density + log_weight[one, s]
                add_component(v, 0, log_density, own_mean, own_variance, len(block), mixtures)


@kernel
def count_observed(block: Array, v: int) -> Value:
    """Return 1 for each lane that has a value of the variable, else 0."""
    x = load(block, v, 0)
    return choose(x == x, spread(1.0), spread(0.0))
