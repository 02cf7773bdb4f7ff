"""Notices that records have become less likely all at once, and which of them came after that."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.arrays import FloatArray

FEWEST = 128
"""Records of a check at the least: the mean of fewer says little."""

MOST = 1024
"""Unlikely records that are kept."""

RATE, RISE = 0.1, 0.5
"""Share of a check in the running level, and in one that rises: as a network that improves."""

LIMIT = 4.0
"""Standard deviations by which the mean of a check must fall, and ``LEAST_FALL`` nats more."""

LEAST_FALL = 0.1

MOST_CHECKS = 16
"""Checks after which low log-densities are the new level: nothing explains the records better."""

LARGEST_FALL = 20.0
"""Nats that one record counts at most where the change is located."""


class Alarm:
    """Compares the mean log-density of each batch with those before it.

    Attributes
    ----------
    rows, log_density
        Records (n, d) since the last check without an alarm, and their log-densities (n,).
    unchecked
        Number of these that no check has seen.
    checks
        Checks in succession that found low log-densities.
    mean, variance
        Running level of the checks' means and its variance, NaN before the first.
    """

    def __init__(self, d: int) -> None:
        self.rows, self.log_density = np.empty((0, d)), np.empty(0)
        self.unchecked, self.checks = 0, 0
        self.mean, self.variance = math.nan, math.nan

    def add(self, X: FloatArray, log_density: FloatArray) -> bool:
        """Take in records (m, d) with their log-densities; say if a change is to be looked for.

        It is at the first check of an alarm, and at the second, fourth, eighth and sixteenth.
        """
        self.rows = np.concatenate([self.rows, X])[-MOST:]
        self.log_density = np.concatenate([self.log_density, log_density])[-MOST:]
        self.unchecked += len(X)
        if self.unchecked < FEWEST:
            return False
        latest, self.unchecked = self.log_density[-self.unchecked :], 0
        mean, variance = float(latest.mean()), float(latest.var()) / len(latest)
        if mean < self._lowest(variance):
            self.checks += 1
            if self.checks <= MOST_CHECKS:
                return self.checks & (self.checks - 1) == 0
            self.mean = math.nan
        self._follow(mean, variance)
        return False

    def changed(self) -> FloatArray:
        """Return the records since the likely change, the maximum of a cumulative sum."""
        level = 0.5 * (self.mean + self.log_density.mean())
        fall = np.minimum(level - self.log_density, LARGEST_FALL)
        start = len(fall) - 1 - int(np.cumsum(fall[::-1]).argmax())
        return self.rows[start:]

    def _lowest(self, variance: float) -> float:
        """Return the least mean of a check that is no alarm, -inf before there is a level."""
        if math.isnan(self.mean):
            return -math.inf
        return self.mean - LIMIT * math.sqrt(self.variance + variance) - LEAST_FALL

    def _follow(self, mean: float, variance: float) -> None:
        self.rows, self.log_density, self.checks = self.rows[:0], self.log_density[:0], 0
        if math.isnan(self.mean):
            self.mean, self.variance = mean, variance
            return
        step = mean - self.mean
        fall = min(step, 0.0)  # a rise is no noise
        self.mean += (RISE if step > 0.0 else RATE) * step
        self.variance += RATE * (max(variance, fall * fall) - self.variance)
