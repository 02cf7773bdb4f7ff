"""What goes wrong in the made-up machines: anomalous readings and malformed messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.topics import Reason

from .sensors import FIELDS, SPANS

FloatArray = NDArray[np.float64]


class Surroundings(NamedTuple):
    """Readings (12,) to compare a machine's with.

    `before` is its own at the end of its last regime, `opposite` that of the machine whose load
    differs most at the moment.
    """

    before: FloatArray
    opposite: FloatArray


class Change(NamedTuple):
    """What is wrong: columns, and what they show instead."""

    columns: Sequence[int]
    values: FloatArray


Fault = Callable[[FloatArray, Surroundings, np.random.Generator], Change]
Malformation = Callable[[bytes], bytes | None]


def _columns(*fields: str) -> list[int]:
    return [FIELDS.index(field) for field in fields]


_NEVER_ZERO = _columns("motor.temperature", "oil.pressure", "oil.temperature", "speed")
_TEMPERATURES = _columns("motor.temperature", "oil.temperature")
_COUPLED = _columns("motor.current", "oil.pressure", "power", "torque", "vibration.rms")
_COOLING = _columns("motor.temperature", "oil.temperature", "coolant_flow", "vibration.rms")
# A clogged cooler, as shares of the spans: everything hotter and rougher on less coolant.
_CLOGGED = np.array([0.3, 0.3, -0.3, 0.2])


def _spike(reading: FloatArray, around: Surroundings, rng: np.random.Generator) -> Change:
    """Show one field far outside its range."""
    column = int(rng.integers(len(FIELDS)))
    height = rng.uniform(1.5, 3.0) * rng.choice([-1.0, 1.0])
    return Change([column], reading[[column]] + height * SPANS[column])


def _dropout(reading: FloatArray, around: Surroundings, rng: np.random.Generator) -> Change:
    """Show zero, as a sensor without power does."""
    return Change([int(rng.choice(_NEVER_ZERO))], np.zeros(1))


def _wrong_unit(reading: FloatArray, around: Surroundings, rng: np.random.Generator) -> Change:
    """Show a temperature in degrees Fahrenheit."""
    column = int(rng.choice(_TEMPERATURES))
    return Change([column], reading[[column]] * 1.8 + 32)


def _broken_correlation(
    reading: FloatArray, around: Surroundings, rng: np.random.Generator
) -> Change:
    """Show a value that is usual, but not beside the others."""
    column = int(rng.choice(_COUPLED))
    return Change([column], around.opposite[[column]])


def _stuck(reading: FloatArray, around: Surroundings, rng: np.random.Generator) -> Change:
    """Show still what the sensor showed in the last regime."""
    column = int(rng.choice(_COUPLED))
    return Change([column], around.before[[column]])


def _shift(reading: FloatArray, around: Surroundings, rng: np.random.Generator) -> Change:
    """Move several fields together, none of them far out of its range."""
    return Change(_COOLING, reading[_COOLING] + _CLOGGED * SPANS[_COOLING])


FAULTS: dict[str, Fault] = {
    "spike": _spike,
    "dropout": _dropout,
    "wrong_unit": _wrong_unit,
    "broken_correlation": _broken_correlation,
    "stuck": _stuck,
    "shift": _shift,
}
"""Kinds of anomalies, and what each makes of a reading."""

STUCK_READINGS = 4
"""Readings in a row for which a stuck sensor shows the same; the other kinds last for one."""


def fault_readings(kind: str) -> int:
    """Return how many readings of a machine a fault lasts."""
    return STUCK_READINGS if kind == "stuck" else 1


def _with_speed(content: bytes) -> Malformation:
    """Return what writes `content` as the value of the first field of the message."""
    return lambda message: b'{"speed":%b,%b' % (content, message[1:])


MALFORMATIONS: dict[str, tuple[Malformation, Reason]] = {
    "tombstone": (lambda message: None, Reason.NO_VALUE),
    "truncated": (lambda message: message[: len(message) // 2], Reason.NOT_JSON),
    "bare_nan": (_with_speed(b"NaN"), Reason.NOT_JSON),
    "latin_1": (lambda message: b"{'ort':'K\xf6ln'}", Reason.NOT_UTF8),
    "a_list": (lambda message: b"[%b]" % message, Reason.NOT_AN_OBJECT),
    "text": (lambda message: b'{"speed":"n/a"}', Reason.NOT_A_NUMBER),
    "overflow": (_with_speed(b"1e400"), Reason.NOT_FINITE),
    "empty": (lambda message: b"{}", Reason.NO_FEATURES),
}
"""Kinds of malformed messages: what each makes of a good one, and why it is rejected."""
