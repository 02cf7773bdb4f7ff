"""Twelve systems whose records a settings file is advised for, with what is right for each.

They were written before `faust-oslrau advise`. Six served while it was written; at the others one
looks afterwards (`benchmarks/README.md` says how often).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from .datasets import Array

FAULTS = 0.005
"""Share of the records that are faults, after the first tenth."""

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)

Row = dict[str, Any]


@dataclass(frozen=True)
class System:
    """Records of one system in log order.

    Attributes
    ----------
    rows, keys
        The records, and their keys if they have any.
    is_fault
        Which of them are faults (n,).
    entity
        What may name the entity; None among them if there need not be one.
    kinds
        The kind of each field that `auto` alone would take for another, or may leave out.
    time
        The field with the time, if there is one.
    plain
        Whether nothing of it needs another setting than the defaults.
    """

    rows: list[Row]
    is_fault: Array
    entity: frozenset[str | None] = frozenset([None])
    kinds: Mapping[str, str] = field(default_factory=dict)
    time: str | None = None
    keys: list[str] | None = None
    plain: bool = False


Generate = Callable[[np.random.Generator, int], System]


def _faults(rng: np.random.Generator, n: int) -> Array:
    return (rng.random(n) < FAULTS) & (np.arange(n) >= n // 10)


def _other(rng: np.random.Generator, of: Array, k: int) -> Array:
    """Return for each of the numbers below k another one."""
    return (of + rng.integers(1, k, len(of))) % k


def _at(i: int, seconds: float) -> str:
    return (MONDAY + timedelta(seconds=i * seconds)).isoformat()


def machines(rng: np.random.Generator, n: int) -> System:
    """Forty machines with levels and scales of their own; a fault has another one's readings."""
    k, of, fault = 40, rng.integers(40, size=n), _faults(rng, n)
    level, scale = 20 * rng.normal(size=(k, 3)), np.exp(0.5 * rng.normal(size=(k, 3)))
    seen = np.where(fault, _other(rng, of, k), of)
    x = level[seen] + scale[seen] * rng.normal(size=(n, 3))
    rows = [
        {"machine": f"m-{of[i]:02}", "temperature": x[i, 0], "pressure": x[i, 1],
         "vibration": {"rms": x[i, 2]}, "ts": _at(i, 2.0)} for i in range(n)
    ]  # fmt: skip
    return System(rows, fault, frozenset(["machine"]), {}, "ts")


def requests(rng: np.random.Generator, n: int) -> System:
    """Requests of eight services, which say what is slow; a fault is slow for its service only."""
    of, fault = rng.integers(8, size=n), _faults(rng, n)
    typical = np.exp(rng.uniform(1.0, 7.0, size=8))
    latency = typical[of] * np.exp(0.3 * rng.normal(size=n)) * np.where(fault, 6.0, 1.0)
    status = np.where(rng.random(n) < 0.03, rng.choice([404, 500, 503], n), 200)
    rows = [
        {"service": f"service-{of[i]}", "status": int(status[i]), "latency_ms": latency[i],
         "bytes": float(np.exp(rng.normal(8.0, 1.0))), "request_id": f"{rng.integers(2**62):016x}",
         "seq": 1000 + i} for i in range(n)
    ]  # fmt: skip
    kinds = {"status": "category", "request_id": "ignored", "seq": "ignored"}
    return System(rows, fault, frozenset(["service", None]), kinds)


def payments(rng: np.random.Generator, n: int) -> System:
    """Two hundred cards that pay as usual for each; a fault is another card's amount."""
    k, of, fault = 200, rng.integers(200, size=n), _faults(rng, n)
    usual = np.exp(rng.normal(3.0, 1.5, size=k))
    seen = np.where(fault, _other(rng, of, k), of)
    amount = usual[seen] * np.exp(0.4 * rng.normal(size=n))
    tip = amount * rng.uniform(0.05, 0.15, n)
    rows = [
        {"card": int(40_000 + 17 * of[i]), "amount": amount[i], "tip": tip[i],
         "currency": str(rng.choice(["EUR", "USD", "GBP"], p=[0.7, 0.2, 0.1])), "at": _at(i, 9.0)}
        for i in range(n)
    ]  # fmt: skip
    return System(rows, fault, frozenset(["card"]), {}, "at")


def sensors(rng: np.random.Generator, n: int) -> System:
    """Five correlated readings with a resolution, nothing else; a fault breaks a correlation."""
    fault, mixing = _faults(rng, n), np.eye(5) + 0.5 * rng.normal(size=(5, 5))
    x = rng.normal(size=(n, 5)) @ mixing
    x[fault, 0] = rng.permutation(x[:, 0])[: fault.sum()] * 2.0
    x = np.round(50 + 10 * x, 1)
    rows = [{f"s{v}": x[i, v] for v in range(5)} for i in range(n)]
    return System(rows, fault, plain=True)


def traffic(rng: np.random.Generator, n: int) -> System:
    """Twenty days of traffic by the hour of the day; a fault is noon's traffic at night."""
    seconds = 20 * 86_400 / n
    hour = np.arange(n) * seconds / 3600 % 24
    fault = _faults(rng, n) & (hour < 5)
    at = np.where(fault, 12.0, hour)
    load = np.exp(3.0 - 1.5 * np.cos(2 * np.pi * at / 24))
    rows = [
        {"requests": float(rng.poisson(20 * load[i])), "cpu": 5 + load[i] + rng.normal(),
         "time": int(MONDAY.timestamp() + i * seconds)} for i in range(n)
    ]  # fmt: skip
    return System(rows, fault, time="time", kinds={"time": "time"})


