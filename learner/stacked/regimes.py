"""Which of two densities each record of a stream comes from, by a hidden Markov chain."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

CHANGE = 1 / 256
"""Probability that the next record comes from the other density."""

MOST_NATS = 50.0
"""By which one record at most tells the densities apart."""


def probabilities(gain: FloatArray, before: float) -> FloatArray:
    """Return the probability (m,) that each of successive records comes from the second density.

    ``gain`` (m,) is the log-density of the second one less that of the first, ``before`` the
    probability of the second one before the first record. Records tell of their neighbours
    (forward-backward algorithm, Baum and others 1970).
    """
    ratio = [math.exp(min(max(nats, -MOST_NATS), MOST_NATS)) for nats in gain.tolist()]
    stay, result, second = 1.0 - CHANGE, np.empty(len(gain)), before
    for i, odds in enumerate(ratio):
        second = second * stay + (1.0 - second) * CHANGE
        second = second * odds / (second * odds + 1.0 - second)
        result[i] = second
    later = 1.0  # likelihood ratio of all later records
    for i in range(len(ratio) - 1, -1, -1):
        result[i] = result[i] * later / (result[i] * later + 1.0 - result[i])
        later *= ratio[i]
        later = (stay * later + CHANGE) / (CHANGE * later + stay)
    return result
