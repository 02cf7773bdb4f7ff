"""Alarms and likelihood with a history, on streams without faults and with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner import OSLRAU, StreamScorer

from . import families
from .datasets import Array
from .learners import LEARNERS
from .timed import FIRST_FAULT, LENGTH, Base, is_known, with_faults

HISTORY = ("10",)
RATES = (0.01, 0.001)
COLUMNS = [f"records {rate}" for rate in RATES]
GOAL = 1.5
"""Most alarms, as a multiple of the nominal ones."""

FIELDS = 8
"""Fields of streams without memory."""

MEMORYLESS: Mapping[str, families.Family] = {
    "clusters": families.clusters, "correlations": families.factors,
    "heavy tails": families.heavy_tails, "discrete": families.discrete, "rings": families.rings,
    "skewed": families.skewed, "counts": families.counts, "shares": families.shares,
    "bends": families.bends, "parities": families.parities,
}  # fmt: skip
"""Streams whose records do not depend on each other."""


def usual(name: str, base: Base, n: int, seeds: int) -> Iterator[dict[str, object]]:
    """Yield the alarms on sequences without faults, with and without a history."""
    for (kind, learner), history in product(LEARNERS.items(), (None, HISTORY)):
        found: dict[str, list[list[float]]] = {}
        for seed in range(seeds):
            x = base(np.random.default_rng([9, len(name), seed]), n)
            own = StreamScorer(learner(), history=history).process(x)
            for part, some in parts(name, np.random.default_rng([9, len(name), seed]), n):
                nats = float(own.log_likelihood[some].mean())
                found.setdefault(part, []).append([*rates(own.p_value[some]), nats])
        for part, figures in found.items():
            means = np.mean(figures, axis=0).tolist()
            yield {
                "family": part, "learner": kind, "history": "no" if history is None else "yes",
                **dict(zip([*COLUMNS, "log-likelihood"], means, strict=True)),
            }  # fmt: skip


def parts(name: str, rng: np.random.Generator, n: int) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the late records (n,) of a sequence, and those of regimes that it has had before."""
    late = np.arange(n) >= FIRST_FAULT
    yield name, late
    if name == "switching":
        yield f"{name}, known regimes", late & is_known(rng, n)


def found_faults(name: str, base: Base, n: int, seeds: int) -> Iterator[dict[str, object]]:
    """Yield how many faults that last have an alarm, without and with a history."""
    for (kind, learner), history, rate in product(LEARNERS.items(), (None, HISTORY), RATES):
        found = []
        for seed in range(seeds):
            sequence = with_faults(base, np.random.default_rng([seed, len(name)]), n)
            block = StreamScorer(learner(), alarm_rate=rate, history=history).process(sequence.x)
            begun = sequence.lasting & ~np.r_[False, sequence.lasting[:-1]]
            found += [block.is_anomaly[start : start + LENGTH] for start in np.flatnonzero(begun)]
        alarms = np.array(found)
        hit = alarms.any(axis=1)
        yield {
            "family": name, "learner": kind, "history": "no" if history is None else "yes",
            "rate": str(rate), "faults": len(alarms), "found": int(hit.sum()),
            "records before": float(np.median(alarms[hit].argmax(axis=1))) if hit.any() else "",
            "alarms each": float(alarms[hit].sum(axis=1).mean()) if hit.any() else "",
        }  # fmt: skip


def goals() -> dict[str, object]:
    """Return the largest rates that are aimed at, as a row of the same table."""
    most = dict(zip(COLUMNS, [GOAL * rate for rate in RATES], strict=True))
    return {"family": "goal, at most", "learner": "", "history": "", **most, "log-likelihood": ""}


def rates(p_value: Array) -> list[float]:
    """Return the shares of p-values at most the nominal rates."""
    return [float((p_value <= rate).mean()) for rate in RATES]


def without_memory(n: int, seeds: int) -> Iterator[dict[str, object]]:
    """Yield what a history costs where records do not depend on each other."""
    for name, family in MEMORYLESS.items():
        found = []
        for seed in range(seeds):
            x = family(np.random.default_rng([19, len(name), seed]), n, FIELDS)
            plain, given = (
                StreamScorer(OSLRAU(), history=history).process(x) for history in (None, HISTORY)
            )
            late = slice(FIRST_FAULT, None)
            nats = given.log_likelihood[late].mean() - plain.log_likelihood[late].mean()
            found.append([float(nats), *rates(plain.p_value[late]), *rates(given.p_value[late])])
        nats, at_one, at_tenth, one_given, tenth_given = np.mean(found, axis=0).tolist()
        yield {
            "family": name, "nats gained": nats, "records 0.01": at_one, "records 0.001": at_tenth,
            "history 0.01": one_given, "history 0.001": tenth_given,
        }  # fmt: skip
