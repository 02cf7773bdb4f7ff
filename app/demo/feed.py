"""Generates the messages that the demo sends, each with the label of its fault."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from faust_oslrau.app.offline.input_files import open_input
from faust_oslrau.app.offline.partitioner import partition_of

from .faults import FAULTS, MALFORMATIONS, OTHER_MACHINE, Change, Surroundings, fault_readings
from .sensors import FIELDS, Plant

MACHINES_PER_PARTITION = 20
"""Machines that differ of each partition of a demo, unless another number is asked for."""

WARM_UP = 2000
"""Messages of each partition before its first anomaly, for a calibrated p-value."""

WARM_UP_READINGS = 64
"""Readings of each machine before its first anomaly: they show what is usual for it."""

_ALIKE_PER_PARTITION = 4

# Machines that differ are many, so each sends less often than one of a few.
_STEPS_BETWEEN = 20

# By default an alarm is a record among the most unusual 1 in 1,000. Anomalies must be rarer, or the
# most extreme ones would hide the others.
_ANOMALOUS = 0.0005
_MALFORMED = 0.001
_INCOMPLETE = 0.03


class Message(NamedTuple):
    """A message, with the kind of its anomaly or malformation as label; None for a normal one."""

    partition: int
    key: bytes | None
    value: bytes | None
    label: str | None = None


def file_messages(path: Path, partitions: int, key: str | None = None) -> Iterator[Message]:
    """Return a file's rows; the content of the field `key` tells each one's partition.

    Without it, row i belongs to partition i modulo `partitions`.

    Raises
    ------
    InputFileError
        Here or while reading: the file is missing, damaged or has another format.
    """
    source = open_input(path, key)
    return (
        Message(partition_of(of, row, partitions), of, value)
        for row, (of, value) in enumerate(source)
    )


def sensor_messages(partitions: int, seed: int, machines: int | None = None) -> Iterator[Message]:
    """Yield messages of simulated machines without end, the same ones for the same seed.

    Machine i belongs to partition i modulo `partitions`; the machines take turns. A number of
    `machines` differ from each other; None is a few that are alike.
    """
    rng = np.random.default_rng(seed)
    are_alike = machines is None
    if machines is None:
        machines = _ALIKE_PER_PARTITION * partitions
    plant = Plant(machines, rng, are_alike=are_alike)
    disturber = _Disturber(machines, rng, are_alike=are_alike)
    warm_up = max(WARM_UP * partitions // machines, WARM_UP_READINGS)
    for reading in count():
        readings = plant.read_after(1 if are_alike else _STEPS_BETWEEN)
        labels: list[str | None] = [None] * machines
        if reading >= warm_up:
            labels = disturber.disturb(readings, plant)
        yield from disturber.messages(readings, labels, partitions)


class _Deck:
    """Draws all names in random order, then again: each is drawn about as often."""

    def __init__(self, names: list[str], rng: np.random.Generator) -> None:
        self._names = names
        self._rng = rng
        self._left: list[str] = []

    def draw(self) -> str:
        if not self._left:
            self._left = [self._names[i] for i in self._rng.permutation(len(self._names))]
        return self._left.pop()


class _Disturber:
    """Injects anomalies, missing fields and malformed messages."""

    def __init__(self, machines: int, rng: np.random.Generator, *, are_alike: bool) -> None:
        self._rng = rng
        self._names = [b"machine-%02d" % (machine + 1) for machine in range(machines)]
        kinds = [kind for kind in FAULTS if not (are_alike and kind == OTHER_MACHINE)]
        self._faults = _Deck(kinds, rng)
        self._malformations = _Deck(list(MALFORMATIONS), rng)
        readings = sum(map(fault_readings, kinds)) / len(kinds)
        self._fault_begins = _ANOMALOUS / readings
        self._lasting: dict[int, tuple[str, Change, int]] = {}

    def disturb(self, readings: NDArray[np.float64], plant: Plant) -> list[str | None]:
        """Change some readings in place, and return the kind of anomaly of each, or None."""
        begins = self._rng.random(len(readings)) < self._fault_begins
        for machine in np.flatnonzero(begins).tolist():
            self._begin(machine, readings, plant)
        labels: list[str | None] = [None] * len(readings)
        for machine, (kind, change, left) in list(self._lasting.items()):
            readings[machine, change.columns] = change.values.round(3)
            labels[machine] = kind
            if left > 1:
                self._lasting[machine] = (kind, change, left - 1)
            else:
                del self._lasting[machine]
        return labels

    def messages(
        self, readings: NDArray[np.float64], labels: list[str | None], partitions: int
    ) -> Iterator[Message]:
        """Yield a message for each reading; anomalous ones are complete and well-formed.

        A part of the others is incomplete or malformed.
        """
        chances = self._rng.random(len(readings)).tolist()
        for machine, reading in enumerate(readings.tolist()):
            label, name, chance = labels[machine], self._names[machine], chances[machine]
            if label is None and chance < _INCOMPLETE:
                self._leave_out(reading)
            value = orjson.dumps(_document(name.decode(), reading))
            message = Message(machine % partitions, name, value, label)
            if label is None and chance > 1 - _MALFORMED:
                message = self._spoil(message, value)
            yield message

    def _begin(self, machine: int, readings: NDArray[np.float64], plant: Plant) -> None:
        kind = self._faults.draw()
        opposite = int(np.argmax(abs(plant.load - plant.load[machine])))
        others = np.delete(readings, machine, axis=0)
        around = Surroundings(plant.before[machine], readings[opposite], others)
        change = FAULTS[kind](readings[machine], around, self._rng)
        self._lasting[machine] = (kind, change, fault_readings(kind))

    def _spoil(self, message: Message, value: bytes) -> Message:
        kind = self._malformations.draw()
        spoil, _ = MALFORMATIONS[kind]
        return message._replace(value=spoil(value), label=kind)

    def _leave_out(self, reading: list[float | None]) -> None:
        reading[int(self._rng.integers(len(reading)))] = None


def _document(name: str, reading: list[float | None]) -> dict[str, Any]:
    """Return a reading as a nested object; a missing field is null if nested, else absent."""
    document: dict[str, Any] = {"machine": name}
    for field, value in zip(FIELDS, reading, strict=True):
        parent, _, child = field.partition(".")
        if child:
            document.setdefault(parent, {})[child] = value
        elif value is not None:
            document[parent] = value
    return document
