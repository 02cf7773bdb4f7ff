"""Processes of systems that choices may be made on."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapreplace

import numpy as np

from benchmarks.datasets import Array

from .draws import (
    DAY,
    Codes,
    System,
    age,
    dead_band,
    hour_wave,
    memory,
    noisy,
    settle,
    sojourns,
    wander,
)

MOST_RETRIES = 5
BREAKER_OPEN = 20
"""Calls that a breaker turns away at once after one that was given up."""

MERCHANTS = np.array([5411.0, 5541.0, 5812.0, 5942.0, 4111.0])
"""Category codes: groceries, petrol, restaurants, books, transport."""

DEAD_BAND = 0.3
"""Degrees that a room is colder than its set point before the heater starts, or warmer."""

DUTY_WINDOW = 60
"""Records that a duty cycle is computed of."""

ROOM_NOISE = 0.05
"""Degrees."""

STANDBY = 4.0
"""Watts of a thermostat whose heater is off."""

OLD_LIMIT = 600.0
"""Megabytes of old objects beyond those in use at which the whole heap is collected."""

RATED_SPEED = 2_900.0
"""Rotations per minute of a pump at full speed."""

PARTS = ((1.0, 0.98), (1.2, 0.985), (3.0, 0.99))
"""Degrees per kilowatt of two bearings and a winding, and what they keep of the last record's."""


def retries(rng: np.random.Generator, n: int) -> Array:
    """Count the retries of calls to a service that is poor at times, with a circuit breaker."""
    poor = sojourns(rng, n, np.array([rng.uniform(500, 900), rng.uniform(80, 160)]))
    failing = np.array([rng.uniform(0.03, 0.09), rng.uniform(0.3, 0.5)])[poor]
    fails = rng.random((n, MOST_RETRIES)) < failing[:, None] * 0.9 ** np.arange(MOST_RETRIES)
    count = np.asarray(np.cumprod(fails, axis=1).sum(axis=1), np.float64)
    for t in np.flatnonzero(count == MOST_RETRIES):
        if count[t] == MOST_RETRIES:
            count[t + 1 : t + 1 + BREAKER_OPEN] = 0.0
    return count[:, None]


def payments(rng: np.random.Generator, n: int) -> Array:
    """Draw card payments: amount, merchant's code, card present, attempts, milliseconds, fee."""
    kinds = len(MERCHANTS)
    kind = rng.choice(kinds, size=n, p=rng.dirichlet(np.full(kinds, 4.0)))
    amount = amounts(rng, kind)
    present = rng.random(n) < rng.uniform(0.2, 0.95, kinds)[kind]
    attempts = 1.0 + rng.poisson(np.where(present, 0.02, 0.12))
    wait = rng.uniform(60, 120) * attempts * np.where(present, 1.0, 2.5)
    wait *= np.exp(0.3 * rng.normal(size=n)) * (1 + 0.1 * rng.pareto(2.5, n))
    fee = np.where(present, 0.05, 0.15) + rng.uniform(0.002, 0.02, kinds)[kind] * amount
    readings = np.column_stack([amount, MERCHANTS[kind], present, attempts, np.round(wait)])
    return np.column_stack([readings, np.round(fee, 2)])


def amounts(rng: np.random.Generator, kind: Codes) -> Array:
    """Draw amounts (n,) in euros, by the kind of merchant; some of them are round."""
    typical = np.exp(rng.uniform(np.log(8), np.log(90), len(MERCHANTS)))[kind]
    amount = np.maximum(noisy(rng, typical, rng.uniform(0.7, 1.1)), 0.5)
    is_round = rng.random(len(kind)) < 0.25
    return np.where(is_round, 5 * np.ceil(amount / 5), np.round(amount, 2))


def queue(rng: np.random.Generator, n: int) -> Array:
    """Draw a desk's customers: gap, service and wait in seconds, queue length, busy servers."""
    servers, shape = int(rng.integers(2, 5)), rng.uniform(0.7, 1.1)
    service = rng.lognormal(np.log(60) - shape**2 / 2, shape, n)
    rate = servers / 60 * rng.uniform(0.6, 0.75) * wander(rng, n, 0.998, 0.12)
    gap = rng.exponential(1 / rate)
    arrival = np.cumsum(gap)
    start = served(arrival, service, servers)
    length = np.maximum(np.arange(n) - np.searchsorted(start, arrival, "right"), 0)
    inside = np.arange(n) - np.searchsorted(np.sort(start + service), arrival, "right")
    times = np.round(np.column_stack([gap, service, start - arrival]), 1)
    return np.column_stack([times, length, inside - length])


def served(arrival: Array, service: Array, servers: int) -> Array:
    """Give the time (n,) at which each customer's service starts: first come, first served."""
    free, start = [0.0] * servers, arrival.copy()
    for i, (came, takes) in enumerate(zip(arrival.tolist(), service.tolist(), strict=True)):
        start[i] = max(came, free[0])
        heapreplace(free, start[i] + takes)
    return start


