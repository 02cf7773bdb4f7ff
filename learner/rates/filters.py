"""How many records a window is expected to bring: gamma-Poisson filters, mixed by their likelihood.

A filter has a gamma distribution of the level, whose evidence fades (West and Harrison 1997), times
a profile of the day or of the week, and a dispersion: what it predicts is negative binomial. Of
each subject there is one filter for each combination of these. Their weights are those of dynamic
model averaging (Raftery, Karny and Ettler 2010), so that a steady subject is held against a long
memory, and one that comes in bursts against the last windows.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import betainc, gammaln

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.state_schema import POSITIVE, Entry
from faust_oslrau.learner.stored import SLOTS, Stored

KEPT = np.array([0.5, 0.9, 0.99, 0.999])[:, None]
"""Share of a level's evidence that is left after a window."""

SIZE = np.array([np.inf, 1e5, 1e4, 1e3, 100.0, 30.0, 5.0])
"""Size of the negative binomial of a known level: the smaller, the more windows vary, by 0.3 % to
45 % beyond chance. Where none fits, windows that differ much are as likely as usual ones."""

HOURS = (24, 168)
"""Hours of the profiles of a day and of a week, which they are part of once they are over."""

PROFILES = ("none", "daily steps", "weekly steps", "daily lines", "weekly lines")
"""By what a level is multiplied: steps from hour to hour, or lines between the middles of hours."""

FILTERS = (len(PROFILES), len(KEPT), len(SIZE))

KEPT_WEIGHT = 0.999
"""Share of the filters' log-likelihoods that is left after a window."""

FIRST_RECORDS, FIRST_WINDOWS = 0.5, 0.01
"""What is known of a level before the first window: next to nothing."""

LEAST = {"shape": FIRST_RECORDS / 10.0, "rate": FIRST_WINDOWS / 10.0, "log_weight": -1e6}
"""What is known of a level never fades below these, nor is a filter ever less likely."""

VISITS = 8.0
"""Days or weeks after which what an hour of a profile brought weighs 1/e."""

PROFILE_RECORDS = 4.0
"""Records that speak for an hour of a profile to be an average one."""

LARGEST = 1e15
"""Larger numbers are in no state."""


class Predicted(NamedTuple):
    """What is expected of one window of n subjects.

    Attributes
    ----------
    log_weight
        Logarithms of the filters' weights (n, filters).
    mean, size
        Of their negative binomial distributions (n, filters); the variance is
        mean + mean**2 / size.
    profile
        By what the levels are multiplied (n, profiles).
    """

    log_weight: FloatArray
    mean: FloatArray
    size: FloatArray
    profile: FloatArray

    def of(self, subjects: IntArray) -> Predicted:
        """Return what is expected of some of the subjects."""
        return Predicted(*(each[subjects] for each in self))

    @property
    def expected(self) -> FloatArray:
        """The mean of the mixture (n,)."""
        weighted: FloatArray = (np.exp(self.log_weight) * self.mean).sum(axis=(1, 2, 3))
        return weighted

    def log_probabilities(self, records: FloatArray, factors: FloatArray) -> FloatArray:
        """Return log-probabilities (n, f) of counts (n,), were the means so many times as large."""
        odds, trials = self.mean / self.size, records[:, None, None, None] + self.size
        base = self.log_weight + _log_ways(records, self.size, odds)
        found = [_log_sum(base - trials * np.log1p(factor * odds), (1, 2, 3)) for factor in factors]
        y = records[:, None]
        logs: FloatArray = np.stack(found, axis=1) + y * np.log(factors) - gammaln(y + 1.0)
        return logs

    def log_changed(
        self, records: FloatArray, brought: FloatArray, expected: FloatArray
    ) -> FloatArray:
        """Return log-probabilities (n,) of counts (n,), were the rates those of a change so far.

        It ``brought`` (n,) records where these were ``expected`` (n,).
        """
        shape = brought + FIRST_RECORDS
        mean = shape / expected * self.expected
        size = 1.0 / (1.0 / shape[:, None] + 1.0 / SIZE)
        found = _log_negative_binomial(records, size, mean[:, None])
        found += _log_sum(self.log_weight, (1, 2))
        logs: FloatArray = _log_sum(found, (1,)) - gammaln(records + 1.0)
        return logs

    def quantile(self, subject: int, level: float) -> int:
        """Return the least count of a subject that has this share of the mixture at or below it."""
        mean, size = self.mean[subject], self.size[subject]
        weight, share = np.exp(self.log_weight[subject]), size / (size + mean)
        low, high = -1, 1
        while (weight * betainc(size, high + 1.0, share)).sum() < level:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            below = (weight * betainc(size, middle + 1.0, share)).sum() < level
            low, high = (middle, high) if below else (low, middle)
        return high


