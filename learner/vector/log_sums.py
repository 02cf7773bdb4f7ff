"""Sums of terms that are known by their logarithms, for rows side by side and for one row.

A sum is a reference, the logarithm that its terms are measured by, and a total: the sum of the
terms as multiples of e**reference.
"""

from __future__ import annotations

from .compiler import Array, kernel
from .lanes import WIDTH, Value, aligned_stack, all_below, choose, fma, load, spread, store
from .math import exp_bounded, log_positive

FAR_AHEAD = 30.0
"""Nats above the reference from which on a term becomes the reference.
Far from overflow, and rare."""

NOTHING = -38.0
"""Logarithm of a share below 2**-54, which leaves the number that it is added to unchanged."""


@kernel
def begin_sum(
    child_row: int, row: int, level: int, m: int, weight: float, values: Array, totals: Array
) -> None:
    """Start a sum with its first child, whose log-density becomes the reference."""
    for r in range(0, m, WIDTH):
        store(values, row, r, load(values, child_row, r))
        store(totals, level, r, spread(weight))


@kernel
def add_term(
    child_row: int,
    row: int,
    level: int,
    m: int,
    weight: float,
    limit: float,
    values: Array,
    totals: Array,
) -> None:
    """Add a weighted child to a sum, except where it is below ``limit`` nats from the reference."""
    aligned_stack()
    for r in range(0, m, WIDTH):
        log_value, reference = load(values, child_row, r), load(values, row, r)
        ahead, total = log_value - reference, load(totals, level, r)
        if all_below(ahead, limit):
            continue
        if not all_below(ahead, FAR_AHEAD):
            reference, total = moved(reference, total, log_value)
            store(values, row, r, reference)
            ahead = log_value - reference
        store(totals, level, r, fma(exp_bounded(ahead), weight, total))


@kernel
def end_sum(row: int, level: int, m: int, share: float, values: Array, totals: Array) -> None:
    """Turn totals into log-densities; weights are multiples of 1 / ``share``."""
    # in a loop of its own, so that no logarithm waits for the exponentials before it
    for r in range(0, m, WIDTH):
        log_total = log_positive(load(totals, level, r) * share)
        store(values, row, r, load(values, row, r) + log_total)


@kernel
def moved(reference: Value, total: Value, log_value: Value) -> tuple[Value, Value]:
    """Make a new term the reference where it is far ahead of it; return references and totals.

    The term itself is not added.
    """
    top = choose(log_value - reference < FAR_AHEAD, reference, log_value)
    return top, total * exp_bounded(reference - top)


@kernel
def add_term_of_row(
    reference: float, total: float, weight: float, log_value: float
) -> tuple[float, float]:
    """Add weight e**log_value to total e**reference.

    Without a branch, which a processor could not predict for one row, and with the same bits as in
    a block.
    """
    ahead = log_value - reference
    behind = ahead < FAR_AHEAD
    scale = exp_bounded(choose(behind, ahead, -ahead))
    total = choose(behind, fma(scale, weight, total), total * scale + weight)
    return choose(behind, reference, log_value), total
