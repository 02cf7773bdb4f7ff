"""Processes of systems to look at once, in the end, and never to choose on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Array

from .draws import (
    DAY,
    System,
    age,
    events,
    hour_wave,
    memory,
    noisy,
    runs,
    settle,
    sojourns,
    wander,
)

LIFT_PLACES = 8

STATUS = np.array([200.0, 304.0, 404.0, 500.0])
STATUS_UP_TO = np.cumsum([[0.93, 0.0, 0.055, 0.015], [0.6, 0.39, 0.005, 0.005]], axis=1)[:, :-1]
"""Sums of the shares of all but the last status, of what is not in the cache and of what is."""

ROUTES = 6
"""The first three are cached."""

HEADERS = 350.0
"""Bytes of an answer without a body."""

WARM_UP = 2_000
"""Records before the first one in which flows may have begun."""

LONGEST_FLOW = 2_000.0
"""Records."""

CHEAP_FROM, CHEAP_TO = 22 * 60, 6 * 60
"""Minutes of the day between which the night's tariff holds."""

CELL_HOURS = 10 / 3_600
"""Of one record of a cell."""

FULL = 0.97
"""Charge at which a cell is no longer charged, in parts of 1."""

MEMORY = 31.0
"""Gigabytes of a host."""

CORES = 4
JOBS = ((700, 130), (450, 60), (1_100, 200))
"""Records from one start of a job to the next, and that it lasts: backup, report, compaction."""


def lift(rng: np.random.Generator, n: int) -> Array:
    """Count those who get into a lift at each stop; traffic is quiet, comes or goes."""
    traffic = sojourns(rng, n, np.array([rng.uniform(400, 800), 150.0, 150.0]))
    at_ground = rng.random(n) < np.array([0.3, 0.45, 0.4])[traffic]
    ground, upper = np.array([[0.5, 4.0, 0.5], [0.15, 0.05, 0.8]]) * rng.uniform(0.7, 1.3, (2, 3))
    waiting = rng.poisson(np.where(at_ground, ground[traffic], upper[traffic])).tolist()
    leaving = np.where(at_ground & (traffic != 1), 1.0, rng.uniform(0.2, 0.6, n)).tolist()
    count, inside = np.zeros(n), 0
    for t in range(n):
        inside -= round(leaving[t] * inside)
        count[t] = min(waiting[t], LIFT_PLACES - inside)
        inside += int(count[t])
    return count[:, None]


def requests(rng: np.random.Generator, n: int) -> Array:
    """Draw a web server's requests: route, status, from cache, milliseconds, bytes both ways."""
    route = rng.choice(ROUTES, size=n, p=rng.dirichlet(np.full(ROUTES, 3.0)))
    cached = rng.random(n) < np.where(route < 3, rng.uniform(0.5, 0.9, ROUTES)[route], 0.0)
    status = (rng.random((n, 1)) > STATUS_UP_TO[cached.astype(np.int64)]).sum(axis=1)
    wait = np.where(cached, 2.0, rng.uniform(15, 200, ROUTES)[route]) * (1 + 4 * (status == 3))
    wait = np.round(noisy(rng, wait, 0.35) * (1 + 0.1 * rng.pareto(2.0, n)), 1)
    page = np.exp(rng.uniform(np.log(800), np.log(60_000), ROUTES))[route]
    body = np.where(status == 0, page * (1 + rng.pareto(2.5, n)), np.where(status == 1, 0.0, 900.0))
    received = noisy(rng, rng.uniform(300, 1_500, ROUTES)[route], 0.15)
    sizes = np.round(np.column_stack([HEADERS + body, received]))
    return np.column_stack([1 + route, STATUS[status], cached, wait, sizes])


def link(rng: np.random.Generator, n: int) -> Array:
    """Draw a network link's counters: kB and packets in, kB out, flows, dropped packets."""
    flows, load = transfers(rng, n, rng.uniform(0.15, 0.4))
    capacity = rng.uniform(4, 6) * load.mean()
    offered = noisy(rng, load + 30.0, 0.08)
    carried = np.minimum(offered, capacity)
    packets = carried / rng.uniform(0.7, 1.1) * wander(rng, n, 0.9, 0.05)
    dropped = rng.poisson(0.02 * (offered - carried))
    back = noisy(rng, 0.04 * carried + rng.uniform(5, 15) * np.sqrt(flows), 0.12)
    counters = np.column_stack([carried, packets, back])
    return np.column_stack([np.round(counters), flows, dropped])


