"""What seasons see: values of the day at night; and what they cost where there is no season."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from time import process_time

import click
import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner import OSLRAU, IncidentParameters, ScoredBlock, StreamScorer

from .datasets import Array
from .learners import LEARNERS
from .report import markdown, prose, write_report

FIELDS = 4
DAY = 86_400_000
START = 1_767_571_200_000
"""A Monday, 2026-01-05."""

DAYS, LEARNED = 24, 14
"""Days of a stream, and those before the first that is reported on."""

BURST_DAYS = (16, 18, 20, 22)
MINUTES = 10
"""Length of a burst."""

RATE = 0.001
NIGHT, NOON = 2.5, 11.5
"""Hours at which a burst begins, and from which its values are taken."""

Base = Callable[[np.random.Generator, Array, Array], Array]
"""Draws rows by the hours and the days of the week of their time stamps."""

Mask = NDArray[np.bool_]

TEXT = f"""\
Streams of {FIELDS} fields over {DAYS} days with a pattern of the day. In four nights after two
weeks, the values of {MINUTES} minutes are those of 11:30. Means of seeds, from day {LEARNED} on:
bursts with an alarm of four, and with an incident; alarms outside bursts as a multiple of the
nominal {RATE}; mean log-likelihood outside bursts. *Learner* is `oslrau`, alone or with
`mixtures`."""

NONE_TEXT = """\
## No season

The same without a pattern and without bursts. *Learned anew* is the number of streams in which a
season counted at some time."""

COST_TEXT = """\
## Cost

CPU microseconds per record of 16 fields in blocks of 4,096, a record a minute, after 16,384
records."""


def run(out: Path, quick: bool) -> None:
    """Seasons: bursts at night in daily patterns, streams without a season, cost."""
    rates, seeds = ((288,), 1) if quick else ((288, 1440), 4)
    seasonal_rows = [
        row for name, base in SEASONAL.items() for row in rows(name, base, rates, seeds)
    ]
    others = [row for name, base in WITHOUT.items() for row in rows(name, base, rates, seeds)]
    blocks = ["Seasons"]
    for text, found in ((TEXT, seasonal_rows), (NONE_TEXT, others)):
        blocks += [prose(text), markdown([rounded(row) for row in found])]
    blocks.append(prose(COST_TEXT))
    costs = list(cost(2 if quick else 8))
    write_report(
        out, "seasons", blocks, [rounded(row) for row in costs], [*seasonal_rows, *others, *costs]
    )


def correlated(rng: np.random.Generator, n: int) -> Array:
    return np.asarray(
        rng.normal(size=(n, FIELDS)) @ (np.eye(FIELDS) + 0.5 * rng.normal(size=(FIELDS, FIELDS)))
    )


def autoregressive(rng: np.random.Generator, n: int, keep: float) -> Array:
    noise, x = correlated(rng, n), np.zeros((n, FIELDS))
    for t in range(1, n):
        x[t] = keep * x[t - 1] + noise[t]
    return x


def two_peaks(rng: np.random.Generator, hour: Array, _: Array) -> Array:
    """Draw fields that are high in the morning and in the evening."""
    level = np.exp(-(((hour - 10) / 3) ** 2)) + 0.7 * np.exp(-(((hour - 19) / 2) ** 2))
    return 8.0 * level[:, None] * rng.uniform(0.5, 1.5, FIELDS) + correlated(rng, len(hour))


def opening_hours(rng: np.random.Generator, hour: Array, _: Array) -> Array:
    """Draw fields that jump at 8:00 and at 20:00."""
    opened = (hour >= 8) & (hour < 20)
    return 6.0 * opened[:, None] * rng.uniform(0.5, 1.5, FIELDS) + correlated(rng, len(hour))


def timetable(rng: np.random.Generator, hour: Array, _: Array) -> Array:
    """Draw fields that jump at 7:45 and at 16:15."""
    opened = (hour >= 7.75) & (hour < 16.25)
    return 6.0 * opened[:, None] * rng.uniform(0.5, 1.5, FIELDS) + correlated(rng, len(hour))


def slow_noise(rng: np.random.Generator, hour: Array, _: Array) -> Array:
    """Draw waves with noise that has a memory of ten records."""
    angle = 2 * np.pi * hour[:, None] / 24 + rng.uniform(0, 0.5, FIELDS)
    return np.asarray(-8.0 * np.cos(angle) + autoregressive(rng, len(hour), 0.9))


def multiplied(rng: np.random.Generator, hour: Array, _: Array) -> Array:
    """Draw counts whose noise grows with their level."""
    level = np.exp(1.5 - 1.2 * np.cos(2 * np.pi * hour[:, None] / 24) * rng.uniform(0.7, 1, FIELDS))
    return np.asarray(level * np.exp(0.1 * correlated(rng, len(hour))))


def heavy_tails(rng: np.random.Generator, hour: Array, _: Array) -> Array:
    """Draw Student's t with three degrees of freedom."""
    return correlated(rng, len(hour)) / np.sqrt(rng.chisquare(3, size=(len(hour), 1)) / 3)