def thermostat(rng: np.random.Generator, n: int) -> Array:
    """Draw a heated room by the minute: degrees outside and inside, set point, heater, duty."""
    weather = rng.uniform(0, 8) + 3 * memory(rng, n, 0.999)
    outside = weather + rng.uniform(2, 5) * hour_wave(n, DAY, 0.6)
    night, warmer = rng.integers(16, 20), rng.integers(2, 5)
    goal = 1.0 * np.where(np.arange(n) % DAY < DAY // 4, night, night + warmer)
    inside, on = heated(outside, goal, rng.uniform(600, 1_200), rng.uniform(35, 50))
    watts = np.where(on, noisy(rng, np.full(n, rng.uniform(1_500, 3_000)), 0.01), STANDBY)
    duty = np.convolve(on, np.full(DUTY_WINDOW, 100 / DUTY_WINDOW))[:n]
    degrees = np.column_stack([dead_band(outside, 0.3), inside + ROOM_NOISE * rng.normal(size=n)])
    return np.column_stack([np.round(degrees, 1), goal, on, np.round(watts), np.round(duty)])


def heated(outside: Array, goal: Array, minutes: float, power: float) -> tuple[Array, Array]:
    """Give a room's temperature (n,) and whether its heater is on (n,), with hysteresis.

    The room follows the outside within some minutes; the heater makes it so much warmer.
    """
    inside, on = np.empty(len(outside)), np.zeros(len(outside))
    warmth, heating = goal[0], False
    for t, (cold, wanted) in enumerate(zip(outside.tolist(), goal.tolist(), strict=True)):
        heating = warmth < wanted + (DEAD_BAND if heating else -DEAD_BAND)
        warmth += (cold - warmth + power * heating) / minutes
        inside[t], on[t] = warmth, heating
    return inside, on


def heap(rng: np.random.Generator, n: int) -> Array:
    """Draw a collected heap by the second: three sizes, allocation, pause, collections, threads."""
    rate = noisy(rng, rng.uniform(8, 25) * wander(rng, n, 0.98, 0.25), 0.1)
    young, old, minor, major = collected(rng, rate, rng.uniform(150, 300))
    old += rng.uniform(200, 500) + rng.uniform(0.01, 0.03) * age(n)
    pause = minor * noisy(rng, np.full(n, 8.0), 0.3) + major * noisy(rng, 0.25 * old, 0.15)
    threads = np.round(rng.uniform(30, 60) + 4 * memory(rng, n, 0.99))
    sizes = np.round(np.column_stack([young, old, young + old, rate, pause]), 1)
    return np.column_stack([sizes, minor + major, threads])


def collected(rng: np.random.Generator, rate: Array, limit: float) -> tuple[Array, ...]:
    """Fill a heap of young and old objects, and tell which seconds have a collection of each."""
    kept = limit * rng.uniform(0.02, 0.08, len(rate))
    young, old, minor, major = np.zeros((4, len(rate)))
    fresh, aged = 0.0, rng.uniform(0, OLD_LIMIT)
    for t, more in enumerate(rate.tolist()):
        fresh += more
        if fresh > limit:
            fresh, aged, minor[t] = 0.0, aged + kept[t], 1.0
        if aged > OLD_LIMIT:
            aged, major[t] = 0.0, 1.0
        young[t], old[t] = fresh, aged
    return young, old, minor, major


def pump(rng: np.random.Generator, n: int) -> Array:
    """Draw a pump that rests, runs at part or at full speed: 14 readings, the mode first."""
    mode = sojourns(rng, n, rng.uniform(150, 500, 3))
    share = np.array([0.0, rng.uniform(0.5, 0.75), 1.0])[mode]
    speed = settle(share, 0.7) * (1 + 0.005 * memory(rng, n, 0.9))
    valve = np.clip(rng.uniform(50, 70) + 8 * memory(rng, n, 0.995), 5, 100)
    kilowatts = 0.4 + 22 * speed**3 * (0.6 + 0.4 * valve / 60)
    wet = pumped(rng, speed, valve, kilowatts)
    readings = np.column_stack([wet, valve, shaking(rng, speed), warming(rng, kilowatts)])
    return np.column_stack([mode, np.round(RATED_SPEED * speed), np.round(readings, 2)])


def pumped(rng: np.random.Generator, speed: Array, valve: Array, kilowatts: Array) -> Array:
    """Draw a pump's flow in cubic metres per hour, bar, kilowatts and amperes (n, 4)."""
    flow = 2 * speed * valve
    bar = 1.2 + 6 * speed**2 - 1e-4 * flow**2
    exact = np.column_stack([flow, bar, kilowatts, 1.8 * kilowatts])
    noise = rng.normal(size=exact.shape) * np.array([0.8, 0.04, 0.15, 0.3])
    return np.maximum(exact + noise, 0.0)


def shaking(rng: np.random.Generator, speed: Array) -> Array:
    """Draw a pump's vibration (n, 3) in millimetres per second, which grows with its speed."""
    common = 0.2 * memory(rng, len(speed), 0.8)[:, None]
    size = 0.1 + rng.uniform(1, 3, 3) * speed[:, None] ** 2
    return noisy(rng, size * np.exp(common), 0.12)


def warming(rng: np.random.Generator, kilowatts: Array) -> Array:
    """Draw a pump's temperatures (n, 4): room, two bearings and winding follow its power."""
    room = 18 + 3 * memory(rng, len(kilowatts), 0.999)
    parts = [room + rise * settle(kilowatts, keep) for rise, keep in PARTS]
    return np.column_stack([room, *parts]) + 0.1 * rng.normal(size=(len(kilowatts), 4))


CHOICES: Mapping[str, System] = {
    "retries": retries,
    "payments": payments,
    "queue": queue,
    "thermostat": thermostat,
    "heap": heap,
    "pump": pump,
}
"""Systems that choices may be made on."""
