"""Collects the state of a running demo for its view."""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from .accounting import Account
from .collector import Alarm, Collector
from .feeder import Feeder

# The interval of the rates.
_RATE_SECONDS = 3.0
_HISTORY = 60
_ALARMING = 3


@dataclass(frozen=True, slots=True)
class Network:
    """The total size of all partitions' networks; `depth` is that of the deepest one."""

    nodes: Mapping[str, int] = field(default_factory=dict)
    depth: int = 0

    @property
    def n_leaves(self) -> int:
        """Univariate and multivariate leaves."""
        return self.nodes.get("leaf", 0) + self.nodes.get("multivariate_leaf", 0)

    @property
    def n_nodes(self) -> int:
        """Nodes of every kind."""
        return sum(self.nodes.values())


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a demo at a moment.

    Attributes
    ----------
    elapsed, seconds
        Time since the first record, and the time of sending; None until the end of a file.
    sent_rate, answered_rate
        Records per second in the last few seconds.
    is_paused
        Whether the feeder waits for answers before it sends more.
    log_likelihoods
        Medians of the scores between two observations, oldest first.
    alarms
        The last anomalies, oldest first.
    alarming
        The keys with the most anomalies, and how many each has, most first.
    compiled
        About the share of the kernels that are compiled; None unless they are being compiled.
    """

    title: str
    phase: str
    elapsed: float
    seconds: float | None
    account: Account
    sent_rate: float
    answered_rate: float
    is_paused: bool
    network: Network
    log_likelihoods: Sequence[float]
    alarms: Sequence[Alarm]
    alarming: Sequence[tuple[str, int]]
    compiled: float | None = None


class Observer:
    """Observes the account, the collector, the feeder and the worker.

    Attributes
    ----------
    fields, left_out
        The fields of the first partition that has any, and those that its first records left out.
    """

    def __init__(self, title: str, seconds: float | None, account: Account) -> None:
        self.phase = "starting"
        self.compiled: float | None = None
        self.network = Network()
        self.fields: list[str] = []
        self.left_out: list[str] = []
        self._title = title
        self._seconds = seconds
        self._account = account
        self._began: float | None = None
        self._sent, self._answered = _Meter(), _Meter()
        self._log_likelihoods: deque[float] = deque(maxlen=_HISTORY)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return 0.0 if self._began is None else monotonic() - self._began

    def begin(self) -> None:
        """Start the clock, when the first record is about to be sent."""
        self._began = monotonic()

    def update_models(self, page: Mapping[str, Any]) -> None:
        """Update the fields and the sizes of the networks from the worker's page /model."""
        models = page.get("partitions", [])
        nodes: Counter[str] = Counter()
        for model in models:
            nodes.update(model["nodes"])
            if model["fields"] and not self.fields:
                self.fields, self.left_out = model["fields"], model["left_out"]
        if nodes:  # a stopping worker shows none
            self.network = Network(nodes, max(model["depth"] for model in models))

    def look(self, collector: Collector, feeder: Feeder) -> Situation:
        """Return the current situation."""
        if collector.log_likelihoods:
            self._log_likelihoods.append(statistics.median(collector.log_likelihoods))
            collector.log_likelihoods.clear()
        account = self._account
        return Situation(
            self._title,
            self.phase,
            self.elapsed,
            self._seconds,
            account,
            self._sent.rate(account.sent),
            self._answered.rate(account.scored + account.rejected),
            feeder.is_paused,
            self.network,
            list(self._log_likelihoods),
            list(collector.alarms),
            collector.alarms_by_key.most_common(_ALARMING),
            self.compiled,
        )


class _Meter:
    """Measures the growth rate of a count."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, int]] = deque()

    def rate(self, count: int) -> float:
        now = monotonic()
        self._readings.append((now, count))
        while now - self._readings[0][0] > _RATE_SECONDS:
            self._readings.popleft()
        then, before = self._readings[0]
        return (count - before) / (now - then) if now > then else 0.0
