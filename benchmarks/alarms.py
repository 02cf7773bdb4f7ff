"""Alarms of single records: at a stream's start, of repeated and rare faults, in heavy tails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner import OSLRAU, Incident, IncidentParameters, StreamScorer

from .datasets import Array
from .demo_faults import PARTITIONS, partitions
from .detectors import RunningGaussian, prequential
from .families import DEVELOPMENT, HELD_OUT, Family, heavy_tails
from .report import markdown, prose, write_report

ALARM_RATE = 0.001
HIGH_ALARM_RATE = 0.01
"""Above the share of rare faults, so that all of them can be alarms."""

FIELDS = 8

FIRST = 2_000
"""Records at the beginning of a stream."""

WIDTHS = (3, 5, 8, 12, 16, 24, 30)

DEVIATIONS = 8.0
"""Height of a spike."""

N_SPIKES = 28
APART = 2_000
RARE = 0.0033
"""Share of records with a spike, of ``N_RARE`` records."""

N_RARE = 30_000

HEAVY_STREAMS = 5
N_HEAVY = 200_000

TEXT = f"""\
An alarm is a record with `is_anomaly`, at the default alarm rate of {ALARM_RATE}. *Nominal* is the
number of alarms that this rate predicts, *ratio* alarms over nominal. The first table has the
alarms among the first {FIRST:,} records of 70 streams without faults, seven of each family, of
{WIDTHS[0]} to {WIDTHS[-1]} fields, and of seven demos of {PARTITIONS} partitions."""

SPIKES_TEXT = f"""\
## Repeated and rare faults

Streams of {FIELDS} fields. *Repeated*: a spike of {DEVIATIONS:.0f} standard deviations in the same
field, up or down, every {APART:,} records, {N_SPIKES} times. *Rare*: such spikes in any field, in
{RARE:.2%} of {N_RARE:,} records, at random after the first {FIRST:,}. A p-value is a share of
recent records, the faults among them, so at an alarm rate of {ALARM_RATE} most of these cannot be
alarms. *Caught* spikes are alarms, *other alarms* are those of records without a spike, over the
nominal number. *In incidents* are spikes among the records of one of the *incidents*. *Gaussian* is
a running Gaussian of all fields that learns every record; its threshold is the one that gives as
many alarms on the stream as the scorer does. That takes knowledge of the stream's end which nobody
has, and favours it. Parameters were chosen on other faults in streams of the families of
*development*, and that the mass further out remembers regimes on the one of regimes as well."""

HEAVY_TEXT = f"""\
## Heavy tails

Stationary streams of {N_HEAVY:,} records of {FIELDS} fields with Student's t, three degrees of
freedom, after the first {FIRST:,}."""

Row = dict[str, object]


def run(out: Path, quick: bool) -> None:
    """Alarms of the first records, of repeated and rare faults, and in heavy tails."""
    start = [*first_alarms(WIDTHS[:1] if quick else WIDTHS)]
    spikes = [*spiked(1 if quick else None)]
    heavy = [*in_heavy_tails(1 if quick else HEAVY_STREAMS, 20_000 if quick else N_HEAVY)]
    blocks = ["Alarms", prose(TEXT), markdown(start), SPIKES_TEXT, markdown(spikes), HEAVY_TEXT]
    figures = {"start": start, "spikes": spikes, "heavy tails": heavy}
    write_report(out, "alarms", blocks, heavy, figures)


def first_alarms(widths: Sequence[int]) -> Iterator[Row]:
    """Count the alarms among the first records of each family's streams, of all, and of demos."""
    families = {name: family for part in DEVELOPMENT for name, family in part.items()}
    total = 0
    for place, (name, family) in enumerate(families.items()):
        streams = (family(np.random.default_rng([21, place, d]), FIRST, d) for d in widths)
        alarms = sum(map(count_alarms, streams))
        total += alarms
        yield {"streams": name, **over_nominal(alarms, FIRST * len(widths))}
    yield {"streams": "all", **over_nominal(total, FIRST * len(widths) * len(families))}
    demos = [stream for seed in range(len(widths)) for stream in demo(seed)]
    alarms = sum(map(count_alarms, demos))
    yield {"streams": "demo", **over_nominal(alarms, sum(map(len, demos)))}


def demo(seed: int) -> list[Array]:
    """Return the first records of a demo's partitions; none of its anomalies is among them."""
    return [rows[:FIRST] for _, rows in partitions(FIRST * PARTITIONS, seed)]


def count_alarms(x: Array) -> int:
    return int(np.count_nonzero(alarms_of(x)))


def alarms_of(x: Array) -> NDArray[np.bool_]:
    return StreamScorer(OSLRAU(), alarm_rate=ALARM_RATE).process(x).is_anomaly


def over_nominal(alarms: int, records: int) -> Row:
    """Hold a count against what the alarm rate predicts."""
    nominal = ALARM_RATE * records
    return {"alarms": alarms, "nominal": f"{nominal:.0f}", "ratio": f"{alarms / nominal:.2f}"}


