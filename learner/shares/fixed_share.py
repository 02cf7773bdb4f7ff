"""Weights of densities by all records before: fixed share, with several rates at once."""

from __future__ import annotations

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.math import exp_bounded, log_positive


@kernel
def follow(log_density: Array, start: Array, rates: Array, weight: Array, result: Array) -> None:
    """Fill ``result`` (m, M) with the log-weight of each of M densities before each row.

    ``log_density`` (m, M) are those of successive rows. ``weight`` (A, M) is the probability before
    the first row of each rate and each density; it becomes that after the last row. After each row,
    the stream changes with the probability of its rate (A,), and then comes from one of the
    densities with the probabilities ``start`` (M,).
    """
    A, M = weight.shape
    likelihood = [0.0] * M
    for i in range(len(log_density)):
        largest = log_density[i, 0]
        for k in range(1, M):
            largest = max(largest, log_density[i, k])
        total = 0.0
        for k in range(M):
            share = 0.0
            for a in range(A):
                share += weight[a, k]
            result[i, k] = log_positive(share)
            likelihood[k] = exp_bounded(log_density[i, k] - largest)
            total += share * likelihood[k]
        for a in range(A):
            of_rate = 0.0
            for k in range(M):
                weight[a, k] *= likelihood[k] / total
                of_rate += weight[a, k]
            for k in range(M):
                weight[a, k] = (1.0 - rates[a]) * weight[a, k] + rates[a] * of_rate * start[k]
