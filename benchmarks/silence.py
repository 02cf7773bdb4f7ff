"""How many silences are false, and when real ones are found, for several kinds of arrivals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.scoring.block import BEGAN
from faust_oslrau.learner.scoring.clock import Clock
from faust_oslrau.learner.silence.layer import Silences

from .report import write_report

FloatArray = NDArray[np.float64]
Shape = tuple[int, int]
Draw = Callable[[np.random.Generator, Shape], FloatArray]

ENTITIES, GAPS = 100, 10_000
SECOND, MINUTE, HOUR, DAY = 1e3, 60e3, 3600e3, 86_400e3
STOP = 0.75
TEXT = (
    f"{ENTITIES} entities of one partition with about {GAPS:,} gaps each. Every second entity "
    f"stops for good after {STOP:.0%} of the time. *False* are silences of entities that go on, "
    "*young* those among them in the first tenth of the time, *per million* the false ones for "
    "each million gaps. *Found* is the share of the real silences that were found before the end, "
    "*delay* their median length then, in mean gaps. Choices were made on the first six kinds; no "
    "choice was made on the others."
)


def regular(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw gaps of a minute that vary by 5 %."""
    return MINUTE * (1.0 + 0.05 * rng.normal(size=shape))


def lossy(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw regular gaps where 2 % of the records are lost."""
    return MINUTE * rng.geometric(0.98, shape) * (1.0 + 0.02 * rng.normal(size=shape))


def poisson(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw gaps of independent arrivals."""
    return rng.exponential(MINUTE, shape)


def bursts(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw gaps of bursts of about 20 records and pauses of about ten minutes."""
    pause = rng.random(shape) < 1 / 20
    return np.where(pause, rng.exponential(10 * MINUTE, shape), rng.exponential(SECOND, shape))


def lognormal(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw gaps whose logarithms are Gaussian."""
    return 10 * SECOND * np.exp(1.5 * rng.normal(size=shape))


def daily(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw arrivals that are ten times as rare in every second half of a day, for all at once."""
    gaps, time = rng.exponential(MINUTE, shape), np.zeros(shape[0])
    for i in range(shape[1]):
        gaps[:, i] *= np.where(time % DAY < DAY / 2, 1.0, 10.0)
        time += gaps[:, i]
    return gaps


def gamma(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw gaps that cluster."""
    return rng.gamma(0.3, MINUTE, shape)


def pareto(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw gaps without a variance."""
    return 10 * SECOND * (1.0 + rng.pareto(1.5, shape))


def weibull(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw gaps with a stretched exponential tail."""
    return 10 * SECOND * rng.weibull(0.5, shape)


def nights(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw regular gaps with a pause of eight hours in every day, at each entity's own time."""
    gaps, time = regular(rng, shape), rng.uniform(0.0, 16 * HOUR, shape[0])
    for i in range(shape[1]):
        gaps[:, i] += np.where((time + gaps[:, i]) % DAY > 16 * HOUR, 8 * HOUR, 0.0)
        time += gaps[:, i]
    return gaps


def rare_losses(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw regular gaps; one in ten thousand is up to five times as long."""
    lost = np.where(rng.random(shape) < 1e-4, rng.integers(2, 6, shape), 1)
    return MINUTE * lost * (1.0 + 0.02 * rng.normal(size=shape))


def two_periods(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw gaps of ten seconds or, one in ten, ten minutes."""
    period = np.where(rng.random(shape) < 0.1, 10 * MINUTE, 10 * SECOND)
    return period * (1.0 + 0.02 * rng.normal(size=shape))


CASES: dict[str, tuple[Draw, bool]] = {
    "regular": (regular, False),
    "regular, 2 % lost": (lossy, False),
    "Poisson": (poisson, False),
    "bursts and pauses": (bursts, False),
    "log-normal": (lognormal, False),
    "day and night": (daily, False),
    "gamma, shape 0.3": (gamma, True),
    "Pareto, exponent 1.5": (pareto, True),
    "Weibull, shape 0.5": (weibull, True),
    "pauses at night": (nights, True),
    "regular, losses rare": (rare_losses, True),
    "two periods": (two_periods, True),
}
"""Gaps in milliseconds, and whether no choice was made on them."""


def figures_of(draw: Draw, gaps: int) -> dict[str, Any]:
    """Return the figures of one kind of arrivals."""
    rng = np.random.default_rng(0)
    drawn = np.maximum(draw(rng, (ENTITIES, gaps)), 1.0)
    times = rng.uniform(0.0, drawn[:, :1]) + drawn.cumsum(axis=1)
    end = float(times[:, -1].min())
    stops = np.where(np.arange(ENTITIES) % 2 == 1, STOP * end, end)
    kept = times < stops[:, None]
    order = times[kept].argsort(kind="stable")
    who, stamps = np.nonzero(kept)[0][order], times[kept][order]
    false, young, delays = [], 0, []
    for entity, since, until in silences(who, stamps):
        if since < stops[entity] and until < stops[entity]:
            false.append(entity)
            young += since < 0.1 * end
        elif entity % 2 == 1:
            delays.append((until - since) / drawn[entity].mean())
    return {
        "gaps": len(who),
        "false": len(false),
        "young": int(young),
        "per million": 1e6 * len(false) / len(who),
        "found": len(delays) / (ENTITIES // 2),
        "delay": float(np.median(delays)) if delays else None,
    }


def silences(who: NDArray[np.int64], stamps: FloatArray) -> list[tuple[int, float, float]]:
    """Return entity, last time before and time at which it was found of each silence."""
    m = len(who)
    fresh = np.zeros(m, np.bool_)
    fresh[np.unique(who, return_index=True)[1]] = True
    places = np.column_stack([np.arange(m), np.arange(m), stamps.astype(np.int64)])
    found, began = [], set()
    moments, keys = Clock().take(places), [b"%d" % entity for entity in who]
    for silence in Silences().take(places, moments, who, fresh, keys):
        told = (silence.entity, silence.last_offset)
        if silence.entity is not None and told not in began:
            found.append((int(silence.entity), stamps[silence.last_offset], stamps[silence.row]))
        if silence.state == BEGAN:
            began.add(told)
    return found


def run(out: Path, quick: bool) -> None:
    """False silences of entities and delays of real ones, by kind of arrivals."""
    figures = [
        {"arrivals": name, "held out": held, **figures_of(draw, 400 if quick else GAPS)}
        for name, (draw, held) in CASES.items()
    ]
    shown = [
        {key: f"{x:.3g}" if isinstance(x, float) else x for key, x in figure.items()}
        for figure in figures
    ]
    write_report(out, "silence", ["Silences, false and real", TEXT], shown, figures)