def drifting(rng: np.random.Generator, hour: Array, _: Array) -> Array:
    """Draw fields that wander slowly."""
    return autoregressive(rng, len(hour), 0.999) + correlated(rng, len(hour))


def busy_spells(rng: np.random.Generator, hour: Array, _: Array) -> Array:
    """Draw a second level for some hours at any time."""
    busy = np.cumsum(rng.random(len(hour)) < 1 / 200) % 2 == 1
    return 4.0 * busy[:, None] + correlated(rng, len(hour))


SEASONAL: Mapping[str, Base] = {
    "two peaks": two_peaks, "opening hours": opening_hours, "timetable": timetable,
    "slow noise": slow_noise, "multiplied": multiplied,
}  # fmt: skip
WITHOUT: Mapping[str, Base] = {
    "heavy tails": heavy_tails, "drifting": drifting, "busy spells": busy_spells,
}  # fmt: skip


def rows(name: str, base: Base, rates: tuple[int, ...], seeds: int) -> Iterator[dict[str, object]]:
    """Yield the figures of one family at each rate, without seasons and with them."""
    for per_day, (kind, learner) in product(rates, LEARNERS.items()):
        found: dict[str | None, list[tuple[float, ...]]] = {None: [], "UTC": []}
        for seed in range(seeds):
            times = START + np.arange(DAYS * per_day) * (DAY // per_day)
            x = base(np.random.default_rng([seed, 77, per_day]), times / 3.6e6 % 24, times)
            bursts = list(add_bursts(x, per_day)) if name in SEASONAL else []
            for seasons, of_seeds in found.items():
                scorer = StreamScorer(
                    learner(), alarm_rate=RATE, seasons=seasons,
                    incidents=IncidentParameters(quiet_records=per_day // 6),
                )  # fmt: skip
                block = scorer.process(x, None, np.column_stack([np.arange(len(x)), times]))
                of_seeds.append(figures(block, bursts, LEARNED * per_day))
            click.echo(f"{name}, {kind}, {per_day} a day: {seed}", err=True)
        for seasons, of_seeds in found.items():
            caught, opened, alarms, likelihood, anew = np.mean(of_seeds, axis=0).tolist()
            row = {"family": name, "learner": kind, "records a day": per_day}
            of_bursts = {"bursts": caught, "incidents": opened}
            yield {
                **row,
                "seasons": "yes" if seasons else "no",
                **(of_bursts if bursts else {"learned anew": anew * seeds}),
                "alarms": alarms,
                "log-likelihood": likelihood,
            }


def add_bursts(x: Array, per_day: int) -> Iterator[slice]:
    """Put values of noon into four nights; yield where."""
    length = max(2, per_day * MINUTES // 1440)
    for day in BURST_DAYS:
        night, noon = (int((day + hour / 24) * per_day) for hour in (NIGHT, NOON))
        x[night : night + length] = x[noon : noon + length]
        yield slice(night, night + length)


def figures(block: ScoredBlock, bursts: list[slice], first: int) -> tuple[float, ...]:
    usual: Mask = np.arange(len(block.p_value)) >= first
    for burst in bursts:
        usual[burst] = False
    opened = [event.row for event in block.incidents if event.state == "opened"]
    return (
        sum(bool(block.is_anomaly[burst].any()) for burst in bursts),
        sum(any(burst.start <= row < burst.stop for row in opened) for burst in bursts),
        float(block.is_anomaly[usual].mean()) / RATE,
        float(block.log_likelihood[usual].mean()),
        float((np.diff(block.n_learned) < 0).any()),
    )


def cost(chunks: int) -> Iterator[dict[str, object]]:
    """Yield the CPU time per record without and with seasons."""
    n = 16_384 + chunks * 4096
    times = START + 60_000 * np.arange(n)
    x = np.random.default_rng(0).normal(size=(n, 16))
    x += np.roll(x, 1, axis=1) + 4.0 * np.sin(2 * np.pi * times / DAY)[:, None]
    places = np.column_stack([np.arange(n), times])
    kinds = {"no": StreamScorer(OSLRAU()), "yes": StreamScorer(OSLRAU(), seasons="UTC")}
    seconds = np.empty((chunks, 2))
    for scorer in kinds.values():
        scorer.process(x[:16_384], None, places[:16_384])
    for chunk in range(chunks):  # by turns, as other work on the machine comes and goes
        part = slice(16_384 + 4096 * chunk, 16_384 + 4096 * (chunk + 1))
        for number, scorer in enumerate(kinds.values()):
            began = process_time()
            scorer.process(x[part], None, places[part])
            seconds[chunk, number] = process_time() - began
    micro = np.median(seconds, axis=0) / 4096 * 1e6
    for name, value in zip(kinds, micro.tolist(), strict=True):
        yield {"seasons": name, "microseconds": value, "multiple": value / float(micro[0])}


def rounded(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row of a table."""
    return {name: f"{value:.2f}" if isinstance(value, float) else value
            for name, value in row.items()}  # fmt: skip