class Filters(Stored):
    """The filters of subjects, which begin with the first window of each.

    Windows have a length in ``seconds``.
    """

    schema: ClassVar = {
        "_shape": Entry((SLOTS, *FILTERS), POSITIVE, LARGEST, new=FIRST_RECORDS),
        "_rate": Entry((SLOTS, *FILTERS), POSITIVE, LARGEST, new=FIRST_WINDOWS),
        "_log_weight": Entry((SLOTS, *FILTERS), LEAST["log_weight"], 0.0),
        "_hours": Entry((SLOTS, 2, sum(HOURS)), 0.0, LARGEST),
        "_visit": Entry((SLOTS, 2), 0.0, LARGEST),
        "_visited": Entry((1,), 0, HOURS[1] - 1, dtype="<i8"),
    }
    prefix = "rate_"

    def __init__(self, seconds: float) -> None:
        self._shape, self._rate, self._log_weight = np.empty((3, 0, *FILTERS))
        self._hours, self._visit = np.empty((0, 2, sum(HOURS))), np.empty((0, 2))
        self._visited = 0
        self._kept = np.exp(-min(seconds / 3600.0, 1.0) / VISITS)

    @property
    def has_level(self) -> Mask:
        """Whether each subject (n,) has learned a window: the first one only tells the level."""
        known: Mask = self._rate.max(axis=(1, 2, 3)) > FIRST_WINDOWS
        return known

    def copy(self, subject: int, to: int) -> None:
        """Let one subject be as another is."""
        for name, _ in self._of_slots():
            getattr(self, name)[to] = getattr(self, name)[subject]

    def forget_level(self, subject: int) -> None:
        """Forget what is known of a subject but for its hours."""
        hours, visit = self._hours[subject].copy(), self._visit[subject].copy()
        self.clear(subject)
        self._hours[subject], self._visit[subject] = hours, visit

    def predict(self, hour: float) -> Predicted:
        """Return what a window brings in the middle of which it is this ``hour`` of the week."""
        profile = self._profile(hour)
        mean = self._shape / self._rate * profile[:, :, None, None]
        log_weight = self._log_weight - _log_sum(self._log_weight, (1, 2, 3))[:, None, None, None]
        return Predicted(log_weight, mean, 1.0 / (1.0 / self._shape + 1.0 / SIZE), profile)

    def learn(self, records: FloatArray, predicted: Predicted, hour: float, which: Mask) -> None:
        """Learn the counts (n,) of the window that was ``predicted``, of the subjects ``which``."""
        y, mean = records[:, None, None, None], predicted.mean
        told = _log_negative_binomial(records, predicted.size, mean)
        told[~self.has_level] = 0.0  # else filters that expect next to nothing win for a day
        log_weight = KEPT_WEIGHT * (predicted.log_weight + told)
        worth = 1.0 / (1.0 + mean / SIZE)  # of what varies more, a window tells less
        shape = KEPT * self._shape + worth * y
        rate = KEPT * self._rate + worth * predicted.profile[:, :, None, None]
        log_weight -= log_weight.max(axis=(1, 2, 3), keepdims=True)
        where = which[:, None, None, None]
        np.maximum(shape, LEAST["shape"], out=self._shape, where=where)
        # of many records, a window is worth less than any fixed number
        np.maximum(rate, LEAST["rate"] * worth, out=self._rate, where=where)
        np.maximum(log_weight, LEAST["log_weight"], out=self._log_weight, where=where)
        if math.floor(hour) != self._visited:
            self._end_visit()
            self._visited = math.floor(hour)
        self._visit[which] += np.column_stack([records, np.ones(len(records))])[which]

    def _end_visit(self) -> None:
        """Add what the last hour brought to the profiles.

        No sooner: were it there at once, a change would be what is usual in this hour.
        """
        for at in _places(self._visited):
            self._hours[:, :, at] *= self._kept ** self._visit[:, 1:]
            self._hours[:, :, at] += self._visit
        self._visit[:] = 0.0

    def _profile(self, hour: float) -> FloatArray:
        """Return how an hour of the week differs from an average one (n, profiles)."""
        before, after = self._hour(hour - 0.5), self._hour(hour + 0.5)
        share = (hour - 0.5) % 1.0
        between = (1.0 - share) * before + share * after
        return np.column_stack([np.ones(len(between)), self._hour(hour), between])

    def _hour(self, hour: float) -> FloatArray:
        """Return what an hour of the day and of the week brings (n, 2), in average hours."""
        hours = self._hours
        records, windows = hours[:, :, : HOURS[0]].sum(axis=2).T[:, :, None]
        mean = np.maximum(records, FIRST_RECORDS) / np.maximum(windows, 1.0)
        records, windows = hours[:, :, _places(hour)].transpose(1, 0, 2)
        brought: FloatArray = (records + PROFILE_RECORDS) / (windows * mean + PROFILE_RECORDS)
        return brought


def _places(hour: float) -> tuple[int, int]:
    """Return where an hour of the week is among those of the day, and those of the week."""
    return math.floor(hour) % HOURS[0], HOURS[0] + math.floor(hour) % HOURS[1]


def _log_negative_binomial(records: FloatArray, size: FloatArray, mean: FloatArray) -> FloatArray:
    """Return log-probabilities (n, ...) of counts (n,), but for what depends on these alone."""
    odds = mean / size
    trials = records.reshape(-1, *(1,) * (size.ndim - 1)) + size
    return _log_ways(records, size, odds) - trials * np.log1p(odds)


def _log_ways(records: FloatArray, size: FloatArray, odds: FloatArray) -> FloatArray:
    """Return the part of them that is zero where there are no records."""
    found, some = np.zeros(size.shape), np.flatnonzero(records)
    y, k = records[some].reshape(-1, *(1,) * (size.ndim - 1)), size[some]
    found[some] = gammaln(y + k) - gammaln(k) + y * np.log(odds[some])
    return found


def _log_sum(logs: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """Return the logarithm of the sum over some axes of what these are the logarithms of."""
    most = logs.max(axis=axes, keepdims=True)
    shares = logs - most
    np.exp(shares, out=shares)
    found: FloatArray = np.log(shares.sum(axis=axes)) + most.squeeze(axes)
    return found
