"""The network that knows the stream, and after a sudden change a challenger beside it.

A challenger is fitted to the records since a change, if it explains later ones better. Then both
are children of one root, and each learns the records that it explains. None replaces the other
before many records have not needed it: so a fault does not become the model, and a change for good
is learned at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import members as joint
from . import regimes, room
from .alarm import Alarm
from .members import Joint, Member
from .network import Evaluated
from .rescaling import move_units
from .sizes import Sizes
from .training import Rule, Training

FloatArray = NDArray[np.float64]

YOUNG = 496
"""Records of an incumbent below which its log-densities rise too fast for a level."""

FEWEST = 96
"""Records since a change that a challenger is fitted to: half of them, then all."""

ERRORS = 3.0
"""Standard errors by which a challenger must explain the other half better."""

MOST_ALIKE = 0.99
"""Correlation of neighbouring records at the most: beyond, a few hundred tell nothing."""

LOWEST = 1e3
"""Nats for each variable by which one record at most counts against a network."""

KEPT = 0.58
"""Share of the root that the incumbent keeps while the stream may return to it."""

LASTING, FADING = 1536, 128
"""Records of a change after which a return is less likely, and records in which its share of the
root falls to 1/e then."""

ROOM, LATE_ROOM = 0.6, 0.35
"""Share of the nodes that the incumbent keeps, at first and after ``LASTING`` records."""

LEAST = 0.01
"""Share of the root that a challenger keeps, and an incumbent after long."""

LATEST = 32
"""Records whose regime the shares follow."""

NEEDED = 1 / 32
"""Share of a batch from which on a network is needed: an outlier is nearer to one by chance."""


class Terms(NamedTuple):
    """How to learn: the rule of one network, the node budget, and when a network has to go.

    ``adapt_after`` are records, None for no challengers.
    """

    rule: Rule
    max_nodes: int
    adapt_after: int | None


class Contest:
    """One network or two in training.

    Attributes
    ----------
    incumbent, challenger
        The networks; usually there is no challenger.
    share
        Weight of the incumbent's children in the root, together.
    unneeded
        Records since the incumbent, and since the challenger, was needed.
    n_records
        Records learned so far, by any network.
    grow_at
        Records of the only network at which it is to grow again after a contest, 0 if it is not.
    room
        Share of the nodes that the incumbent may take beside a challenger.
    alarm
        Notices sudden changes.
    held
        Records (n, d) since a change, too few for a challenger: to be learned after the next check.
    """

    def __init__(self, d: int) -> None:
        self.incumbent, self.alarm, self.held = Training(d), Alarm(d), np.empty((0, d))
        self.challenger: Training | None = None
        self.share, self.unneeded, self.n_records, self.grow_at = 1.0, [0, 0], 0, 0
        self.room = ROOM

    def members(self) -> list[Member]:
        """Return the networks under the root, none before anything was learned."""
        if self.challenger is None:
            return _members(self.incumbent, 1.0)
        new = _members(self.challenger, 1.0 - self.share)
        return _members(self.incumbent, self.share) + new

    def without_challenger(self) -> Contest:
        """Return a contest of the incumbent alone, which shares its network."""
        alone = Contest(len(self.incumbent.window))
        alone.incumbent, alone.n_records = self.incumbent, self.n_records
        return alone

    def learn(self, X: FloatArray, terms: Terms, told: Joint | None = None) -> None:
        """Learn one mini-batch (m, d); ``told`` is what the networks say of it, if known."""
        self.n_records += len(X)
        young = self.challenger is None and self.incumbent.n_records < YOUNG
        if terms.adapt_after is None or young:
            _teach(self.incumbent, X, terms.rule, told.evaluated[0] if told else None)
            return
        told = told or joint.evaluate(self.members(), X)
        changing = self.alarm.add(X, told.log_density)
        if len(self.held) > 0 and self.alarm.unchecked == 0:
            X, told, self.held = np.concatenate([self.held, X]), None, X[:0]
        if changing:
            rows = self.alarm.changed()
            before = X[: max(len(X) - len(rows), 0)]
            if self._challenge(rows, terms):
                self._learn_before(before, terms)
                return
            if self.alarm.checks == 1 and len(rows) < FEWEST:
                self.held, X, told = X[len(before) :], before, None
        if len(X) > 0:
            self._learn(X, terms, told or joint.evaluate(self.members(), X))

    def _challenge(self, rows: FloatArray, terms: Terms) -> bool:
        """Admit a challenger fitted to rows since a change if it explains them; say if it does."""
        sizes = self._sizes(terms, ROOM)
        if len(rows) < FEWEST or sizes is None:
            return False
        half, rule = len(rows) // 2, terms.rule._replace(sizes=sizes[1])
        if not self._loses(_fitted(rows[:half], rule), rows[half:]):
            return False
        self._admit(_fitted(rows, rule), terms)
        return True

    def _learn_before(self, X: FloatArray, terms: Terms) -> None:
        """Let the incumbent learn what came before the change."""
        sizes = self._sizes(terms, self.room)
        if len(X) > 0 and sizes is not None:
            _teach(self.incumbent, X, terms.rule._replace(sizes=sizes[0]))

    def _loses(self, candidate: Training, rows: FloatArray) -> bool:
        """Whether a candidate explains rows better than the root."""
        lowest = -LOWEST * rows.shape[1]
        new, old = (
            np.maximum(joint.log_densities(members, rows)[0], lowest)
            for members in (_members(candidate, 1.0), self.members())
        )
        gain = new - old
        return bool(gain.mean() > ERRORS * _standard_error(gain))

    def _admit(self, challenger: Training, terms: Terms) -> None:
        """Put a challenger beside the incumbent, in the place of an earlier one."""
        if self.challenger is not None and self.challenger.n_records >= (terms.adapt_after or 0):
            self.incumbent = self.challenger
        self.challenger, self.alarm = challenger, Alarm(len(challenger.window))
        self.share, self.unneeded, self.grow_at = KEPT, [challenger.n_records, 0], 0
        self.room = ROOM
        self._make_room(terms)

    def _learn(self, X: FloatArray, terms: Terms, told: Joint) -> None:
        if self.challenger is None:
            self._learn_alone(X, terms, told)
        else:
            self._learn_apart(X, terms, told, self.challenger)

    def _learn_alone(self, X: FloatArray, terms: Terms, told: Joint) -> None:
        evaluated, training = told.evaluated[0], self.incumbent
        if 0 < self.grow_at <= training.n_records:
            grown = room.grow(training, training.scaling.apply(X)[0], terms.rule)
            self.grow_at = 0 if grown else 2 * training.n_records
            evaluated = joint.evaluate(self.members(), X).evaluated[0]
        _teach(training, X, terms.rule, evaluated)

    def _learn_apart(self, X: FloatArray, terms: Terms, told: Joint, challenger: Training) -> None:
        """Let each network learn the records of its regime."""
        new = regimes.probabilities(told.each[:, 1] - told.each[:, 0], 1.0 - self.share)
        is_new, sizes = new > 0.5, self._sizes(terms, self.room)
        share = float(is_new.mean())
        if min(share, 1.0 - share) < NEEDED:
            is_new[:] = share > 0.5
        for i, (training, own) in enumerate([(self.incumbent, ~is_new), (challenger, is_new)]):
            if own.any():
                rule = terms.rule._replace(sizes=sizes[i]) if sizes else terms.rule
                _teach(training, X[own], rule, told.take(i, own))
            self.unneeded[i] = 0 if own.any() else self.unneeded[i] + len(X)
        self._weigh(float(new[-LATEST:].mean()), challenger, terms)
        if self.unneeded[0] >= LASTING:
            self.room = LATE_ROOM
            self._make_room(terms)
        self._retire(challenger, terms)

    def _sizes(self, terms: Terms, share: float) -> tuple[Sizes, Sizes] | None:
        """Return the sizes of both networks, None if the budget is too small for two.

        The incumbent gets this ``share`` of the nodes.
        """
        network, d = self.incumbent.network, len(self.incumbent.window)
        keep_tree = network is not None and room.is_tree_worthwhile(network)
        return room.split(terms.rule.sizes, d, terms.max_nodes, share, keep_tree=keep_tree)

    def _make_room(self, terms: Terms) -> None:
        """Make the incumbent as small as it has to be beside a challenger."""
        sizes = self._sizes(terms, self.room)
        if sizes is not None:
            room.shrink(self.incumbent, sizes[0])

    def _weigh(self, latest: float, challenger: Training, terms: Terms) -> None:
        """Set the shares by the probability of the challenger in the ``latest`` records."""
        least = LEAST
        if challenger.n_records < (terms.adapt_after or 0):
            late = max(self.unneeded[0] - LASTING, 0)
            least = max(LEAST, KEPT * math.exp(-late / FADING))
        self.share = min(max(1.0 - latest, least), 1.0 - LEAST)

    def _retire(self, challenger: Training, terms: Terms) -> None:
        """Remove a network that many records have not needed."""
        limit = terms.adapt_after or 0
        if max(self.unneeded) < limit:
            return
        if self.unneeded[0] >= limit:
            self.incumbent = challenger
        self.challenger, self.share, self.unneeded = None, 1.0, [0, 0]
        self.grow_at = self.incumbent.n_records


def _teach(
    training: Training, X: FloatArray, rule: Rule, evaluated: Evaluated | None = None
) -> None:
    """Let a network learn records, in units that suit them.

    What it says of them is of no use if the units move, or if it sees a field for the first time.
    """
    moved = move_units(training, X)
    of_use = training.scaling.is_complete and not moved
    training.learn(X, rule, evaluated if of_use else None)


def _standard_error(values: FloatArray) -> float:
    """Return that of the mean of successive values (n,), each of which may be like the last one.

    So walks that stay off their mean for some hundred records are no change. The factor is that of
    an autoregressive process of order 1 (Bartlett 1946).
    """
    deviations = values - values.mean()
    total = float((deviations * deviations).sum())
    if total == 0.0:
        return 0.0
    alike = float((deviations[1:] * deviations[:-1]).sum()) / total
    alike = min(max(alike, 0.0), MOST_ALIKE)
    return math.sqrt(total * (1.0 + alike) / (1.0 - alike)) / len(values)


def _fitted(rows: FloatArray, rule: Rule) -> Training:
    training = Training(rows.shape[1])
    training.learn(rows, rule)
    return training


def _members(training: Training, share: float) -> list[Member]:
    network = training.network
    return [] if network is None else [Member(share, network, training.scaling)]
