"""The network that knows the stream, and after a sudden change a challenger beside it.

A challenger is fitted to the records since a change, if it explains later ones better. Then both
are children of one root, and each learns the records that it explains. Neither replaces the other
before many records have not needed it: so a fault does not become the model, and a change for good
is learned at once.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.arrays import FloatArray

from . import members as joint
from .members import Joint, Member
from .network import Evaluated
from .training import Rule, Training

CHECKED = 128
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
        if self.unchecked < CHECKED:
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


YOUNG = 496
"""Records of an incumbent below which its log-densities rise too fast for a level."""

FEWEST = 96
"""Records since a change that a challenger is fitted to: half of them, then all."""

ERRORS = 3.0
"""Standard errors by which a challenger must explain the other half better."""

MOST_ALIKE = 0.99
"""Correlation of neighbouring records at the most: beyond, a few hundred tell nothing."""

LOWEST = 1e3
"""Nats for each variable by which one record at most counts against a network."""

LEAST = 0.01
"""Share of the root that each of two networks keeps."""

LATEST = 32
"""Records that the shares follow."""

NEEDED, MOST_NATS = 0.1, 3.0
"""Nats that a network must spare the records of a batch on average to be needed, and nats that one
of them counts at the most: an outlier is nearer to one network by chance."""


class Contest:
    """One network or two in training.

    Attributes
    ----------
    incumbent, challenger
        The networks; usually there is no challenger.
    share
        Weight of the incumbent's children in the root, together.
    unneeded
        Records since the incumbent, and since the challenger, was needed.
    n_records
        Records learned so far, by any network.
    alarm
        Notices sudden changes.
    """

    def __init__(self, d: int) -> None:
        self.incumbent, self.alarm = Training(d), Alarm(d)
        self.challenger: Training | None = None
        self.share, self.unneeded, self.n_records = 1.0, [0, 0], 0

    def members(self) -> list[Member]:
        """Return the networks under the root, none before anything was learned."""
        if self.challenger is None:
            return _members(self.incumbent, 1.0)
        new = _members(self.challenger, 1.0 - self.share)
        return _members(self.incumbent, self.share) + new

    def without_challenger(self) -> Contest:
        """Return a contest of the incumbent alone, which shares its network."""
        alone = Contest(self.incumbent.n_variables)
        alone.incumbent, alone.n_records = self.incumbent, self.n_records
        return alone

    def learn(self, X: FloatArray, rule: Rule, told: Joint | None = None) -> None:
        """Learn one mini-batch (m, d); ``told`` is what the networks say of it, if known."""
        self.n_records += len(X)
        young = self.challenger is None and self.incumbent.n_records < YOUNG
        if rule.retire_after is None or young:
            _teach(self.incumbent, X, rule, told.evaluated[0] if told else None)
            return
        told = told or joint.evaluate(self.members(), X)
        if self.alarm.add(X, told.log_density):
            rows = self.alarm.changed()
            if len(rows) >= FEWEST and self._is_explained(rows, rule):
                before = X[: max(len(X) - len(rows), 0)]
                if len(before) > 0:
                    _teach(self.incumbent, before, rule)
                self._admit(_fitted(rows, rule), rule.retire_after)
                return
        if self.challenger is None:
            _teach(self.incumbent, X, rule, told.evaluated[0])
        else:
            self._learn_apart(X, rule, told, self.challenger)
            self._retire(self.challenger, rule.retire_after)

    def _is_explained(self, rows: FloatArray, rule: Rule) -> bool:
        """Whether a network of the first half of the rows explains the others better."""
        half, lowest = len(rows) // 2, -LOWEST * rows.shape[1]
        candidate, rest = _members(_fitted(rows[:half], rule), 1.0), rows[half:]
        new, old = (
            np.maximum(joint.log_densities(each, rest)[0], lowest)
            for each in (candidate, self.members())
        )
        gain = new - old
        return bool(gain.mean() > ERRORS * _standard_error(gain))

    def _admit(self, challenger: Training, retire_after: int) -> None:
        """Put a challenger beside the incumbent, in the place of an earlier one."""
        if self.challenger is not None and self.challenger.n_records >= retire_after:
            self.incumbent = self.challenger
        self.challenger, self.alarm = challenger, Alarm(challenger.n_variables)
        self.share, self.unneeded = 0.5, [challenger.n_records, 0]

    def _learn_apart(self, X: FloatArray, rule: Rule, told: Joint, challenger: Training) -> None:
        """Let each network learn the records that it explains better; set the shares by these."""
        gain = np.clip(told.each[:, 1] - told.each[:, 0], -MOST_NATS, MOST_NATS)
        is_new, spared = gain > 0.0, [np.maximum(sign * gain, 0.0).mean() for sign in (-1.0, 1.0)]
        if min(spared) < NEEDED:
            is_new[:] = spared[1] > spared[0]
        for i, (training, own) in enumerate([(self.incumbent, ~is_new), (challenger, is_new)]):
            if own.any():
                _teach(training, X[own], rule, told.take(i, own))
            self.unneeded[i] = 0 if own.any() else self.unneeded[i] + len(X)
        latest = float(is_new[-LATEST:].mean())
        self.share = min(max(1.0 - latest, LEAST), 1.0 - LEAST)

    def _retire(self, challenger: Training, retire_after: int) -> None:
        """Remove a network that many records have not needed."""
        if max(self.unneeded) < retire_after:
            return
        if self.unneeded[0] >= retire_after:
            self.incumbent = challenger
        self.challenger, self.share, self.unneeded = None, 1.0, [0, 0]


def _teach(
    training: Training, X: FloatArray, rule: Rule, evaluated: Evaluated | None = None
) -> None:
    """Let a network learn records; what it says of them is of no use if it knows a new field."""
    training.learn(X, rule, evaluated if training.scaling.is_complete else None)


def _standard_error(values: FloatArray) -> float:
    """Return that of the mean of successive values (n,), each of which may be like the last one.

    So walks that stay off their mean for some hundred records are no change. The factor is that of
    an autoregressive process of order 1 (Bartlett 1946).
    """
    deviations = values - values.mean()
    total = float((deviations * deviations).sum())
    if total == 0.0:
        return 0.0
    alike = float((deviations[1:] * deviations[:-1]).sum()) / total
    alike = min(max(alike, 0.0), MOST_ALIKE)
    return math.sqrt(total * (1.0 + alike) / (1.0 - alike)) / len(values)


def _fitted(rows: FloatArray, rule: Rule) -> Training:
    training = Training(rows.shape[1])
    training.learn(rows, rule)
    return training


def _members(training: Training, share: float) -> list[Member]:
    network = training.network
    return [] if network is None else [Member(share, network, training.scaling)]
