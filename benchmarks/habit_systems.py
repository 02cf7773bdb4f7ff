"""Systems whose entities have categories of their own; they served for no choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .datasets import Array

FIRST = 5_000
"""First records of a stream, which are no faults."""

FAULTS = 0.003


class Stream(NamedTuple):
    """Rows (n, d + c) with ``c`` categories last, the entity of each, and which are faults."""

    rows: Array
    entity: NDArray[np.int64]
    is_fault: NDArray[np.bool_]
    n_categories: int


def logins(rng: np.random.Generator, n: int) -> Stream:
    """Logins of 300 users, some far more active: where from, by which device, by which method.

    Users travel now and then, for some dozens of logins. Faults are logins as another user's.
    """
    k, countries, kinds = 300, 20, 6
    activity = rng.pareto(1.2, k) + 0.2
    user = rng.choice(k, n, p=activity / activity.sum())
    popular = rng.dirichlet(np.full(countries, 0.4))
    home, kind = rng.choice(countries, k, p=popular), rng.dirichlet(np.full(kinds, 0.3), k)
    seconds = rng.normal(4.0, 1.0, kinds)
    country, device, left = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(k, np.int64)
    abroad, is_fault = home.copy(), faults(rng, n)
    for i, who in enumerate(user):
        if left[who] == 0 and rng.random() < 0.01:
            left[who], abroad[who] = rng.integers(20, 60), rng.choice(countries, p=popular)
        country[i] = abroad[who] if left[who] > 0 else home[who]
        left[who] = max(left[who] - 1, 0)
        as_whom = rng.integers(k) if is_fault[i] else who
        device[i] = rng.choice(kinds, p=kind[as_whom])
        country[i] = home[as_whom] if is_fault[i] else country[i]
    method = np.where(rng.random(n) < 0.9, device % 3, rng.integers(3, size=n))
    lasted = np.exp(rng.normal(seconds[device], 0.5))
    attempts = rng.poisson(0.2, n) + 1.0
    return Stream(np.column_stack([lasted, attempts, country, device, method]), user, is_fault, 3)


def terminals(rng: np.random.Generator, n: int) -> Stream:
    """Payments at 60 terminals: scheme, currency, way of entry, amount.

    A terminal takes its country's currency, and those of tourists where there are any. Faults are
    payments in a currency that is another terminal's.
    """
    k, currencies, schemes = 60, 8, 6
    terminal, country = rng.integers(k, size=n), rng.integers(currencies, size=k)
    tourists, price = rng.beta(0.5, 5.0, k), rng.normal(3.0, 1.0, k)
    taken = rng.dirichlet(np.full(schemes, 0.8), k)
    scheme = np.array([rng.choice(schemes, p=taken[each]) for each in terminal])
    foreign = rng.random(n) < tourists[terminal]
    currency = np.where(foreign, rng.integers(currencies, size=n), country[terminal])
    is_fault = faults(rng, n)
    other = (country[terminal] + rng.integers(1, currencies, size=n)) % currencies
    currency = np.where(is_fault, other, currency)
    entry = np.where(rng.random(n) < 0.85, scheme % 3, rng.integers(3, size=n))
    amount = np.exp(rng.normal(price[terminal], 0.7))
    hour = rng.normal(14.0, 3.0, n)
    return Stream(np.column_stack([amount, hour, scheme, currency, entry]), terminal, is_fault, 3)


def machines(rng: np.random.Generator, n: int) -> Stream:
    """Records of 40 machines, each with three of twelve programs in runs of a hundred records.

    Tool and load depend on the program. Faults are single records of a program that the machine
    does not run.
    """
    k, programs = 40, 12
    machine, tool = rng.integers(k, size=n), rng.integers(5, size=programs)
    own = np.array([rng.choice(programs, 3, replace=False) for _ in range(k)])
    now, program = rng.integers(3, size=k), np.empty(n, np.int64)
    load, is_fault = rng.normal(50.0, 15.0, programs), faults(rng, n)
    for i, which in enumerate(machine):
        if rng.random() < 0.01:
            now[which] = rng.integers(3)
        others = np.setdiff1d(np.arange(programs), own[which])
        program[i] = rng.choice(others) if is_fault[i] else own[which, now[which]]
    power = rng.normal(load[program], 4.0) + rng.normal(0.0, 5.0, k)[machine]
    warmth = 0.5 * power + rng.normal(20.0, 2.0, n)
    worn = np.where(rng.random(n) < 0.97, tool[program], rng.integers(5, size=n))
    return Stream(np.column_stack([power, warmth, program, worn]), machine, is_fault, 2)


def pods(rng: np.random.Generator, n: int) -> Stream:
    """Requests that a balancer spreads over 80 pods, which are alike.

    Faults are requests of a rare method for a path that does not take it, of any pod.
    """
    paths, methods = 15, 4
    pod, path = rng.integers(80, size=n), rng.choice(paths, n, p=rng.dirichlet(np.ones(paths)))
    usual = rng.integers(methods, size=paths)
    is_fault = faults(rng, n)
    odd = (usual[path] + rng.integers(1, methods, size=n)) % methods
    method = np.where(is_fault, odd, usual[path])
    status = rng.choice(4, n, p=[0.93, 0.04, 0.02, 0.01])
    latency = np.exp(rng.normal(2.0 + 0.2 * path, 0.4) + 0.5 * status)
    size = np.exp(rng.normal(6.0, 1.0, n))
    return Stream(np.column_stack([latency, size, path, method, status]), pod, is_fault, 3)


SYSTEMS: dict[str, Callable[[np.random.Generator, int], Stream]] = {
    "logins": logins,
    "terminals": terminals,
    "machines": machines,
    "pods": pods,
}


def faults(rng: np.random.Generator, n: int) -> NDArray[np.bool_]:
    """Return which of ``n`` records are faults: none of the first ones."""
    return (rng.random(n) < FAULTS) & (np.arange(n) >= FIRST)