def transfers(rng: np.random.Generator, n: int, rate: float) -> tuple[Array, Array]:
    """Count the transfers (n,) at a time, and their kB (n,): most are short, some very long."""
    starts = np.flatnonzero(rng.random(n + WARM_UP) < rate) - WARM_UP
    lasts = 1 + np.minimum(4 * rng.pareto(1.5, len(starts)), LONGEST_FLOW).astype(np.int64)
    size = rng.lognormal(np.log(80), 1.1, len(starts))
    changes = np.zeros((2, n + 1))
    for at, sign in ((starts, 1.0), (starts + lasts, -1.0)):
        place = np.clip(at, 0, n)
        np.add.at(changes[0], place, sign)
        np.add.at(changes[1], place, sign * size)
    flows, load = np.cumsum(changes[:, :n], axis=1)
    return np.round(flows), np.maximum(load, 0.0)


def meter(rng: np.random.Generator, n: int) -> Array:
    """Draw a home's meter by the minute: watts in all, of three appliances, volts, tariff."""
    minute = np.arange(n) % DAY
    cheap = (minute >= CHEAP_FROM) | (minute < CHEAP_TO)
    parts = np.round(noisy(rng, appliances(rng, cheap), 0.01))
    lights = 150 * settle(np.clip(hour_wave(n, DAY, 0.85), 0, 1), 0.98)
    base = lights + rng.uniform(80, 200) * wander(rng, n, 0.99, 0.25)
    total = np.round(parts.sum(axis=1) + noisy(rng, base, 0.05))
    volts = 231 + memory(rng, n, 0.995) - 1e-3 * total + 0.2 * rng.normal(size=n)
    return np.column_stack([total, parts, np.round(volts, 1), cheap])


