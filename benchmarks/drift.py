"""Streams that change: log-likelihood, alarms and the drift signal over time, with forgetting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from faust_oslrau.learner import OSLRAU, StreamScorer

from .datasets import Array
from .families import clusters, factors
from .plots import plot_drift
from .report import prose, write_report

FIELDS = 8
MEMORIES = (None, 30_000, 8_000, 2_000)
SEEDS = 3
RATE = 0.01
WINDOW = 512
"""Records that a point of a plot stands for."""

TAKEN_IN = 0.1
"""Share of the fall in log-likelihood that may remain when a change counts as learned."""

TEXT = """\
Streams of 8 fields that change from one set of six clusters to another: *sudden*, after half of the
records; *gradual*, over the third quarter, in which more and more records come from the new one;
*recurring*, every eighth of the stream. *None* is a stream without a change, of correlated fields.
*Log-likelihood* is the mean over all records after the first 1,000, each scored before it is
learned. *Alarms* is the share of those records with a p-value of at most 0.01. *Taken in* counts
the records after the change (sudden: the middle; gradual: the end of the third quarter) until a
window of 512 is within a tenth of the first window's fall of what the stream's last eighth reaches.
*Signals* counts those of the drift detector. Each figure is the mean of three streams, with the
least and the most in brackets where they differ; the plot shows the first."""

Stream = Callable[[np.random.Generator, int], Array]


@dataclass(frozen=True)
class Course:
    """What happened to one scorer on one stream: means of windows, and events."""

    stream: str
    memory: int | None
    log_likelihood: Array
    alarms: Array
    signals: list[int]


def run(out: Path, quick: bool) -> None:
    """Log-likelihood, alarms and drift signal on changing streams, with and without forgetting."""
    n = 8 * WINDOW if quick else 80 * WINDOW
    courses = [
        [follow(name, stream(np.random.default_rng(seed), n), memory) for seed in range(SEEDS)]
        for name, stream in STREAMS.items()
        for memory in MEMORIES
    ]
    plot_drift(out / "drift.png", [(c.stream, label(c), c.log_likelihood, c.alarms, c.signals)
                                   for c, *_ in courses], WINDOW)  # fmt: skip
    figures = [[row(course, n) for course in repeats] for repeats in courses]
    rows = [{name: summary([row[name] for row in repeats]) for name in repeats[0]}
            for repeats in figures]  # fmt: skip
    single = [own | {"seed": seed} for repeats in figures for seed, own in enumerate(repeats)]
    write_report(out, "drift", ["Change", prose(TEXT)], rows, single, ["drift.png"])


def summary(values: list[object]) -> object:
    """Mean and range of numbers, to as many digits as they have; equal values as they are."""
    numbers = [value for value in values if isinstance(value, (int, float))]
    if len(set(values)) == 1 or not numbers:
        return values[0]
    digits = max(len(str(number).partition(".")[2]) for number in numbers)
    mean = f"{sum(numbers) / len(numbers):.{digits}f} ({min(numbers)} to {max(numbers)})"
    return mean if len(numbers) == len(values) else f"{mean}, {len(values) - len(numbers)} none"


def two(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    return clusters(rng, n, FIELDS), clusters(rng, n, FIELDS)


def none(rng: np.random.Generator, n: int) -> Array:
    return factors(rng, n, FIELDS)


def sudden(rng: np.random.Generator, n: int) -> Array:
    old, new = two(rng, n)
    return np.concatenate([old[: n // 2], new[n // 2 :]])


def gradual(rng: np.random.Generator, n: int) -> Array:
    old, new = two(rng, n)
    chance = np.clip((np.arange(n) - n / 2) / (n / 4), 0, 1)
    return np.where((rng.random(n) < chance)[:, None], new, old)


def recurring(rng: np.random.Generator, n: int) -> Array:
    old, new = two(rng, n)
    return np.where((np.arange(n) * 8 // n % 2 == 1)[:, None], new, old)


STREAMS: dict[str, Stream] = {
    "none": none, "sudden": sudden, "gradual": gradual, "recurring": recurring,
}  # fmt: skip
CHANGES = {"sudden": 1 / 2, "gradual": 3 / 4}
"""Position at which the change of a stream is complete, as a share of its length."""


def follow(name: str, x: Array, memory: int | None) -> Course:
    """Score and learn one stream."""
    block = StreamScorer(OSLRAU(memory=memory)).process(x)
    click.echo(f"{name}, memory {memory}", err=True)
    return Course(
        name,
        memory,
        windows(block.log_likelihood),
        windows(np.where(np.isnan(block.p_value), 0.0, block.p_value <= RATE)),
        [position for position, _ in block.changes],
    )


def windows(values: Array) -> Array:
    return np.nanmean(values.reshape(-1, WINDOW), axis=1)


def label(course: Course) -> str:
    return "no forgetting" if course.memory is None else f"memory {course.memory:,}"


def row(course: Course, n: int) -> dict[str, object]:
    change = CHANGES.get(course.stream)
    start = {"none": n, "gradual": n // 2, "sudden": n // 2, "recurring": n // 8}[course.stream]
    late = [signal for signal in course.signals if signal >= start]
    false = len(course.signals) - len(late)
    return {
        "change": course.stream,
        "memory": course.memory or "off",
        "log-likelihood": round(float(course.log_likelihood[2:].mean()), 3),
        "alarms": round(float(course.alarms[2:].mean()), 4),
        "taken in": taken_in(course, change) if change else "",
        "first signal after the change": late[0] - start if late else "",
        "signals": len(course.signals),
        "before any change": false,
    }


def taken_in(course: Course, change: float) -> int | None:
    """Count the records after a change until the log-likelihood is close to its final value."""
    levels = course.log_likelihood
    after = levels[int(change * len(levels)) :]
    reached = after[-len(levels) // 8 :].mean()
    near = after >= reached - TAKEN_IN * max(reached - after[0], 0.0)
    return int(np.argmax(near)) * WINDOW if near.any() else None
