"""Compares the scores of one log under two sets of settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.app.errors import OslrauError
from faust_oslrau.app.pipeline import scoring_settings
from faust_oslrau.app.settings import short
from faust_oslrau.learner.stream import WARM_UP
from faust_oslrau.topics import KafkaRecord

from .quality import mean_of_best
from .scored_log import ScoredLog, Scores
from .told_lines import rejection_told

Pair = tuple[float, float]

STRETCHES = 10
"""Parts of the log that a report lists."""

# Stretches whose mean log-likelihoods are taken as independent.
_INDEPENDENT = 20

GROUPS = ("both", "only_a", "only_b")
"""Who raises an alarm."""


class ComparisonError(OslrauError):
    """No record is scored under both settings after the warm-up."""


@dataclass(frozen=True, slots=True)
class ComparedAlarm:
    """An alarm of A, of B or of both, with p-values and the fields most to blame under each.

    `blamed` is empty where the record is no alarm.
    """

    partition: int
    offset: int
    p_value: Pair
    blamed: tuple[tuple[str, ...], tuple[str, ...]]


class Stretch(NamedTuple):
    """A part of the log: mean log-likelihoods under A and B, and the number of alarms by group."""

    records: int
    log_likelihood: Pair
    alarms: dict[str, int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The n records that A and B both score after the warm-up, partition by partition.

    Attributes
    ----------
    logs
        The whole logs of A and B.
    partition
        The partition of each record (n,), ascending.
    scores
        The records' scores under A and B.
    """

    logs: tuple[ScoredLog, ScoredLog]
    partition: NDArray[np.int64]
    scores: tuple[Scores, Scores]

    @property
    def log_likelihood(self) -> Pair:
        """Mean log-likelihoods in nats."""
        a, b = (float(scores.log_likelihood.mean()) for scores in self.scores)
        return a, b

    @property
    def log_likelihood_best(self) -> Pair:
        """Mean log-likelihoods in nats, each without its lowest hundredth."""
        a, b = (mean_of_best(scores.log_likelihood) for scores in self.scores)
        return a, b

    @property
    def standard_error(self) -> float:
        """Standard error of the difference of the means, in nats; NaN for a short log.

        Neighbouring records are not independent, so it is that of the means of 20 stretches.
        """
        stretches = self.stretches(_INDEPENDENT)
        if not all(stretch.records for stretch in stretches):
            return float("nan")
        differences = [b - a for _, (a, b), _ in stretches]
        return float(np.std(differences, ddof=1)) / math.sqrt(_INDEPENDENT)

    def group(self, name: str) -> NDArray[np.bool_]:
        """Tell which records (n,) are alarms of a group."""
        a, b = (scores.is_alarm for scores in self.scores)
        return {"both": a & b, "only_a": a & ~b, "only_b": b & ~a}[name]

    def stretches(self, count: int = STRETCHES) -> list[Stretch]:
        """Part the log into stretches with equal shares of each partition's records."""
        sizes = np.unique(self.partition, return_counts=True)[1]
        number = np.concatenate([np.arange(n) * count // n for n in sizes.tolist()])
        return [self._stretch(number == i) for i in range(count)]

    def _stretch(self, chosen: NDArray[np.bool_]) -> Stretch:
        n = int(np.count_nonzero(chosen))
        a, b = (
            float(scores.log_likelihood[chosen].mean()) if n else float("nan")
            for scores in self.scores
        )
        alarms = {name: int(np.count_nonzero(chosen & self.group(name))) for name in GROUPS}
        return Stretch(n, (a, b), alarms)

    def alarms(self, group: str) -> list[ComparedAlarm]:
        """Return the alarms of a group, the most unusual first."""
        found = np.flatnonzero(self.group(group))
        lowest = np.fmin(self.scores[0].p_value[found], self.scores[1].p_value[found])
        return [self._alarm(i) for i in found[np.argsort(lowest, kind="stable")].tolist()]

    def _alarm(self, i: int) -> ComparedAlarm:
        place = int(self.partition[i]), int(self.scores[0].offset[i])
        p_a, p_b = (float(scores.p_value[i]) for scores in self.scores)
        blamed_a, blamed_b = (log.blamed.get(place, ()) for log in self.logs)
        return ComparedAlarm(*place, (p_a, p_b), (blamed_a, blamed_b))

    @property
    def differing_settings(self) -> dict[str, tuple[Any, Any]]:
        """The settings that scores depend on and that differ, with the values of A and B."""
        a, b = (scoring_settings(log.settings) for log in self.logs)
        names = [*a, *(name for name in b if name not in a)]
        return {n: (a.get(n), b.get(n)) for n in names if a.get(n) != b.get(n)}

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data, with all alarms."""
        a, b = self.logs
        return {
            "a": a.as_dict(),
            "b": b.as_dict(),
            "differing_settings": self.differing_settings,
            "compared": len(self.partition),
            "log_likelihood": self.log_likelihood,
            "log_likelihood_best": self.log_likelihood_best,
            "standard_error": self.standard_error,
            "stretches": [stretch._asdict() for stretch in self.stretches()],
            "alarms": {name: [asdict(alarm) for alarm in self.alarms(name)] for name in GROUPS},
        }


def compare_logs(a: ScoredLog, b: ScoredLog, *, same_fields: bool = True) -> Comparison:
    """Compare the same log as scored under two sets of settings.

    Log-likelihoods are NaN unless both have the `same_fields`: others are not comparable.

    Raises
    ------
    ComparisonError
        There is no record to compare.
    """
    ours, theirs = a.scores, b.scores
    common = {p: _common(ours[p], theirs[p]) for p in ours if p in theirs}
    counts = [len(pair[0].offset) for pair in common.values()]
    if sum(counts) == 0:
        raise ComparisonError(
            f"expected records that both settings score after the first {WARM_UP} of a partition, "
            f"got {a.scored:,} and {b.scored:,} scored records"
            f"{rejection_told(a.first_rejection or b.first_rejection)}"
        )
    scores_a, scores_b = (Scores.joined([pair[i] for pair in common.values()]) for i in (0, 1))
    if not same_fields:
        nothing = np.full(sum(counts), np.nan)
        scores_a, scores_b = (replace(s, log_likelihood=nothing) for s in (scores_a, scores_b))
    return Comparison(
        logs=(a, b),
        partition=np.repeat(np.array(list(common), np.int64), counts),
        scores=(scores_a, scores_b),
    )


def _common(a: Scores, b: Scores) -> tuple[Scores, Scores]:
    _, in_a, in_b = np.intersect1d(a.offset, b.offset, assume_unique=True, return_indices=True)
    return a.take(in_a), b.take(in_b)


def differing_fields(a: ScoredLog, b: ScoredLog, records: Sequence[KafkaRecord]) -> str | None:
    """Tell which fields of the partition of these records only one of the settings scores."""
    ours, theirs = a.fields(records), b.fields(records)
    if ours is None or theirs is None or set(ours) == set(theirs):
        return None
    only = [(log, sorted(set(x) - set(y))) for log, x, y in ((a, ours, theirs), (b, theirs, ours))]
    told = [f"only {log.name} has {short(', '.join(names))}" for log, names in only if names]
    return f"partition {records[0].partition}: {', '.join(told)}; log-likelihoods do not compare"
