"""One network in training, or two, as compact arrays and back; what is read is checked."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.arrays import Arrays
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.state import record_count

from .alarm import MOST, Alarm
from .contest import Contest
from .packing import pack_training, unpack_training
from .training import Training

CHALLENGER = "challenger_"
"""Prefix of the names of the challenger's arrays."""

TYPES = {
    "alarm_rows": ("<f8", 2),
    "alarm_log_density": ("<f8", 1),
    "contest": ("<f8", 1),
}
"""The arrays beside those of the networks, and their dimensions."""


def pack_contest(contest: Contest) -> Arrays:
    """Copy networks and alarm into plain arrays; none before anything was learned."""
    first, second, alarm = contest.incumbent, contest.challenger, contest.alarm
    if first.network is None:
        return {}
    numbers = [
        first.n_records, 0 if second is None else second.n_records, contest.share,
        *contest.unneeded, alarm.unchecked, alarm.checks, alarm.mean, alarm.variance,
    ]  # fmt: skip
    arrays = pack_training(first, first.network) | {
        "alarm_rows": alarm.rows,
        "alarm_log_density": alarm.log_density,
        "contest": np.array(numbers, np.float64),
    }
    if second is not None and second.network is not None:
        packed = pack_training(second, second.network)
        arrays |= {CHALLENGER + name: array for name, array in packed.items()}
    return arrays


def unpack_contest(arrays: Arrays, n_records: int) -> Contest:
    """Build the contest that ``pack_contest`` took apart.

    Raises
    ------
    StateError
        The arrays are not those of networks and an alarm of sane numbers.
    """
    challenger = _without_prefix(arrays)
    first = {name: arrays[name] for name in arrays if name not in TYPES}
    first = {name: array for name, array in first.items() if not name.startswith(CHALLENGER)}
    for name, (dtype, dimensions) in TYPES.items():
        array = arrays.get(name)
        valid = array is not None and array.dtype == dtype and array.ndim == dimensions
        _require(valid, f"{name} as {dtype}")
    numbers = arrays["contest"].tolist()
    _require(len(numbers) == 9 and np.isfinite(numbers[:7]).all(), "nine numbers of a contest")
    contest = Contest(len(first["location"]) if "location" in first else 1)
    contest.n_records = n_records
    contest.incumbent = unpack_training(first, _count(numbers[0], n_records))
    if challenger:
        contest.challenger = unpack_training(challenger, _count(numbers[1], n_records))
    contest.share = numbers[2]
    contest.unneeded = [_count(numbers[3], n_records), _count(numbers[4], n_records)]
    contest.alarm = _alarm(arrays, numbers[5:], contest.incumbent)
    _require_shares(contest)
    return contest


def _without_prefix(arrays: Arrays) -> Arrays:
    """Return the challenger's arrays under their own names, none without a challenger."""
    return {
        name.removeprefix(CHALLENGER): array
        for name, array in arrays.items()
        if name.startswith(CHALLENGER)
    }


def _alarm(arrays: Arrays, numbers: list[float], training: Training) -> Alarm:
    unchecked, checks, mean, variance = numbers
    d = training.n_variables
    alarm = Alarm(d)
    alarm.rows, alarm.log_density = arrays["alarm_rows"], arrays["alarm_log_density"]
    n = len(alarm.rows)
    _require(alarm.rows.shape[1] == d and len(alarm.log_density) == n <= MOST, "unlikely records")
    _require(not np.isinf(alarm.rows).any(), "finite unlikely records")
    _require(np.isfinite(alarm.log_density).all(), "finite log-densities")
    alarm.unchecked, alarm.checks = record_count(unchecked), record_count(checks)
    _require(alarm.unchecked <= n and (n > 0 or alarm.checks == 0), "records of an alarm")
    known = math.isfinite(mean) and 0.0 <= variance < math.inf
    _require(known or (math.isnan(mean) and alarm.checks == 0), "a level of the log-density")
    alarm.mean, alarm.variance = mean, variance
    return alarm


def _require_shares(contest: Contest) -> None:
    if contest.challenger is None:
        _require(contest.share == 1.0, "no share for a challenger")
        return
    _require(0.0 < contest.share < 1.0, "a share for a challenger")
    widths = {each.n_variables for each in (contest.incumbent, contest.challenger)}
    _require(len(widths) == 1, "networks of the same fields")


def _count(value: float, most: int) -> int:
    count = record_count(value)
    _require(count <= most, "no more records than were learned")
    return count


def _require(valid: bool | np.bool_, expected: str) -> None:
    if not valid:
        raise StateError(f"stacked network: expected {expected}")
