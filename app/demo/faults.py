"""The faults of the simulated machines: anomalous readings and malformed messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.topics import Reason

from .sensors import FIELDS, SPANS

FloatArray = NDArray[np.float64]


class Surroundings(NamedTuple):
    """Readings from which a fault may take values.

    `before` (12,) is the machine's reading at the end of its last regime, `opposite` (12,) that of
    the machine whose load differs most at the moment, `others` (n, 12) are those of all others.
    """

    before: FloatArray
    opposite: FloatArray
    others: FloatArray


class Change(NamedTuple):
    """The columns that a fault changes, and their new values."""

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
# A clogged cooler, as shares of the spans: higher temperatures and vibration, less coolant flow.
_CLOGGED = np.array([0.3, 0.3, -0.3, 0.2])


def _spike(reading: FloatArray, around: Surroundings, rng: np.random.Generator) -> Change:
    """Move one field far outside its range."""
    column = int(rng.integers(len(FIELDS)))
    height = rng.uniform(1.5, 3.0) * rng.choice([-1.0, 1.0])
    return Change([column], reading[[column]] + height * SPANS[column])


def _dropout(reading: FloatArray, around: Surroundings, rng: np.random.Generator) -> Change:
    """Set one field to zero, as a sensor without power does."""
    return Change([int(rng.choice(_NEVER_ZERO))], np.zeros(1))


def _wrong_unit(reading: FloatArray, around: Surroundings, rng: np.random.Generator) -> Change:
    """Convert a temperature to degrees Fahrenheit."""
    column = int(rng.choice(_TEMPERATURES))
    return Change([column], reading[[column]] * 1.8 + 32)


def _broken_correlation(
    reading: FloatArray, around: Surroundings, rng: np.random.Generator
) -> Change:
    """Set one field to a usual value that does not fit the other fields."""
    column = int(rng.choice(_COUPLED))
    return Change([column], around.opposite[[column]])


def _stuck(reading: FloatArray, around: Surroundings, rng: np.random.Generator) -> Change:
    """Set one field to its value in the last regime."""
    column = int(rng.choice(_COUPLED))
    return Change([column], around.before[[column]])


def _shift(reading: FloatArray, around: Surroundings, rng: np.random.Generator) -> Change:
    """Shift several fields together, none of them far outside its range."""
    return Change(_COOLING, reading[_COOLING] + _CLOGGED * SPANS[_COOLING])


def _other_machine(reading: FloatArray, around: Surroundings, rng: np.random.Generator) -> Change:
    """Take the whole reading of another machine: usual for that one, not for this one."""
    return Change(range(len(FIELDS)), rng.choice(around.others))


OTHER_MACHINE = "other_machine"
"""The kind that is an anomaly only among machines that differ."""

FAULTS: dict[str, Fault] = {
    "spike": _spike,
    "dropout": _dropout,
    "wrong_unit": _wrong_unit,
    "broken_correlation": _broken_correlation,
    "stuck": _stuck,
    "shift": _shift,
    OTHER_MACHINE: _other_machine,
}
"""The kinds of anomalies, and the function that changes a reading."""

STUCK_READINGS = 4
"""Consecutive readings with the same value of a stuck sensor; other faults last one reading."""


def fault_readings(kind: str) -> int:
    """Return the number of readings that a fault lasts."""
    return STUCK_READINGS if kind == "stuck" else 1


def _with_speed(content: bytes) -> Malformation:
    """Return a function that gives the field speed of a message the value `content`."""
    return lambda message: b'%b,"speed":%b}' % (message[:-1], content)  # the last one counts


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
"""The kinds of malformed messages: a function of a valid message, and the reason of rejection."""
