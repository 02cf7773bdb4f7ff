"""How the demonstration stands at a moment, for those who watch it."""

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

# Rates are those of the last few seconds.
_RATE_SECONDS = 3.0
_HISTORY = 60


@dataclass(frozen=True, slots=True)
class Network:
    """Size of all partitions' networks together; `depth` is that of the deepest."""

    nodes: Mapping[str, int] = field(default_factory=dict)
    depth: int = 0

    @property
    def n_leaves(self) -> int:
        """Leaves of one variable and of several."""
        return self.nodes.get("leaf", 0) + self.nodes.get("multivariate_leaf", 0)

    @property
    def n_nodes(self) -> int:
        """Nodes of every kind."""
        return sum(self.nodes.values())


@dataclass(frozen=True, slots=True)
class Situation:
    """What a view shows.

    Attributes
    ----------
    elapsed, seconds
        Time since the first record, and how long records are to be sent: None to a file's end.
    sent_rate, answered_rate
        Records per second of late.
    is_resting
        Whether nothing is sent until more answers have come.
    log_likelihoods
        Medians of the scores that came between two looks, oldest first.
    alarms
        The last anomalies, oldest first.
    """

    title: str
    phase: str
    elapsed: float
    seconds: float | None
    account: Account
    sent_rate: float
    answered_rate: float
    is_resting: bool
    network: Network
    log_likelihoods: Sequence[float]
    alarms: Sequence[Alarm]


class Observer:
    """Looks at account, collector, feeder and worker again and again."""

    def __init__(self, title: str, seconds: float | None, account: Account) -> None:
        self.phase = "starting"
        self.network = Network()
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
        """Note that the first record is about to be sent."""
        self._began = monotonic()

    def update_models(self, page: Mapping[str, Any]) -> None:
        """Take the sizes from the worker's page /model."""
        models = page.get("partitions", [])
        nodes: Counter[str] = Counter()
        for model in models:
            nodes.update(model["nodes"])
        if nodes:  # a worker that stops shows none any more
            self.network = Network(nodes, max(model["depth"] for model in models))

    def look(self, collector: Collector, feeder: Feeder) -> Situation:
        """Return how things stand now."""
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
            feeder.is_resting,
            self.network,
            list(self._log_likelihoods),
            list(collector.alarms),
        )


class _Meter:
    """How fast a count grows."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, int]] = deque()

    def rate(self, count: int) -> float:
        now = monotonic()
        self._readings.append((now, count))
        while now - self._readings[0][0] > _RATE_SECONDS:
            self._readings.popleft()
        then, before = self._readings[0]
        return (count - before) / (now - then) if now > then else 0.0