class Counts(NamedTuple):
    """What was counted in a stream with spikes; ``nominal`` is the expected number of alarms."""

    faults: int
    caught: int
    by_gaussian: int
    others: int
    nominal: float
    in_incidents: int
    incidents: int

    def row(self) -> Row:
        """Return the counts as a part of a table's row."""
        return {
            "faults": self.faults,
            "caught": self.caught,
            "Gaussian": self.by_gaussian,
            "other alarms": f"{self.others / self.nominal:.2f}",
            "in incidents": self.in_incidents,
            "incidents": self.incidents,
        }


def spiked(most: int | None = None) -> Iterator[Row]:
    """Count the caught spikes of each family's streams, at most so many families of each part."""
    development = {name: family for part in DEVELOPMENT for name, family in part.items()}
    parts = {"development": development, "held out": HELD_OUT}
    for number, (part, families) in enumerate(parts.items()):
        for kind, made, alarm_rate in KINDS:
            about = {"part": part, "spikes": kind, "alarm rate": alarm_rate}
            counts: dict[str, Counts] = {}
            for place, (name, family) in enumerate([*families.items()][:most]):
                stream = made(family, np.random.default_rng([22, number, place]))
                counts[name] = caught(*stream, alarm_rate)
                click.echo(f"{about}, {name}: {counts[name]}", err=True)
            counts["all"] = Counts(*map(sum, zip(*counts.values(), strict=True)))
            yield from ({**about, "streams": name, **own.row()} for name, own in counts.items())


def repeated(family: Family, rng: np.random.Generator) -> tuple[Array, NDArray[np.bool_]]:
    """Generate a stream (n, d) with spikes of the same field, and where they are (n,)."""
    x = family(rng, (N_SPIKES + 2) * APART, FIELDS)
    at = APART * np.arange(2, N_SPIKES + 2) - 1
    return with_spikes(x, at, np.full(N_SPIKES, rng.integers(FIELDS)), rng)


def rare(family: Family, rng: np.random.Generator) -> tuple[Array, NDArray[np.bool_]]:
    """Generate a stream (n, d) with spikes of any field at random, and where they are (n,)."""
    x = family(rng, N_RARE, FIELDS)
    k = round(RARE * (N_RARE - FIRST))
    at = FIRST + rng.choice(N_RARE - FIRST, size=k, replace=False)
    return with_spikes(x, at, rng.integers(FIELDS, size=k), rng)


def with_spikes(
    x: Array, at: NDArray[np.int64], field: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Array, NDArray[np.bool_]]:
    """Move a field each of some records, and return which records (n,) have a spike."""
    x[at, field] += DEVIATIONS * x.std(axis=0)[field] * rng.choice([-1.0, 1.0], len(at))
    is_spike = np.zeros(len(x), np.bool_)
    is_spike[at] = True
    return x, is_spike


KINDS = (
    ("repeated", repeated, ALARM_RATE),
    ("rare", rare, ALARM_RATE),
    ("rare", rare, HIGH_ALARM_RATE),
)


def caught(x: Array, is_spike: NDArray[np.bool_], alarm_rate: float) -> Counts:
    """Count the spikes that are alarms, those that a Gaussian catches, and those in incidents."""
    scorer = StreamScorer(OSLRAU(), alarm_rate=alarm_rate, incidents=IncidentParameters())
    block = scorer.process(x)
    is_alarm = block.is_anomaly
    score = np.nan_to_num(prequential(RunningGaussian(diagonal=False), x), nan=-np.inf)
    highest = np.argsort(-score, kind="stable")[: np.count_nonzero(is_alarm)]
    closed = [event.incident for event in block.incidents if event.state == "closed"]
    incidents = [*closed, *scorer.open_incidents]
    return Counts(
        faults=int(np.count_nonzero(is_spike)),
        caught=int(np.count_nonzero(is_alarm & is_spike)),
        by_gaussian=int(np.count_nonzero(is_spike[highest])),
        others=int(np.count_nonzero(is_alarm & ~is_spike)),
        nominal=alarm_rate * len(x),
        in_incidents=sum(int(np.count_nonzero(is_spike[within(each)])) for each in incidents),
        incidents=len(incidents),
    )


def within(incident: Incident) -> slice:
    """Return the records of an incident, from its start to its latest evidence."""
    return slice(incident.start.number, incident.latest.number + 1)


def in_heavy_tails(streams: int, n: int) -> Iterator[Row]:
    """Count the alarms of stationary streams with heavy tails."""
    for seed in range(streams):
        is_alarm = alarms_of(heavy_tails(np.random.default_rng([23, seed]), n, FIELDS))[FIRST:]
        alarms = int(np.count_nonzero(is_alarm))
        yield {"stream": seed + 1, **over_nominal(alarms, n - FIRST)}
