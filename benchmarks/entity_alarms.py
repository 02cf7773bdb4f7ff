"""Alarms of each entity: frequent and rare, noisy and quiet ones, old and new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner import OSLRAU, StreamScorer

from .keyed import (
    ALARMS_DEVELOPMENT,
    ALARMS_HELD_OUT,
    ODD_ENTITIES,
    UNUSUAL,
    Family,
    KeyedStream,
)
from .report import markdown, prose, write_report

RATE = 0.01

WARM_UP = 4096
"""First records of a stream, which do not count."""

FREQUENT = 1000
"""Records of an entity from which on its rate is held against the nominal one."""

FACTOR = 2.0
"""Factor within which that rate should be."""

YOUNG = 20
"""First records of an entity, which should not raise a storm of alarms."""

LEAST_WITHIN, MOST_YOUNG = 0.9, 3.0
"""Goals: the share of entities within the factor, and the rate of young ones over nominal."""

TEXT = """\
Alarms at a nominal rate of 0.01 on streams without anomalies, after the first 4,096 records. Of
1,000 entities, 40 have nine records in ten; nearly all others are new when they come. Rates are
realised over nominal: of all records; of the entities with 1,000 records, the tenth and ninetieth
percentile and the largest of their own rates, and the share of them within a factor of 2 of
nominal; of the first 20 records of each entity, all together and the record number with the
highest rate among 1, 2-5, 6-10 and 11-20. *By chance* is the share within a factor of 2 that
independent alarms at the nominal rate would give entities of these sizes."""

TOLD = """\
Of 8 entities, a field has a level 8 of the others' deviations off, or 8 times the scale. *Told* is
how many of them an event says to be unusual within 60,000 records, at an alarm rate of 0.001, and
the median record of these events. Of the other entities, any is told by chance."""

NUMBERS = {"1": (0, 1), "2-5": (1, 5), "6-10": (5, 10), "11-20": (10, 20)}


def run(out: Path, quick: bool) -> None:
    """Realised alarm rates of entities, each on its own, against the nominal rate."""
    n = 20_000 if quick else 150_000
    tables, figures = [], []
    for title, families in (
        ("Held-out streams", ALARMS_HELD_OUT),
        ("Development streams", ALARMS_DEVELOPMENT),
    ):
        found = list(measured(families, n, len(tables)))
        figures += found
        tables += [f"## {title}", markdown([shown(figure) for figure in found])]
        click.echo(tables[-1], err=True)
    told = list(unusual(UNUSUAL, 10_000 if quick else 60_000))
    blocks = ["Alarms of entities", prose(TEXT), *tables, markdown([kept(figures)])]
    blocks += ["## Unusual entities", prose(TOLD)]
    write_report(out, "entity-alarms", blocks, told, [*figures, *told])


def measured(families: Mapping[str, Family], n: int, seed: int) -> Iterator[dict[str, object]]:
    """Yield the figures of a stream of each family."""
    for number, (name, family) in enumerate(families.items()):
        stream = family(np.random.default_rng([7, seed, number]), n)
        scorer = StreamScorer(OSLRAU(), max_entities=100_000)
        p_value = scorer.process(stream.x, stream.names).p_value
        yield {"stream": name, **rates(stream, p_value <= RATE)}


def rates(stream: KeyedStream, alarm: NDArray[np.bool_]) -> dict[str, object]:
    """Return the figures of one stream, whose records raised an ``alarm`` (n,) or not."""
    late = np.arange(len(alarm)) >= WARM_UP
    counts = np.bincount(stream.key[late])
    own = np.bincount(stream.key[late], alarm[late])[counts >= FREQUENT]
    counts = counts[counts >= FREQUENT]
    own = own / counts / RATE
    young = {
        name: float(alarm[late & (stream.number >= first) & (stream.number < last)].mean()) / RATE
        for name, (first, last) in NUMBERS.items()
    }
    worst = max(young, key=young.__getitem__)
    return {
        "all": float(alarm[late].mean()) / RATE,
        "entities": len(counts),
        "10 %": float(np.quantile(own, 0.1)),
        "90 %": float(np.quantile(own, 0.9)),
        "largest": float(own.max()),
        "within": float(np.mean((own >= 1 / FACTOR) & (own <= FACTOR))),
        "by chance": by_chance(counts),
        "young": float(alarm[late & (stream.number < YOUNG)].mean()) / RATE,
        "worst number": worst,
        "its rate": young[worst],
    }


def unusual(families: Mapping[str, Family], n: int) -> Iterator[dict[str, object]]:
    """Yield how many entities are told to be unusual on a stream of each family."""
    for number, (name, family) in enumerate(families.items()):
        stream = family(np.random.default_rng([8, number]), n)
        scorer = StreamScorer(OSLRAU(), max_entities=100_000, entity_events=["unusual"])
        told: dict[str, int] = {}
        for event in scorer.process(stream.x, stream.names).entity_events:
            told.setdefault(event.entity, event.row)
        odd = {f"entity-{key}" for key in range(ODD_ENTITIES)}
        late = [row for entity, row in told.items() if entity in odd]
        yield {
            "stream": name,
            "odd entities": len(odd),
            "told": len(odd & told.keys()),
            "median record": f"{np.median(late):,.0f}" if late else "-",
            "other entities": len(set(stream.names)) - len(odd),
            "told of these": len(told.keys() - odd),
        }


def by_chance(counts: NDArray[np.int64]) -> float:
    """Return the share within the factor of entities whose alarms are independent."""
    drawn = np.random.default_rng(0).binomial(counts, RATE, (1000, len(counts))) / counts / RATE
    return float(np.mean((drawn >= 1 / FACTOR) & (drawn <= FACTOR)))


def shown(figure: Mapping[str, object]) -> dict[str, object]:
    """Return a row of a table, with the goals in its header."""
    goals = {"within": f"within 2x (goal: {LEAST_WITHIN})", "young": f"young (goal: {MOST_YOUNG})"}
    return {
        goals.get(name, name): f"{value:.2f}" if isinstance(value, float) else value
        for name, value in figure.items()
    }


def kept(figures: list[dict[str, object]]) -> dict[str, object]:
    """Return on how many of the streams each goal was kept."""
    within = sum(float(str(figure["within"])) >= LEAST_WITHIN for figure in figures)
    young = sum(float(str(figure["young"])) <= MOST_YOUNG for figure in figures)
    return {
        "streams": len(figures),
        f"nine in ten within 2x of nominal, from {FREQUENT:,} records on": within,
        f"first {YOUNG} records within 3x of nominal": young,
    }
