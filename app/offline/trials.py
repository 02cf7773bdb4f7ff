"""Tries settings on a log: by how much likelier they make its records."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import KEY, KafkaRecord, Kind, Record
from faust_oslrau.topics.columns import NUMERIC, Column
from faust_oslrau.topics.documents import parsed
from faust_oslrau.topics.fields import find, is_number, number_of, put

from .comparison import compare_logs
from .scored_log import ScoredLog

LEAST_GAIN = 0.05
"""Nats a record that a setting must bring, at least, for each number that it changes. By chance,
networks of the same records differ by up to that, which a standard error over records does not
show."""

ERRORS = 3.0
"""Standard errors by which it must bring more than nothing: several settings are tried."""

# The lowest hundredth of either log does not count: a few faults would outweigh all else.
_LOWEST = 0.01
_STRETCHES = 20


class Gain(NamedTuple):
    """Nats a record that a setting brings, their standard error, and the least that pay."""

    nats: float
    error: float
    least: float

    @property
    def pays(self) -> bool:
        """Whether it is worth a setting."""
        return self.nats > max(self.least, ERRORS * self.error)

    @property
    def harms(self) -> bool:
        """Whether records are clearly less likely with it."""
        return -self.nats > max(self.least, ERRORS * self.error)

    def __str__(self) -> str:
        """Return both in two digits."""
        return f"{self.nats:+.2f} ± {self.error:.2f}"


class Trials:
    """Scores a log by settings, with numbers that have densities.

    Where a number comes again and again, its density is as high as a model is narrow. So it is
    spread over the room of others, as counts are; one that never changes is left out.

    Parameters
    ----------
    records
        The log, partition by partition.
    columns
        Its fields.
    kinds
        What fields are unless settings say so, numbers if neither does.
    told
        Hears of each trial before it is made.
    """

    def __init__(
        self,
        records: Sequence[KafkaRecord],
        columns: Sequence[Column],
        kinds: Mapping[str, Kind],
        told: Callable[[str], None],
    ) -> None:
        self._records = records
        self._kinds = kinds
        self._told = told
        changing = any(each.kind != Kind.IGNORED and not each.is_constant for each in columns)
        numbers = [column for column in columns if column.kind in NUMERIC]
        self._constant = [each.name for each in numbers if each.is_constant and changing]
        self._rooms = {each.name: rooms(each.numbers) for each in numbers if not each.is_constant}
        self._logs: dict[Settings, ScoredLog] = {}

    def kind(self, name: str, settings: Settings) -> Kind:
        """Return what a field is under settings."""
        return Kind(dict(settings.kinds).get(name, self._kinds.get(name, Kind.NUMBER)))

    @property
    def n_numbers(self) -> int:
        """How many fields are numbers that change."""
        return len(self._rooms)

    def gain(
        self,
        a: Settings,
        b: Settings,
        what: str,
        numbers: int | None = None,
        own: tuple[Settings, Settings] | None = None,
    ) -> Gain:
        """Return by how much likelier records are under ``b``.

        ``numbers`` says how many fields it changes; None for all. ``own`` are settings under which
        a field is alone: what they bring to it does not count.
        """
        self._told(what)
        means = self._means(self.log(a), self.log(b))
        if own is not None:
            means = means - self._means(*map(self.log, own))
        return self._gain(means, numbers)

    def gain_of_entity(self, without: Settings, name: str) -> Gain:
        """Return what it brings to know the entity, if that is more than what any names bring.

        Entities have levels that follow what drifts, whatever they are: names that are dealt anew
        to the records tell how much that is. If it is nearly all, the rest is returned.
        """
        self._told(f"entity = {name}")
        settings = replace(without, entity=name)
        gain = self._gain(self._means(self.log(without), self.log(settings)))
        if not gain.pays:
            return gain
        others = scored(dealt_anew(self._with_densities(settings), name), settings)
        rest = self._gain(self._means(others, self.log(settings)))
        return gain if rest.pays else rest

    def _gain(self, means: NDArray[np.float64], numbers: int | None = None) -> Gain:
        error = np.std(means, ddof=1) / math.sqrt(len(means)) if len(means) > 1 else math.inf
        least = LEAST_GAIN * max(self.n_numbers if numbers is None else numbers, 1)
        return Gain(float(means.mean()), float(error), least)

    def _means(self, a: ScoredLog, b: ScoredLog) -> NDArray[np.float64]:
        """Return by how much likelier stretches of records are under ``b``, in the mean."""
        found = compare_logs(a, b)
        ours, theirs = (scores.log_likelihood for scores in found.scores)
        usual = (ours >= np.quantile(ours, _LOWEST)) & (theirs >= np.quantile(theirs, _LOWEST))
        off = (theirs - ours)[usual]
        return np.array([each.mean() for each in np.array_split(off, min(_STRETCHES, len(off)))])

    def log(self, settings: Settings) -> ScoredLog:
        """Return the log as scored by settings."""
        if settings not in self._logs:
            self._logs[settings] = scored(self._with_densities(settings), settings)
        return self._logs[settings]

    def _with_densities(self, settings: Settings) -> list[KafkaRecord]:
        roles = {settings.entity, settings.time, settings.rates_by}
        spread = {
            name: room for name, room in self._rooms.items()
            if self.kind(name, settings) == Kind.NUMBER and name not in roles
        }  # fmt: skip
        left_out = [name for name in self._constant if name not in roles]
        rng = np.random.default_rng(0)
        # The same for each field in all trials.
        share = {name: rng.random(len(self._records)) for name in self._rooms}
        return [
            self._changed(record, {name: share[name][i] for name in spread}, left_out)
            for i, record in enumerate(self._records)
        ]

    def _changed(
        self, record: KafkaRecord, share: Mapping[str, float], left_out: Sequence[str]
    ) -> KafkaRecord:
        document = parsed(record.value)
        if not isinstance(document, dict):
            return record
        for name in left_out:
            if find(document, name) is not None:
                put(document, name, None)
        for name, part in share.items():
            content = find(document, name)
            number = number_of(content) if isinstance(content, str) else content
            if number is not None and is_number(number):
                put(document, name, number + part * self._rooms[name].get(number, 0.0))
        return _with_value(record, document)


def _with_value(record: KafkaRecord, document: Mapping[str, Any]) -> Record:
    source = record.topic, record.partition, record.offset, record.timestamp, record.key
    return Record(*source, json.dumps(document).encode(), record.headers)


def dealt_anew(records: Sequence[KafkaRecord], entity: str) -> list[KafkaRecord]:
    """Return the records with entities in a random order."""
    order = np.random.default_rng(0).permutation(len(records)).tolist()
    if entity == KEY:
        return [
            Record(r.topic, r.partition, r.offset, r.timestamp, records[i].key, r.value, r.headers)
            for r, i in zip(records, order, strict=True)
        ]
    documents = [parsed(record.value) for record in records]
    names = [find(each, entity) if isinstance(each, dict) else None for each in documents]
    result = list(records)
    has_one = [i for i, name in enumerate(names) if name is not None]
    for i, j in zip(has_one, (j for j in order if names[j] is not None), strict=True):
        put(documents[i], entity, names[j])
        result[i] = _with_value(records[i], documents[i])
    return result


def scored(records: Sequence[KafkaRecord], settings: Settings) -> ScoredLog:
    """Score a log, partition by partition."""
    log = ScoredLog("settings", settings)
    for _, found in groupby(records, key=lambda record: record.partition):
        log.process(list(found))
    return log


def rooms(x: NDArray[np.float64]) -> dict[float, float]:
    """Return the room of each number that comes again: that of half as many others above it.

    Where all are rounded, these are the next number. They are at most half of those above it, as
    the highest ones may be far off; the highest number has the room of the one before it.
    """
    ascending = np.sort(x)
    values, counts = np.unique(ascending, return_counts=True)
    last = np.cumsum(counts)
    above = len(x) - last
    reach = last + (np.minimum(counts, above) + 1) // 2 - 1
    room = ascending[reach] - values
    if len(room) > 1:
        room[-1] = room[-2]
    again = counts > 1
    return dict(zip(values[again].tolist(), room[again].tolist(), strict=True))