def tanks(rng: np.random.Generator, n: int) -> System:
    """Levels that move slowly; a fault is a jump within the usual range."""
    noise, x = rng.normal(size=(n, 3)), np.zeros((n, 3))
    for i in range(1, n):
        x[i] = 0.995 * x[i - 1] + 0.1 * noise[i]
    fault = _faults(rng, n)
    x[fault] = x[rng.integers(n, size=fault.sum())]
    rows = [{"a": x[i, 0], "b": x[i, 1], "c": x[i, 2]} for i in range(n)]
    return System(rows, fault)


def queues(rng: np.random.Generator, n: int) -> System:
    """Counts of three regions without any difference; a fault has far more errors."""
    fault = _faults(rng, n)
    errors = rng.poisson(0.7, n) + np.where(fault, 9, 0)
    depth = rng.negative_binomial(3, 0.1, n)
    rows = [
        {"region": str(rng.choice(["eu", "us", "ap"])), "errors": int(errors[i]),
         "depth": int(depth[i]), "retry": bool(rng.random() < 0.1)} for i in range(n)
    ]  # fmt: skip
    return System(rows, fault, kinds={"retry": "category"}, plain=True)


def labels(rng: np.random.Generator, n: int) -> System:
    """Independent numbers beside a colour that says nothing of them; a fault is far off."""
    fault, x = _faults(rng, n), rng.normal(size=(n, 4))
    x[fault] *= 4.0
    rows = [
        {"colour": str(rng.choice(["red", "green", "blue", "white"])),
         **{f"v{v}": x[i, v] for v in range(4)}} for i in range(n)
    ]  # fmt: skip
    return System(rows, fault, plain=True)


def meters(rng: np.random.Generator, n: int) -> System:
    """Sixty households by hour of the day for two weeks; a fault is another household's use."""
    k, fault = 60, _faults(rng, n)
    of = np.arange(n) % k
    seconds = 14 * 86_400 / n
    hour = np.arange(n) * seconds / 3600 % 24
    size = np.exp(rng.normal(0.0, 1.2, size=k))
    seen = np.where(fault, _other(rng, of, k), of)
    use = size[seen] * (1.0 + 0.6 * np.sin(2 * np.pi * (hour - 8) / 24))
    use = use * np.exp(0.15 * rng.normal(size=n))
    rows = [
        {"household": f"h{of[i]}", "kwh": use[i], "volt": 230 + 2 * rng.normal(),
         "read_at": _at(i, seconds)} for i in range(n)
    ]  # fmt: skip
    return System(rows, fault, frozenset(["household"]), time="read_at")


def logins(rng: np.random.Generator, n: int) -> System:
    """Users with hours and durations of their own; a fault is another user's duration."""
    k, of, fault = 150, rng.integers(150, size=n), _faults(rng, n)
    usual, spread = rng.uniform(2, 60, size=k), rng.uniform(0.5, 2.0, size=k)
    seen = np.where(fault, _other(rng, of, k), of)
    minutes = np.abs(usual[seen] + spread[seen] * rng.normal(size=n))
    rows = [
        {"user": {"id": int(7_000_000 + 31 * of[i])}, "minutes": minutes[i],
         "clicks": int(rng.poisson(3 * minutes[i])), "ok": bool(rng.random() < 0.97),
         "session": f"{rng.integers(2**62):x}"} for i in range(n)
    ]  # fmt: skip
    return System(rows, fault, frozenset(["user.id"]), {"ok": "category", "session": "ignored"})


def jobs(rng: np.random.Generator, n: int) -> System:
    """Batch jobs whose duration follows their rows; a fault is slow for its rows."""
    k, of, fault = 15, rng.integers(15, size=n), _faults(rng, n)
    volume = np.exp(rng.normal(10.0, 1.0, size=n))
    cost = np.exp(rng.normal(-5.0, 1.0, size=k))
    duration = volume * cost[of] * np.exp(0.1 * rng.normal(size=n)) * np.where(fault, 4.0, 1.0)
    rows = [
        {"job": f"job_{of[i]}", "rows": volume[i], "seconds": duration[i],
         "state": "failed" if rng.random() < 0.02 else "done", "finished_ms": 1.7674e12 + 5e3 * i}
        for i in range(n)
    ]  # fmt: skip
    return System(rows, fault, frozenset(["job"]), time="finished_ms")


def keyed(rng: np.random.Generator, n: int) -> System:
    """Devices named by the key alone; a fault has another device's readings."""
    k, of, fault = 50, rng.integers(50, size=n), _faults(rng, n)
    level, scale = 5 * rng.normal(size=(k, 3)), np.exp(rng.normal(size=(k, 3)))
    seen = np.where(fault, _other(rng, of, k), of)
    x = level[seen] + scale[seen] * rng.normal(size=(n, 3))
    rows = [{"x": x[i, 0], "y": x[i, 1], "z": x[i, 2]} for i in range(n)]
    return System(rows, fault, frozenset(["key"]), keys=[f"device-{of[i]}" for i in range(n)])


DEVELOPMENT: Mapping[str, Generate] = {
    "machines": machines, "requests": requests, "sensors": sensors, "traffic": traffic,
    "tanks": tanks, "queues": queues,
}  # fmt: skip
HELD_OUT: Mapping[str, Generate] = {
    "payments": payments, "labels": labels, "meters": meters, "logins": logins, "jobs": jobs,
    "keyed": keyed,
}  # fmt: skip
