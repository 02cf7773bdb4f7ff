"""Streams of discrete and mixed records that do not depend on each other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.datasets import Array

from .draws import System

STATUS = (200.0, 304.0, 404.0, 500.0)
STATUS_SHARES = (0.9, 0.06, 0.03, 0.01)
COUNT_MEAN = 0.05
FLAG_SHARE = 0.02
ZERO_SHARE = 0.9


def status_codes(rng: np.random.Generator, n: int) -> Array:
    """Draw a web server's status codes, three of them rare."""
    return rng.choice(STATUS, size=(n, 1), p=STATUS_SHARES)


def sparse_counts(rng: np.random.Generator, n: int) -> Array:
    """Count the errors of a minute, of which there are hardly any."""
    return rng.poisson(COUNT_MEAN, (n, 1)).astype(np.float64)


def rare_flag(rng: np.random.Generator, n: int) -> Array:
    """Draw the flag of a door that is seldom open."""
    return (rng.random((n, 1)) < FLAG_SHARE).astype(np.float64)


def mostly_zero(rng: np.random.Generator, n: int) -> Array:
    """Draw millimetres of rain, mostly none."""
    return np.where(rng.random((n, 1)) < ZERO_SHARE, 0.0, rng.exponential(2.0, (n, 1)))


def battery(rng: np.random.Generator, n: int) -> Array:
    """Draw the charge of any phone, in whole per cent."""
    return rng.integers(0, 101, (n, 1)).astype(np.float64)


def tenths(rng: np.random.Generator, n: int) -> Array:
    """Draw a thermometer's degrees, rounded to tenths."""
    return np.round(rng.normal(20.0, 0.5, (n, 1)), 1)


def flag_and_number(rng: np.random.Generator, n: int) -> Array:
    """Draw whether an item is a return, seldom, and its weight in grams, without relation."""
    return np.column_stack([rng.random(n) < FLAG_SHARE, rng.normal(500.0, 40.0, n)])


def codes_and_numbers(rng: np.random.Generator, n: int) -> Array:
    """Draw status codes beside two numbers that depend on each other and on the code."""
    code = rng.choice(len(STATUS), size=n, p=STATUS_SHARES)
    millis = rng.lognormal(3.0, 0.4, n) * np.array([1.0, 0.2, 0.5, 5.0])[code]
    kilobytes = 0.1 * millis * rng.lognormal(0.0, 0.5, n)
    return np.column_stack([np.array(STATUS)[code], millis, kilobytes])


def related_codes(rng: np.random.Generator, n: int) -> Array:
    """Draw an order: country, its currency mostly, express or not, pieces, gifts among them."""
    country = rng.choice(4, size=n, p=[0.5, 0.3, 0.15, 0.05])
    currency = np.where(rng.random(n) < 0.98, country // 2, rng.integers(0, 3, n))
    express = rng.random(n) < np.array([0.02, 0.1, 0.3, 0.01])[country]
    pieces = 1 + rng.poisson(1.5, n)
    gifts = rng.binomial(pieces, 0.1)
    return np.column_stack([country, currency, express, pieces, gifts]).astype(np.float64)


def rounded_fields(rng: np.random.Generator, n: int) -> Array:
    """Draw three sizes of a part that depend on each other, to 1, 0.1 and 0.01 millimetres."""
    size = rng.normal(size=(n, 1))
    x = np.array([80.0, 12.0, 1.5]) + np.array([3.0, 0.6, 0.08]) * (
        0.9 * size + 0.44 * rng.normal(size=(n, 3))
    )
    return np.column_stack([np.round(column, digits) for digits, column in enumerate(x.T)])


def gaussian(rng: np.random.Generator, n: int) -> Array:
    """Draw a measurement with nothing but Gaussian noise."""
    return rng.normal(10.0, 2.0, (n, 1))


EXCHANGEABLE: Mapping[str, System] = {
    "status codes": status_codes,
    "sparse counts": sparse_counts,
    "rare flag": rare_flag,
    "mostly zero": mostly_zero,
    "battery": battery,
    "tenths": tenths,
    "flag and number": flag_and_number,
    "codes and numbers": codes_and_numbers,
    "related codes": related_codes,
    "rounded fields": rounded_fields,
    "gaussian": gaussian,
}
"""Streams whose records may come in any order."""
