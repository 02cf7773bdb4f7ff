"""One network in training, or two, as compact arrays and back; what is read is checked."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.state import record_count
from faust_oslrau.learner.state_schema import Entry, read

from .alarm import MOST, Alarm
from .contest import Contest
from .packing import pack_training, unpack_training
from .training import Training

CHALLENGER = "challenger_"
"""Prefix of the names of the challenger's arrays."""

SCHEMA = {
    "alarm_rows": Entry(("m", "d"), nan=True),
    "alarm_log_density": Entry(("m",)),
    "contest": Entry((9,), nan=True),
}
"""The arrays beside those of the networks."""


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
    rows, log_density, numbers = read(arrays, SCHEMA)
    first, second, share, *unneeded = numbers.tolist()[:5]
    incumbent = unpack_training(arrays, _count(first, n_records))
    contest = Contest(incumbent.n_variables)
    contest.n_records = n_records
    contest.incumbent = incumbent
    if any(name.startswith(CHALLENGER) for name in arrays):
        contest.challenger = unpack_training(arrays, _count(second, n_records), CHALLENGER)
    contest.share = share
    contest.unneeded = [_count(n, n_records) for n in unneeded]
    contest.alarm = _alarm(rows, log_density, numbers.tolist()[5:], incumbent)
    _require_shares(contest)
    return contest


def _alarm(
    rows: FloatArray, log_density: FloatArray, numbers: list[float], training: Training
) -> Alarm:
    unchecked, checks, mean, variance = numbers
    n, d = rows.shape
    _require(d == training.n_variables and n <= MOST, "unlikely records")
    alarm = Alarm(d)
    alarm.rows, alarm.log_density = rows, log_density
    alarm.unchecked, alarm.checks = record_count(unchecked), record_count(checks)
    _require(alarm.unchecked <= n and (n > 0 or alarm.checks == 0), "records of an alarm")
    known = not math.isnan(mean) and variance >= 0.0
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