def appliances(rng: np.random.Generator, cheap: NDArray[np.bool_]) -> Array:
    """Draw the watts (n, 3) of a fridge, a boiler that runs mostly at night, and a cooker."""
    n = len(cheap)
    fridge = rng.uniform(70, 120) * on_and_off(rng, n, rng.uniform(12, 20), rng.uniform(25, 40))
    boiler = 2_000.0 * events(rng, np.where(cheap, 0.008, 0.001), (15, 40))
    meals = np.clip(hour_wave(n, DAY // 2, rng.uniform(0.2, 0.3)) - 0.5, 0, 1)
    cooker = rng.uniform(1_000, 2_500) * events(rng, 0.02 * meals, (5, 30))
    return np.column_stack([fridge, boiler, cooker])


def on_and_off(rng: np.random.Generator, n: int, on: float, off: float) -> Array:
    """Draw 1 and 0 (n,) by turns, each for about so many records."""
    turns = 1 + n // int(on)
    lasts = noisy(rng, np.tile([on, off], turns), 0.1).astype(np.int64)
    return np.repeat(np.tile([1.0, 0.0], turns), lasts)[:n]


def cell(rng: np.random.Generator, n: int) -> Array:
    """Draw a cell that is charged and discharged by turns, and ages: per cent and six more."""
    capacity = rng.uniform(2.5, 3.5) * (1 - rng.uniform(0.5e-5, 1.2e-5) * age(n))
    ohms = rng.uniform(0.04, 0.07) * (1 + rng.uniform(1e-5, 2.5e-5) * age(n))
    load = rng.uniform(1, 2) * wander(rng, n, 0.95, 0.3)
    charge, amperes = cycled(rng, capacity.astype(np.float64), load)
    volts = 3.3 + 0.8 * charge + 0.08 * np.log(charge + 0.01) + ohms * amperes
    degrees = 24 + 0.5 * memory(rng, n, 0.999) + settle(60 * ohms * amperes**2, 0.97)
    ageing = noisy(rng, np.column_stack([capacity, 1_000 * ohms]), 0.05)
    sensed = np.column_stack([volts + 0.003 * rng.normal(size=n), amperes, ageing[:, 0]])
    warm = np.round(np.column_stack([ageing[:, 1], degrees]), 1)
    return np.column_stack([np.round(100 * charge), np.round(sensed, 2), warm, amperes > 0])


def cycled(rng: np.random.Generator, capacity: Array, draw: Array) -> tuple[Array, Array]:
    """Charge a cell and discharge it by turns, give its charge (n,) in parts of 1 and current."""
    level, fill, low, charging = rng.uniform(0.4, 0.9), rng.uniform(1.2, 2.0), 0.2, False
    charge, amperes = np.empty((2, len(draw)))
    for t, (whole, load) in enumerate(zip(capacity.tolist(), draw.tolist(), strict=True)):
        if charging and level > FULL:
            charging, low = False, rng.uniform(0.08, 0.35)
        elif level < low:
            charging = True
        amperes[t] = min(fill, 10 * (1.02 - level)) if charging else -load
        level = max(level + amperes[t] * CELL_HOURS / whole, 0.0)
        charge[t] = level
    return charge, amperes


def host(rng: np.random.Generator, n: int) -> Array:
    """Draw a host with three jobs that come again and again: 16 readings, first CPU, then disk."""
    jobs = np.column_stack([scheduled(rng, n, *job) for job in JOBS])
    usual = wander(rng, n, 0.97, 0.3)
    cores = busy_cores(rng, 12 * usual, jobs @ rng.uniform(15, 35, 3))
    files = disk(rng, usual, jobs)
    loads = np.column_stack([cores, files, network(rng, usual, jobs)])
    busy, moved = cores.sum(axis=1), files[:, :2].sum(axis=1)
    counts = [rng.poisson(busy / 100), rng.poisson(0.01 + 0.05 * jobs[:, 0])]
    switches = np.round(noisy(rng, 2_000 * usual + 60 * moved, 0.1))
    degrees = np.round(38 + settle(0.08 * busy, 0.98) + 0.3 * rng.normal(size=n))
    space = storage(rng, moved, jobs)
    return np.column_stack([np.round(loads, 1), np.round(space, 1), *counts, switches, degrees])


def disk(rng: np.random.Generator, usual: Array, jobs: Array) -> Array:
    """Draw megabytes per second read and written, per cent busy, per cent waiting (n, 4)."""
    reads = noisy(rng, 2 * usual + jobs @ np.array([60.0, 25.0, 40.0]), 0.15)
    writes = noisy(rng, 3 * usual + jobs @ np.array([5.0, 2.0, 45.0]), 0.15)
    busy = -100 * np.expm1(-(reads + 1.5 * writes) / 90)
    waits = np.clip(0.15 * busy + 2 * rng.normal(size=len(busy)), 0, 100)
    return np.column_stack([reads, writes, busy, waits])


def network(rng: np.random.Generator, usual: Array, jobs: Array) -> Array:
    """Draw megabytes per second sent and received (n, 2); the backup sends much."""
    sent = noisy(rng, 4 * usual + jobs @ np.array([50.0, 3.0, 0.0]), 0.12)
    return np.column_stack([sent, noisy(rng, 1.5 * usual + 0.03 * sent, 0.12)])


def storage(rng: np.random.Generator, moved: Array, jobs: Array) -> Array:
    """Draw gigabytes of cached pages, which follow the files slowly, and free ones (n, 2)."""
    pages = settle(8 + 0.1 * moved, 0.99)
    programs = 6 + 0.4 * memory(rng, len(moved), 0.999) + jobs @ np.array([0.5, 2.0, 1.0])
    return np.column_stack([pages, MEMORY - pages - programs])


def scheduled(rng: np.random.Generator, n: int, every: int, lasts: int) -> Array:
    """Give 1 (n,) while a job runs, else 0: it comes every so many records, give or take."""
    count = 2 + 2 * n // every
    jitter = 0.03 * rng.normal(size=count)
    starts = every * rng.uniform(0.8, 1.2) * (np.arange(count) + rng.random() + jitter)
    times = noisy(rng, np.full(count, lasts * rng.uniform(0.7, 1.3)), 0.15)
    return runs(n, np.maximum(starts, 0).astype(np.int64), times.astype(np.int64)).astype(
        np.float64
    )


def busy_cores(rng: np.random.Generator, usual: Array, work: Array) -> Array:
    """Spread usual load and jobs' work over cores (n, 4), in per cent of each, unevenly."""
    spread = rng.dirichlet(np.full(CORES, 5.0)) * CORES
    share = usual[:, None] * spread + work[:, None] * spread[::-1]
    return np.asarray(-100 * np.expm1(-noisy(rng, share, 0.15) / 100), np.float64)


FINAL: Mapping[str, System] = {
    "lift": lift,
    "requests": requests,
    "link": link,
    "meter": meter,
    "cell": cell,
    "host": host,
}
"""Systems to report on once."""
