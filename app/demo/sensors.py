"""Simulates machines with regimes, correlated sensors and slow drift.

Each machine goes through the regimes idle, ramp, load, peak and coast. Speed and load follow the
regime, and heat follows speed and load. The sensors show these three, the hall's climate and noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

FIELDS = (
    "ambient.humidity",  # %
    "ambient.temperature",  # degrees Celsius, as all temperatures
    "coolant_flow",  # l/min
    "motor.current",  # A
    "motor.temperature",
    "oil.pressure",  # bar
    "oil.temperature",
    "power",  # kW
    "speed",  # 1/min
    "torque",  # Nm
    "vibration.peak",  # mm/s
    "vibration.rms",  # mm/s
)
"""Names of the fields as dotted paths, in the order of a reading's columns."""

SPANS = np.array([8, 6, 10, 42, 50, 3.3, 34, 60, 2600, 180, 11, 2.7])
"""The range (12,) of each field, from a cold idle machine to a hot one at its peak."""


class Regime(NamedTuple):
    """Target speed and load, as shares of the maximum, and the range of the number of steps."""

    speed: float
    load: float
    shortest: int
    longest: int
    followers: tuple[int, ...]


REGIMES = (
    Regime(0.10, 0.00, 30, 90, (1,)),  # idle
    Regime(0.60, 0.35, 10, 30, (2,)),  # ramp
    Regime(0.80, 0.65, 60, 160, (3, 4)),  # load
    Regime(1.00, 1.00, 20, 60, (2,)),  # peak
    Regime(0.40, 0.05, 10, 30, (0,)),  # coast
)


class Character(NamedTuple):
    """What tells machines apart (machines,): factors of what their sensors show, and offsets."""

    vibration: FloatArray
    motor_current: FloatArray
    oil_pressure: FloatArray
    motor_warmth: FloatArray
    oil_warmth: FloatArray


# The share of the distance to the target that each step covers.
_SPEED_PACE = 0.25
_LOAD_PACE = 0.30
_HEAT_PACE = 0.03
# Steps of a day of the hall's climate, and of the wear that adds 1 mm/s of vibration.
_DAY = 20_000
_WEAR = 100_000


class Plant:
    """The machines of one hall; each step reads all sensors once.

    Parameters
    ----------
    are_alike
        Whether all machines are the same but for slight differences. Otherwise each has its own
        vibration, motor current, oil pressure and temperatures.

    Attributes
    ----------
    load
        The load of each machine (machines,), from 0 to 1.
    before
        The reading of each machine at the end of its last regime (machines, 12).
    """

    def __init__(self, machines: int, rng: np.random.Generator, *, are_alike: bool = True) -> None:
        self._rng = rng
        self._regimes = rng.integers(len(REGIMES), size=machines)
        self._steps_left = rng.integers(1, 60, size=machines)
        self._step = 0
        self._wanted = np.array([REGIMES[regime][:2] for regime in self._regimes])
        self._speed, self.load = self._wanted.T.copy()
        self._heat = _heating(self._speed, self.load)
        # Machines differ slightly.
        self._stiffness = rng.normal(1.0, 0.02, size=machines)
        self._character = _equal(machines) if are_alike else _drawn(machines, rng)
        self.before = self._read()

    def read_after(self, steps: int) -> FloatArray:
        """Simulate some steps, and return the last readings (machines, 12)."""
        for _ in range(steps - 1):
            self.step()
        return self.step()

    def step(self) -> FloatArray:
        """Simulate one step, and return the readings (machines, 12)."""
        self._step += 1
        self._speed += _SPEED_PACE * (self._wanted[:, 0] - self._speed)
        self.load += _LOAD_PACE * (self._wanted[:, 1] - self.load)
        self._heat += _HEAT_PACE * (_heating(self._speed, self.load) - self._heat)
        readings = self._read()
        self._steps_left -= 1
        for machine in np.flatnonzero(self._steps_left == 0).tolist():
            self.before[machine] = readings[machine]
            self._change_regime(machine)
        return readings

    def _change_regime(self, machine: int) -> None:
        chosen = int(self._rng.choice(REGIMES[self._regimes[machine]].followers))
        regime = REGIMES[chosen]
        self._regimes[machine] = chosen
        self._wanted[machine] = regime[:2]
        self._steps_left[machine] = self._rng.integers(regime.shortest, regime.longest)

    def _read(self) -> FloatArray:
        speed, load, heat = self._speed, self.load, self._heat
        noise = self._rng.standard_normal((len(FIELDS), len(speed)))
        climate = np.sin(2 * np.pi * self._step / _DAY)
        ambient = 21 + 3 * climate + 0.2 * noise[1]
        turns = 300 + 2700 * speed + 8 * noise[8]
        torque = 5 + 180 * load * self._stiffness + 2 * noise[9]
        own = self._character
        vibration = own.vibration * (0.5 + 1.8 * speed + 0.8 * load) + self._step / _WEAR
        rms = vibration * np.exp(0.04 * noise[11])
        columns = {
            "ambient.humidity": 45 - 4 * climate + 0.8 * noise[0],
            "ambient.temperature": ambient,
            "coolant_flow": 4 + 10 * heat + 0.15 * noise[2],
            "motor.current": 2 + 0.22 * own.motor_current * torque + 0.001 * turns + 0.4 * noise[3],
            "motor.temperature": ambient + 15 + own.motor_warmth + 50 * heat + 0.5 * noise[4],
            "oil.pressure": own.oil_pressure * (1.5 + 3.5 * speed) + 0.05 * noise[5],
            "oil.temperature": ambient + 10 + own.oil_warmth + 34 * heat + 0.4 * noise[6],
            "power": torque * turns / 9549 * (1 + 0.01 * noise[7]),
            "speed": turns,
            "torque": torque,
            "vibration.peak": rms * (3.4 + 0.15 * noise[10]),
            "vibration.rms": rms,
        }
        return np.column_stack([columns[field] for field in FIELDS]).round(3)


def _heating(speed: FloatArray, load: FloatArray) -> FloatArray:
    return np.asarray(0.3 * speed + 0.7 * load, np.float64)


def _equal(machines: int) -> Character:
    one, zero = np.ones(machines), np.zeros(machines)
    return Character(one, one, one, zero, zero)


def _drawn(machines: int, rng: np.random.Generator) -> Character:
    return Character(
        vibration=np.exp(rng.normal(0.0, 0.4, size=machines)),
        motor_current=rng.normal(1.0, 0.1, size=machines),
        oil_pressure=rng.normal(1.0, 0.1, size=machines),
        motor_warmth=rng.normal(0.0, 6.0, size=machines),
        oil_warmth=rng.normal(0.0, 6.0, size=machines),
    )
