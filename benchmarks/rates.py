"""When losses and surges of records are found, and how many without cause, by arrivals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtr, pdtrik

from faust_oslrau.learner.rates.evidence import FALSE_ALARM_RATE, Evidence
from faust_oslrau.learner.rates.filters import Filters

from .report import write_report

FloatArray = NDArray[np.float64]
Began = list[tuple[int, int]]
"""Windows and subjects of changes that were found."""

FACTORS = (0.2, 0.5, 0.8, 1.5, 2.0, 5.0)
PER_FACTOR, DAYS, DAY, LENGTH = 12, 12, 1440, 120
TRAILING = 60
TEXT = f"""\
Windows of a minute of {PER_FACTOR * len(FACTORS)} subjects with 2 to 300 records in one, for
{DAYS} days. In {LENGTH} windows of the last three, each brings so many times the usual number of
records: of how many subjects this was told while it lasted, and the median delay in windows.
*False* are changes without cause, for each subject and day: in the first two days, and after
them. *Bands* are those of a Poisson distribution around the mean of the last {TRAILING} windows;
by chance, as few windows are out of them as begin an event of ours. Choices were made on the
first three kinds; the others served none and were looked at twice."""


def constant(minutes: FloatArray, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Independent arrivals."""
    return np.ones(shape)


def daily(minutes: FloatArray, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Nine tenths less at night than by day."""
    phase = rng.uniform(300, 420, shape[1])
    return 0.55 + 0.45 * np.sin(2 * np.pi * (minutes[:, None] - phase) / DAY)


def bursty(minutes: FloatArray, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A level that wanders around its mean within minutes."""
    return np.exp(_wandering(shape, 0.8, 0.2, rng))


def office(minutes: FloatArray, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Five times as much from eight to six on workdays."""
    hour, day = minutes % DAY / 60, minutes // DAY
    return np.where((hour >= 8) & (hour < 18) & (day % 7 < 5), 1.0, 0.2)[:, None] * np.ones(shape)


def overdispersed(
    minutes: FloatArray, shape: tuple[int, int], rng: np.random.Generator
) -> FloatArray:
    """Windows that vary by a third, each on its own."""
    return rng.gamma(9.0, 1.0 / 9.0, shape)


def drifting(minutes: FloatArray, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A level that goes up or down by a tenth in a day."""
    slope = rng.uniform(-0.1, 0.1, shape[1]) / DAY
    return np.exp(slope * minutes[:, None])


def days_differ(
    minutes: FloatArray, shape: tuple[int, int], rng: np.random.Generator
) -> FloatArray:
    """A daily course whose height differs by a fifth from day to day, and wanders slowly."""
    height = np.exp(0.2 * rng.normal(size=(int(minutes[-1] // DAY) + 1, shape[1])))
    slow = np.exp(_wandering(shape, 0.999, 0.004, rng))
    return daily(minutes, shape, rng) * height[(minutes // DAY).astype(int)] * slow


def _wandering(
    shape: tuple[int, int], kept: float, step: float, rng: np.random.Generator
) -> FloatArray:
    noise, level = step * rng.normal(size=shape), np.zeros(shape)
    for window in range(1, len(level)):
        level[window] = kept * level[window - 1] + noise[window]
    return level


Course = Callable[[FloatArray, tuple[int, int], np.random.Generator], FloatArray]
COURSES: dict[str, tuple[Course, bool]] = {
    "constant": (constant, False),
    "daily": (daily, False),
    "bursty": (bursty, False),
    "office hours": (office, True),
    "overdispersed": (overdispersed, True),
    "drifting": (drifting, True),
    "days that differ": (days_differ, True),
}
"""Courses of the expected number of records, and whether no choice was made on them."""


def ours(counts: FloatArray) -> Began:
    """Find changes as `learner.rates` does."""
    n = counts.shape[1]
    filters, evidence = Filters(60.0), Evidence(60.0)
    filters.reserve(n)
    evidence.reserve(n)
    began: Began = []
    for window, records in enumerate(counts):
        hour = (window + 0.5) / 60 % 168
        predicted = filters.predict(hour)
        for found in evidence.add(records, predicted, window, filters.has_level):
            if found.begins:
                began.append((window, found.subject))
            elif found.stays:
                filters.forget_level(found.subject)
        filters.learn(records, predicted, hour, evidence.changed == 0)
    return began


def bands(counts: FloatArray) -> Began:
    """Find windows outside a Poisson band, of which the one before was inside."""
    began, outside = [], np.zeros(counts.shape[1], np.bool_)
    for window in range(TRAILING, len(counts)):
        mean = counts[window - TRAILING : window].mean(axis=0) + 1.0 / TRAILING
        low, high = (pdtrik(p, mean) for p in (FALSE_ALARM_RATE / 2, 1 - FALSE_ALARM_RATE / 2))
        records = counts[window]
        out = ((records < low) & (pdtr(records, mean) < FALSE_ALARM_RATE / 2)) | (
            records > high + 1
        )
        began += [(window, subject) for subject in np.flatnonzero(out & ~outside).tolist()]
        outside = out
    return began


def figures_of(course: Course, days: int, per_factor: int) -> list[dict[str, Any]]:
    """Return the figures of both ways for one course."""
    rng = np.random.default_rng(0)
    n, minutes = per_factor * len(FACTORS), np.arange(days * DAY, dtype=np.float64)
    base = np.exp(rng.uniform(np.log(2), np.log(300), n))
    means = base * course(minutes, (len(minutes), n), rng)
    starts = (days - 3) * DAY + rng.integers(0, 3 * DAY - 2 * LENGTH, n)
    factors = np.repeat(FACTORS, per_factor)
    for subject, start in enumerate(starts.tolist()):
        means[start : start + LENGTH, subject] *= factors[subject]
    counts = rng.poisson(means).astype(np.float64)
    return [
        {"way": way, **judged(find(counts), starts, factors, days)}
        for way, find in (("rates", ours), ("bands", bands))
    ]


def judged(
    began: Began, starts: NDArray[np.int64], factors: FloatArray, days: int
) -> dict[str, Any]:
    """Return false changes for each subject and day, and what was found of each factor."""
    delays: dict[int, int] = {}
    false = []
    for window, subject in began:
        off = window - int(starts[subject])
        if 0 <= off < LENGTH:
            delays.setdefault(subject, off)
        elif not LENGTH <= off < 2 * LENGTH:  # the return of what was usual is no false change
            false.append(window)
    young = sum(window < 2 * DAY for window in false)
    found: dict[str, Any] = {
        "false, young": young / 2 / len(starts),
        "false": (len(false) - young) / max(days - 2, 1) / len(starts),
    }
    for factor in FACTORS:
        of = np.flatnonzero(factors == factor).tolist()
        late = [delays[subject] for subject in of if subject in delays]
        delay = f", {np.median(late):.0f}" if late else ""
        found[f"x {factor:g}"] = f"{len(late)} of {len(of)}{delay}"
    return found


def run(out: Path, quick: bool) -> None:
    """Losses and surges of records: found when, and how many false ones, by kind of arrivals."""
    days, per_factor = (4, 1) if quick else (DAYS, PER_FACTOR)
    figures = [
        {"arrivals": name, "held out": held, **figure}
        for name, (course, held) in COURSES.items()
        for figure in figures_of(course, days, per_factor)
    ]
    shown = [
        {key: f"{x:.3g}" if isinstance(x, float) else x for key, x in figure.items()}
        for figure in figures
    ]
    write_report(out, "rates", ["Rates, losses and surges", TEXT], shown, figures)
