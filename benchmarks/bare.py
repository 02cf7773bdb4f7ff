"""Times bare loops of the operations that a network needs, on this machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from time import process_time

import numba
import numpy as np

from faust_oslrau.learner.vector.lanes import WIDTH, Value, fma, load, store
from faust_oslrau.learner.vector.math import exp_bounded, log_positive

from .datasets import Array

Loop = Callable[[Array, Array, Array, Array], None]

BLOCK = 64
"""Rows of a loop: few enough to stay in the nearest cache."""

REPEATS = 9
"""Repeats, of which the fastest is reported: other work on the machine only slows it down."""


@cache
def bare_ns(leaves: int, loop: Loop) -> float:
    """Time the least work of a mixture with this many leaves, per point and leaf."""
    rng = np.random.default_rng(0)
    # far below zero, as log-densities are
    x, slope = rng.normal(size=(1, 1_024)), rng.normal(size=leaves)
    shift, out = np.full(leaves, -20.0), np.zeros(x.shape)
    loop(x[:, :BLOCK], slope, shift, out)  # compiles it
    return 1e9 * quickest(lambda: loop(x, slope, shift, out)) / x.size / leaves


@numba.njit(nogil=True, error_model="numpy")
def library_loop(x: Array, slope: Array, shift: Array, out: Array) -> None:
    """Loop of one multiply-add and one library's exponential for each point and leaf."""
    for start in range(0, x.shape[1], BLOCK):
        for leaf in range(len(slope)):
            a, b = slope[leaf], shift[leaf]
            for r in range(start, start + BLOCK):
                out[0, r] += math.exp(a * x[0, r] + b)


def bare_loop(function: Callable[[Value], Value]) -> Loop:
    """Make a loop of one multiply-add and one call for each point and leaf, rows side by side."""

    @numba.njit(nogil=True, error_model="numpy")
    def loop(x: Array, slope: Array, shift: Array, out: Array) -> None:
        for start in range(0, x.shape[1], BLOCK):
            for leaf in range(len(slope)):
                for r in range(start, start + BLOCK, WIDTH):
                    value = function(fma(load(x, 0, r), slope[leaf], shift[leaf]))
                    store(out, 0, r, load(out, 0, r) + value)

    return loop


@numba.njit
def nothing(x: Value) -> Value:
    return x


@numba.njit
def log_negative(x: Value) -> Value:
    return log_positive(0.0 - x)


LIBRARY_LOOP, VECTOR_LOOP = library_loop, bare_loop(exp_bounded)
MULTIPLY_ADD_LOOP, LOGARITHM_LOOP = bare_loop(nothing), bare_loop(log_negative)


def quickest(action: Callable[[], object]) -> float:
    """Return the seconds of the fastest repeat."""
    times = []
    for _ in range(REPEATS):
        start = process_time()
        action()
        times.append(process_time() - start)
    return min(times)
