"""Comparison of a record's fields with what the other fields of the record say of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, Mask
from faust_oslrau.learner.protocol import Comparable, of_rows

from .tail_mass import FARTHEST, units

GAUSSIAN_ENTROPY = 0.5 * math.log(2.0 * math.pi * math.e)
"""Entropy of N(0, 1) in nats."""


class Comparison(NamedTuple):
    """Each field of k records given other fields of its record, (k, d) each.

    Attributes
    ----------
    nats
        -log p(x_i | the others), NaN where x_i is missing.
    usual
        The mean of ``nats`` if x_i agrees with the others: the entropy of a Gaussian with the
        standard deviation ``deviation``.
    expected, deviation
        Mean and standard deviation of the field given the others.
    """

    nats: FloatArray
    usual: FloatArray
    expected: FloatArray
    deviation: FloatArray

    @property
    def excess(self) -> FloatArray:
        """Nats (k, d) beyond the usual."""
        return self.nats - self.usual


def compare(learner: Comparable, rows: FloatArray) -> Comparison:
    """Compare each field of ``rows`` (k, d) with the other fields of its row."""
    nats, expected, deviation = learner.given_others(rows)
    return Comparison(nats, GAUSSIAN_ENTROPY + np.log(deviation), expected, deviation)


def compare_without(learner: Comparable, rows: FloatArray, aside: Mask) -> Comparison:
    """Compare each field of ``rows`` (k, d) with the others that are not set ``aside`` (k, d)."""
    rest = np.where(aside, np.nan, rows)
    found = compare(learner, rest)
    record, field = np.nonzero(aside)
    joined = rest[record]
    joined[np.arange(len(record)), field] = rows[record, field]
    both = of_rows(learner, np.concatenate([np.arange(len(rest)), record]))
    log_density = both.score_samples(np.concatenate([rest, joined]))
    found.nats[record, field] = log_density[record] - log_density[len(rest) :]
    return found


def excess_alone(rows: FloatArray, usual_rows: FloatArray) -> FloatArray:
    """Return the nats (k, d) by which each value exceeds the usual if nothing but it is known.

    Those of a Gaussian with the field's mean and deviation among ``usual_rows`` (n, d): no value of
    another field enters. NaN where a value is missing.
    """
    location, scale = units(usual_rows)
    with np.errstate(over="ignore"):
        z = np.clip((rows - location) * scale, -FARTHEST, FARTHEST)
    return np.asarray(0.5 * z**2 - 0.5, np.float64)
