"""What `directions` and `least` do to alarms: on which side, and how far off, deviations matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from faust_oslrau.learner import OSLRAU, StreamScorer

from .datasets import Array
from .report import prose, write_report
from .systems import CHOICES, System

FIRST = 10_000
"""Records that are not counted."""
EVERY = 500
FAR = 8.0
RATE = 0.001

TEXT = f"""\
Streams of the families on which choices may be made, two of each. *Alarms* are the usual records
that alarm, in units of the alarm rate, {RATE}, after the first {FIRST:,} records. For the faults,
one record in {EVERY} is {FAR:g} spreads off in one field, drawn for the stream, above and below by
turns: the share of those that alarm, of those that matter and of the others. All fields have the
same direction; `least` is one spread."""

Settings = Callable[[Array], dict[str, Mapping[int, Any]]]


def run(out: Path, quick: bool) -> None:
    """Alarms with and without directions, and least deviations that matter."""
    n = 2 * FIRST if quick else 60_000
    found = {
        ways: {
            name: np.mean([measured(system, place, seed, n, ways) for seed in range(2)], axis=0)
            for place, (name, system) in enumerate(CHOICES.items())
        }
        for ways in WAYS
    }
    families = [row(ways, name, each[name]) for name in CHOICES for ways, each in found.items()]
    means = [row(ways, "mean", np.mean([*each.values()], axis=0)) for ways, each in found.items()]
    blocks = ["Deviations that matter", prose(TEXT)]
    write_report(out, "relevance", blocks, families + means, {"means": means})


def _all(side: str) -> Settings:
    return lambda spread: {"directions": dict.fromkeys(range(len(spread)), side)}


def _least(spread: Array) -> dict[str, Mapping[int, Any]]:
    return {"least": {j: float(s) for j, s in enumerate(spread) if s > 0}}


WAYS: dict[str, Settings] = {
    "none": lambda _: {},
    "directions: high": _all("high"),
    "directions: low": _all("low"),
    "least: a spread": _least,
}


def measured(system: System, place: int, seed: int, n: int, ways: str) -> list[float]:
    """Return usual records' alarms in alarm rates, and the shares of faults that alarm.

    The shares are those of faults that matter, and of the others, NaN without any.
    """
    rng = np.random.default_rng([71, place, seed])
    usual = system(rng, n)
    spread, field = np.std(usual[:FIRST], axis=0), int(rng.integers(usual.shape[1]))
    at = np.arange(FIRST + EVERY // 2, n, EVERY)
    above = np.arange(len(at)) % 2 == 0
    faulty = usual.copy()
    faulty[at, field] += np.where(above, FAR, -FAR) * spread[field]
    settings = WAYS[ways](spread)
    alarms, found = (
        StreamScorer(OSLRAU(), alarm_rate=RATE, **settings).process(x).is_anomaly
        for x in (usual, faulty)
    )
    side = settings.get("directions", {}).get(field)
    matter = np.ones_like(above) if side is None else above == (side == "high")
    shares = [
        float(found[at[which]].mean()) if which.any() else np.nan for which in (matter, ~matter)
    ]
    return [float(alarms[FIRST:].mean()) / RATE, *shares]


def row(ways: str, name: str, figures: Array) -> dict[str, object]:
    """Return figures as a row of the table."""
    alarms, matter, others = ("" if np.isnan(each) else f"{each:.2f}" for each in figures)
    return {
        "family": name, "setting": ways, "alarms": alarms,
        "faults that matter": matter, "other faults": others,
    }  # fmt: skip
