"""What the readout promises, held against streams that are made for each promise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from faust_oslrau.learner import (
    OSLRAU,
    IncidentEvent,
    IncidentParameters,
    ScoredBlock,
    StreamScorer,
)

from .readout import FIRST, realised
from .report import markdown, prose, write_report
from .systems import CHOICES, EXCHANGEABLE, changes
from .systems.devices import BROKEN, devices

EARLY = slice(1_000, 20_000)
N_CHANGED = 12_000
N_DEVICES = 100_000
SEEDS = 8

STUCK = slice(4_000, 4_200)
BURST = slice(4_300, 4_310)
DEVIATIONS = 10.0

TEXT = """\
Realised over nominal rates of p-values on exchangeable streams of {n:,} records, of all after the
first 1,000 and of records 1,000 to 20,000."""

OTHERS = """\
*Changed* are 24 streams of 12,000 records that change for good at a random place. *Burst* is how
many of ten records ten deviations off, 100 records after a field was stuck for 200, have a p-value
at most 0.001, in each of eight streams. The rows with devices are of 30 devices with entities and
incidents: how many records of the broken one, of 200 or 1,000, came before its incident opened;
what opened of other devices; and events in 100,000 records without a fault."""


def run(out: Path, quick: bool) -> None:
    """What p-values, incidents and events of entities promise."""
    n = 50_000 if quick else 1_000_000
    realised = list(exchangeable(n))
    blocks = ["Promises of the readout", prose(TEXT.format(n=n)), markdown(realised)]
    click.echo(blocks[-1], err=True)
    rows = [*changed(), burst_after_stuck(), *broken(2 if quick else SEEDS), usual_devices()]
    write_report(out, "goals", [*blocks, "## Others", prose(OTHERS)], rows, [*realised, *rows])


def exchangeable(n: int) -> Iterator[dict[str, object]]:
    """Yield the realised rates on each exchangeable stream."""
    for place, (name, draw) in enumerate(EXCHANGEABLE.items()):
        x = draw(np.random.default_rng([63, place]), n)
        p_value = StreamScorer(OSLRAU()).process(x).p_value
        whole, early = realised(p_value[EARLY.start :]), realised(p_value[EARLY])
        yield {"stream": name} | {
            f"{written}, {of}": f"{found[written]:.2f}"
            for written in whole
            for of, found in (("all", whole), ("early", early))
        }


def changed() -> Iterator[dict[str, object]]:
    """Yield the rates on streams that change."""
    found = []
    for place, system in enumerate(CHOICES.values()):
        for seed in range(4):
            x = changes(system, np.random.default_rng([64, place, seed]), N_CHANGED).x
            found.append(realised(StreamScorer(OSLRAU()).process(x).p_value[FIRST:]))
    for written in found[0]:
        over = np.mean([each[written] for each in found])
        yield {"what": f"changed, {written}", "found": f"{over:.2f}"}


def burst_after_stuck() -> dict[str, object]:
    """Return how many records of a burst after a stuck field are found, for each seed."""
    found = []
    for seed in range(SEEDS):
        rng = np.random.default_rng([65, seed])
        x = rng.normal(size=(5_000, 5)) @ rng.normal(size=(5, 5))
        x[STUCK, 0] = x[STUCK.start - 1, 0]
        x[BURST, 1] += DEVIATIONS * x[:, 1].std()
        p_value = StreamScorer(OSLRAU()).process(x).p_value
        found.append(str(np.count_nonzero(p_value[BURST] <= 0.001)))
    return {"what": "burst", "found": ", ".join(found)}


def scorer_of_devices() -> StreamScorer:
    """Return a scorer that tells of incidents and of unusual devices."""
    incidents = IncidentParameters()
    return StreamScorer(OSLRAU(), max_entities=100, incidents=incidents, entity_events=["unusual"])


def opened_of(block: ScoredBlock) -> list[IncidentEvent]:
    """Return the events of a block that open an incident."""
    return [event for event in block.incidents if event.state == "opened"]


def broken(seeds: int) -> Iterator[dict[str, object]]:
    """Yield after how many records of a broken device its incident opened, and of how many others.

    "none" where it did not while the fault lasted.
    """
    for fault in ("stuck", "drift"):
        delays, others = [], 0
        for seed in range(seeds):
            x, keys, rows = devices(seed, fault, 60_000)
            opened = opened_of(scorer_of_devices().process(x, keys))
            own = [e.row for e in opened if e.incident.entity == f"device-{BROKEN}"]
            in_time = [row for row in own if rows[0] <= row <= rows[-1]]
            delays.append(str(np.searchsorted(rows, in_time[0])) if in_time else "none")
            others += len(opened) - len(own)
        yield {"what": f"device {fault}, records until it opened", "found": ", ".join(delays)}
        yield {"what": f"device {fault}, incidents of others", "found": str(others)}


def usual_devices() -> dict[str, object]:
    """Return how many incidents and events of devices there are without a fault."""
    incidents = events = 0
    for seed in range(SEEDS):
        x, keys, _ = devices(seed, "none", N_DEVICES)
        block = scorer_of_devices().process(x, keys)
        incidents += len(opened_of(block))
        events += len(block.entity_events)
    found = f"{incidents / SEEDS:.1f} incidents, {events / SEEDS:.1f} unusual devices"
    return {"what": f"usual devices, in {N_DEVICES:,} records", "found": found}
