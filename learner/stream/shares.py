"""Shares of the networks under a root that follow each record of a stream."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.protocol import Density, Evaluation, Learner, Measured
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


RATES = np.array([1.0, 1.0 / 16.0, 1.0 / 256.0])
"""Probabilities that a stream changes after a record. With 1, the shares are those of the root: so
records of two kinds in random order lose nothing by the other rates."""


class Shares:
    """Weighs a learner's networks by the records since the last learning boundary.

    The networks' shares in the root change at boundaries only, but a record tells which network the
    next one comes from. So each record has shares of its own, which follow from the records before:
    those of fixed share (Herbster and Warmuth 1998) to the shares in the root, mixed over the
    ``RATES`` of change (Monteleoni and Jaakkola 2003). They are context. Where there is one
    network, nothing is computed.
    """

    def __init__(self) -> None:
        self._weight = np.empty((0, 0))

    def take(self, learner: Learner, evaluation: Evaluation) -> tuple[Density, Measured]:
        """Return the density of each of the next rows, and what it says of them.

        ``evaluation`` is the learner's of these rows.
        """
        log_density = evaluation.by_network
        if log_density.shape[1] == 1:
            return learner, evaluation
        self._weight = self._present(learner)
        log_shares = np.empty(log_density.shape)
        follow(log_density, learner.shares, RATES, self._weight, log_shares)
        return learner.weighed(log_shares), evaluation.weighed(log_shares)

    def ahead(self, learner: Learner, m: int) -> Density:
        """Return the density of the next row, for ``m`` rows alike."""
        shares = learner.shares
        if len(shares) == 1:
            return learner
        log_shares = np.empty((m, len(shares)))
        nothing = np.zeros((1, len(shares)))
        follow(nothing, shares, RATES, self._present(learner).copy(), log_shares[:1])
        log_shares[1:] = log_shares[:1]
        return learner.weighed(log_shares)

    def end_batch(self) -> None:
        """Forget the rows before a learning boundary, whose regimes are now the root's shares."""
        self._weight = np.empty((0, 0))

    def _present(self, learner: Learner) -> FloatArray:
        """Return the probability of each rate and network before the next row."""
        if len(self._weight) > 0:
            return self._weight
        return np.full((len(RATES), 1), 1.0 / len(RATES)) * learner.shares
