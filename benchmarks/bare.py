"""Bare loops of what a network must compute, and how long they take on this machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from time import process_time

import numba
import numpy as np

from faust_oslrau.learner._density import add_term
from faust_oslrau.learner._math import exp_nonpositive, log_positive

from .datasets import Array

Loop = Callable[[Array, Array, Array, Array], None]

BLOCK = 64
"""Rows that a loop takes at a time, so that it stays in the nearest cache."""

REPEATS = 9
"""The quickest of these is reported: other work on the machine can only slow one down."""


@cache
def bare_ns(leaves: int, loop: Loop) -> float:
    """Time the least that a mixture of so many leaves could do, per point and leaf."""
    rng = np.random.default_rng(0)
    # far below zero, as log-densities are: the exponential of plain arithmetic is for those
    x, slope, shift = rng.normal(size=1_024), rng.normal(size=leaves), np.full(leaves, -20.0)
    out = np.zeros(len(x))
    loop(x[:BLOCK], slope, shift, out)  # compiles it
    return 1e9 * quickest(lambda: loop(x, slope, shift, out)) / len(x) / leaves


def bare_loop(function: Callable[[float], float]) -> Loop:
    """Make a loop of one multiply-add and one call for each point and leaf."""

    @numba.njit(nogil=True, error_model="numpy")
    def loop(x: Array, slope: Array, shift: Array, out: Array) -> None:
        for start in range(0, len(x), BLOCK):
            rows, sums = x[start : start + BLOCK], out[start : start + BLOCK]
            for leaf in range(len(slope)):
                a, b = slope[leaf], shift[leaf]
                for r in range(len(rows)):
                    sums[r] += function(a * rows[r] + b)

    return loop


@numba.njit
def nothing(x: float) -> float:
    return x


@numba.njit
def log_negative(x: float) -> float:
    return log_positive(-x)


@numba.njit(nogil=True, error_model="numpy")
def merge_loop(x: Array, slope: Array, shift: Array, out: Array) -> None:
    """Loop of one multiply-add for each point and leaf, and one child more of a weighted sum."""
    largest = np.empty(BLOCK)
    for start in range(0, len(x), BLOCK):
        rows, totals = x[start : start + BLOCK], out[start : start + BLOCK]
        largest[:] = shift[0]
        for leaf in range(len(slope)):
            a, b = slope[leaf], shift[leaf]
            for r in range(len(rows)):
                top, totals[r] = add_term(largest[r], totals[r], 1.0, a * rows[r] + b)
                largest[r] = top


LIBRARY_LOOP, VECTOR_LOOP = bare_loop(math.exp), bare_loop(exp_nonpositive)
MULTIPLY_ADD_LOOP, LOGARITHM_LOOP = bare_loop(nothing), bare_loop(log_negative)


def quickest(action: Callable[[], object]) -> float:
    """Return the seconds of the quickest of some repeats."""
    times = []
    for _ in range(REPEATS):
        start = process_time()
        action()
        times.append(process_time() - start)
    return min(times)
