"""Entities: rows in units of their own entity, with exact densities in the fields' units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.keys import Key
from faust_oslrau.learner.protocol import InUnits, Measured, Predictive, Which
from faust_oslrau.learner.queries.scaling import Scaling
from faust_oslrau.learner.scoring.blame import Blame
from faust_oslrau.learner.scoring.entity_events import EntityProfile
from faust_oslrau.learner.state_schema import LARGEST, POSITIVE, Entry, counts, expect, flags, read
from faust_oslrau.learner.stored import SLOTS, Places, Stored

from . import population, profiles
from .age_scores import AgeScores
from .habits import Habits
from .levels import B0, LARGEST_VALUE, MEMORY, NU, TAU2, in_own_units, restored, standardise
from .memory import FOLLOWED, Memories
from .mixed_density import Sampled
from .population import YOUNG
from .roster import FormerEntities, Newcomer, Roster, stored
from .watch import Watch

Others = tuple[FloatArray, FloatArray, FloatArray]

SWEEPS = 3
"""Times that rows are learned anew, each time with what those before say that entities are like."""

_FIRST = {"first": counts("m"), "first_fresh": flags("m")}


class Entities(Stored):
    """The level and scale of each entity in each field, and how its fields go together.

    An entity's own statistics are context: they change with each of its records, after the record
    was predicted, whether it is learned or not. What entities are like changes in ``update`` alone,
    which the scorer calls at learning boundaries.

    Parameters
    ----------
    limit
        Most entities at a time; the one not seen for longest gives way.
    former_limit
        Most entities that gave way of which levels and scales are kept.

    Attributes
    ----------
    watch
        What tells of entities that are new or unusual as a whole; None if nothing does.
    """

    schema: ClassVar = {
        "_levels": Entry((SLOTS, "d"), -(LARGEST_VALUE**2), LARGEST_VALUE**2),
        "_statistics": Entry((SLOTS, "d", 2), 0.0, dtype="<f4"),
        "_reference": Entry((2, "d"), [[-LARGEST], [POSITIVE]], nan=True, field=np.nan),
        "_population": Entry(
            (5, "d"), -LARGEST_VALUE, LARGEST_VALUE**2, field=population.first_population(1)
        ),
        "_records": counts(1),
        "_young_until": counts(1),
        "_unmet": Entry(("r", "w"), nan=True, field=np.nan),
        "_unmet_slots": counts("r"),
        "_unmet_fresh": flags("r"),
    }
    prefix = "entity_"

    def __init__(self, limit: int, former_limit: int = 0) -> None:
        self.watch = Watch(())
        self.roster = Roster(limit)
        self.former = FormerEntities(former_limit)
        self._levels = np.empty((0, 0))
        self._statistics = np.empty((0, 0, 2), np.float32)
        self._memories = Memories()
        self._reference = np.empty((2, 0))
        self._unmet = np.empty((0, 0))  # rows since the last boundary, if fields have no units yet
        self._unmet_slots, self._unmet_fresh = np.empty(0, np.int64), np.empty(0, np.bool_)
        self._population = np.empty((5, 0))
        self._habits = Habits()
        self._scores = AgeScores()
        self._slots, self._fresh = np.empty(0, np.int64), np.empty(0, np.bool_)
        self._back: set[int] = set()  # rows of the last call whose entities came back
        self._records = 0
        self._young_until = YOUNG

    @property
    def has_begun(self) -> bool:
        """Whether rows have units: from the first learning boundary on."""
        return self._reference.size > 0

    def take(self, rows: FloatArray, keys: Sequence[Key], slots: IntArray, fresh: Mask) -> InUnits:
        """Return the next rows (m, d) in units of their entities, and add them to these.

        ``slots`` and ``fresh`` (m,) are those of the roster for their ``keys``. Until the first
        learning boundary rows are as they are.
        """
        self._back.clear()
        if not self.has_begun:
            self._slots = np.concatenate([self._slots, slots])
            self._fresh = np.concatenate([self._fresh, fresh])
            own = InUnits(rows, np.zeros(len(rows)), np.ones((*rows.shape, 3)))
        else:
            self._slots, self._fresh = slots, fresh
            own = self._standardised(rows, self.roster.newcomers)
        if self.watch.events:
            self.watch.take(slots, keys, self.roster.newcomers, self._back, self._records)
        return own

    @property
    def latest(self) -> tuple[IntArray, Mask]:
        """The slots (m,) of the rows that have units since the last call, and which are new there.

        After ``begin``, those of the stream's first rows.
        """
        return self._slots, self._fresh

    def begin(self, rows: FloatArray) -> FloatArray:
        """Learn the units of the stream from its first rows (m, d); return these in own units."""
        d = rows.shape[1]
        self._reference = Scaling.of_rows(rows).units
        self._unmet = np.empty((0, d))
        self._population = population.first_population(d)
        self._memories.begin(d)
        return self._standardised(rows, []).rows

    def _standardised(self, rows: FloatArray, newcomers: list[Newcomer]) -> InUnits:
        m, d = rows.shape
        self._reserve(d)
        own = InUnits(np.empty((m, d)), np.empty(m), np.empty((m, d, 3)))
        blank, start = self._fresh.copy(), 0
        if len(self.former) > 0 or any(newcomer.gone for newcomer in newcomers):
            for newcomer in newcomers:
                self._standardise(rows, blank, own, slice(start, newcomer.row))
                self._exchange(newcomer, blank)
                start = newcomer.row
        self._standardise(rows, blank, own, slice(start, m))
        self._memories.compare(rows, self._slots, self._fresh, own.units, self._reference)
        if np.isnan(self._reference).any():
            self._unmet = np.concatenate([self._unmet, rows])
            self._unmet_slots = np.concatenate([self._unmet_slots, self._slots])
            self._unmet_fresh = np.concatenate([self._unmet_fresh, self._fresh])
        return own

    def _standardise(self, rows: FloatArray, blank: Mask, own: InUnits, at: slice) -> None:
        standardise(
            rows[at], self._slots[at], blank[at], self._levels, self._statistics,
            self._population, self._reference, own.rows[at], own.log_jacobian[at], own.units[at],
        )  # fmt: skip

    def _exchange(self, newcomer: Newcomer, blank: Mask) -> None:
        """Keep the levels of the entity that gives way; restore those of one that comes back."""
        slot, back = self._slots[newcomer.row], self.former.take(newcomer.key)
        for key in newcomer.gone:
            self.former.add(key, self._levels[slot], self._statistics[slot])
        if back is not None:
            self._levels[slot], self._statistics[slot] = back
            blank[newcomer.row] = False
            self._back.add(newcomer.row)

    def _reserve(self, d: int) -> None:
        """Make room for all entities, in steps that double it."""
        if len(self._levels) < len(self.roster):
            room = min(2 * len(self.roster), self.roster.limit)
            self.reserve(room, d=d)
            self._scores.reserve(room)
            self._memories.reserve(min(room, FOLLOWED), d=d)

    def ahead(self, rows: FloatArray, keys: Sequence[Key]) -> tuple[Entities, InUnits]:
        """Return rows (m, d) in units of their entities, each as the next one of its entity.

        Nothing here changes. The layer that is returned has taken the rows: row r is in slot r.
        """
        slots, m = self.slots(keys), len(rows)
        at = np.maximum(slots, 0)
        found = Entities(max(m, 1))
        found._levels, found._statistics = self._levels[at], self._statistics[at]
        found._slots, found._fresh = np.arange(m), slots < 0
        found._reference, found._population = self._reference, self._population
        found._habits = self._habits.ahead(at)
        blank = found._fresh.copy()
        for row in np.flatnonzero(blank).tolist():
            former = self.former.find(stored(keys[row]))
            if former is not None:
                found._levels[row], found._statistics[row] = former
                blank[row] = False
        own = InUnits(np.empty(rows.shape), np.empty(m), np.empty((*rows.shape, 3)))
        found._standardise(rows, blank, own, slice(0, m))
        return found, own

    def mix(self, rows: FloatArray, network: Measured) -> Measured:
        """Return the density of the rows (m, d) taken last, in their own units.

        That of the ``network``, mixed with those of what is usual for each entity.
        """
        return self._habits.mix(rows, self._slots, self._fresh, network, len(self._levels))

    @property
    def has_habits(self) -> bool:
        """Whether densities are mixed: from the first kinds on."""
        return self._habits.has_begun

    def conditionals(self, network: Predictive, which: Which) -> Predictive:
        """Return the mixed densities of some of the rows (m,) taken last, to compare fields."""
        return self._habits.conditionals(network, which)

    def draw(self, network: Sampled, own: InUnits, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw ``n`` rows (n, d) with the observed fields of the one row mixed last.

        ``own`` is that row; those drawn are in the units that it had before `take`.
        """
        drawn = self._habits.draw(network, own.rows[0], n, rng)
        return self._restored(drawn, np.repeat(own.units, n, axis=0))[0]

    def learn(self, rows: FloatArray, usual: Mask) -> None:
        """Learn at a boundary how the fields of the ``usual`` (m,) of its rows go together."""
        self._habits.learn(rows, usual)

    def relate(self, score: FloatArray) -> FloatArray:
        """Return the scores (m,) of the rows taken last in units of their entities' ages."""
        return self._scores.relate(score, self._slots, self._fresh)

    def begin_anew(self) -> None:
        """Forget what rests on the network's units, which have changed."""
        self._habits, self._scores = Habits(), AgeScores()
        self._scores.reserve(len(self._levels))

    def revisit(self, slots: IntArray, fresh: Mask) -> None:
        """Take rows of entities ``slots`` (m,) as the latest; ``fresh`` (m,) began anew there."""
        self._slots, self._fresh = slots, fresh

    def update(self, n: int, alarm_rate: float, *, learning: bool) -> None:
        """End a learning batch after ``n`` records: estimate what entities are like.

        The watch finds an entity unusual up to a p-value of ``alarm_rate``.
        """
        before, self._records = self._records, n
        if len(self._unmet) > 0:
            self._meet()
        self._habits.end_batch()
        self._scores.end_batch(learning=learning)
        if learning and (n <= self._young_until or n // YOUNG > before // YOUNG):
            some = population.sampled(len(self.roster))
            self._population = population.estimate(
                self._levels[some], self._statistics[some], self._population
            )
            self._population[MEMORY] = self._memories.best()
            if self.watch.events:
                profiles.compare(self.watch, self.known, some)
        if self.watch.is_due(before, n):
            profiles.judge(self.watch, self.known, alarm_rate)

    def learn_anew(self, rows: FloatArray, slots: IntArray, fresh: Mask, which: Mask) -> FloatArray:
        """Learn levels of some fields (d,) anew from rows (m, d), as their units have changed.

        The rows are of entities ``slots`` (m,), ``fresh`` (m,) says which began anew there. Return
        them in own units, the other fields missing.
        """
        found = Scaling.of_rows(rows).units
        which = which & ~np.isnan(found[0])
        self._reference[:, which] = found[:, which]
        self._levels[:, which], self._statistics[:, which] = 0.0, 0.0
        self._population[:, which] = population.first_population(1)
        self._population[MEMORY, which] = self._memories.best()[which]
        self.former.forget_fields(which)
        result, some = np.full(rows.shape, np.nan), population.sampled(len(self.roster))
        for _ in range(SWEEPS):  # in units of the prior, rows to come would be unusual
            estimated = population.estimate(
                self._levels[some], self._statistics[some], self._population
            )
            self._population[:, which] = estimated[:, which]
            self._levels[:, which], self._statistics[:, which] = 0.0, 0.0
            result[:, which] = self._learn_levels(rows, slots, fresh, which)
        return result

    def _learn_levels(
        self, rows: FloatArray, slots: IntArray, fresh: Mask, which: Mask
    ) -> FloatArray:
        """Learn rows (m, d) in some of their fields (d,), and return these in own units."""
        X, means, own, of_all, reference = (
            array.compress(which, axis=1)  # kernels are compiled for arrays in this order
            for array in (rows, self._levels, self._statistics, self._population, self._reference)
        )
        result = np.empty(X.shape)
        standardise(
            X, slots, fresh, means, own, of_all, reference,
            result, np.empty(len(X)), np.empty((*X.shape, 3)),
        )  # fmt: skip
        self._levels[:, which], self._statistics[:, which] = means, own
        self._young_until = self._records + YOUNG
        return result

    def _meet(self) -> None:
        """Learn units and levels of fields that came since the last boundary, and are missing yet.

        In units of the prior they would seem to change once it is known what entities are like.
        """
        found = Scaling.of_rows(self._unmet).units
        new = np.isnan(self._reference[0]) & ~np.isnan(found[0])
        if new.any():
            self._reference[:, new] = found[:, new]
            self._learn_levels(self._unmet, self._unmet_slots, self._unmet_fresh, new)
        none = slice(0)
        self._unmet = self._unmet[none]
        self._unmet_slots, self._unmet_fresh = self._unmet_slots[none], self._unmet_fresh[none]

    def add_fields(self, places: Places) -> None:
        """Make room for more fields, of which nothing is known of any entity."""
        super().add_fields(places)
        for part in (self._memories, self._habits, self.former, self.watch):
            part.add_fields(places)

    @property
    def known(self) -> profiles.Known:
        """What is known of each entity, and of all; once ``has_begun``."""
        return profiles.Known(
            self._levels, self._statistics, self._population, self._reference, self._habits
        )

    def profile(self, key: Key) -> EntityProfile | None:
        """Return what is known of an entity, in units of the rows that ``take`` is given.

        None before the first learning boundary, and of an entity that is not known.
        """
        slot = self.roster.find(key)
        if slot is None or slot >= len(self._levels):
            return None
        return profiles.profile(self.watch, self.known, slot)

    def undo_blame(self, blame: Blame, units: FloatArray) -> Blame:
        """Return the blame of rows in own units in the units that they had before.

        An expected value is what is usual for its entity. ``units`` (k, d, 3) are those of `take`.
        """
        value, at_value = self._restored(blame.value, units)
        expected, at_mean = self._restored(blame.expected, units)
        return blame._replace(
            value=value, nats=blame.nats - at_value, usual=blame.usual - at_mean,
            expected=expected, deviation=blame.deviation * np.exp(-at_mean),
        )  # fmt: skip

    def slots(self, keys: Sequence[Key]) -> IntArray:
        """Return the slots (k,) of entities, -1 for one that is not known."""
        found = [self.roster.find(key) for key in keys]
        return np.array([-1 if slot is None else slot for slot in found], np.int64)

    def again(self, rows: FloatArray, units: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rows (m, d) in own ``units`` (m, d, 3), and the sums (m,) of their log-slopes."""
        return in_own_units(rows, units, self._reference)

    def undo(self, rows: FloatArray, units: FloatArray) -> FloatArray:
        """Return rows (m, d) in own units in the units that they had before."""
        return self._restored(rows, units)[0]

    def undo_others(self, others: Others, rows: FloatArray, units: FloatArray) -> Others:
        """Return what fields of rows (m, d) in own units say of each other, in the fields' units.

        ``units`` (m, d, 3) are those of `take`.
        """
        nats, mean, deviation = others
        _, at_value = self._restored(rows, units)
        expected, at_mean = self._restored(mean, units)
        return nats - at_value, expected, deviation * np.exp(-at_mean)

    def _restored(self, U: FloatArray, units: FloatArray) -> tuple[FloatArray, FloatArray]:
        return restored(U, units, self._reference)

    def state(self, slots: int | None = None) -> Arrays:
        """Return all that ``restore`` needs, as arrays."""
        k, first = len(self.roster), 0 if self.has_begun else None
        return {
            **self.roster.state(),
            **super().state(k),
            "entity_first": self._slots[:first],
            "entity_first_fresh": self._fresh[:first].astype(np.uint8),
            **self._memories.state(k),
            **self._scores.state(k),
            **self._habits.state(k),
            **self.former.state(),
            **(self.watch.state(k) if self.watch.events else {}),
        }

    def restore(self, arrays: Arrays, d: int | None, pending: int, scored: int) -> None:
        """Restore a state; StateError if it cannot be one.

        Of rows of ``d`` fields, ``pending`` of which wait for the next boundary; ``scored`` of
        these have a score.
        """
        self.roster.restore(arrays)
        self._reference = arrays["entity_reference"]
        held, width, first = len(self.roster), d or 0, 0
        if not self.has_begun:
            held, width, first, scored = 0, 0, pending, 0
        self.read_state(arrays, slots=held, d=width, r=range(pending + 1), w=(0, width))
        self._slots, self._fresh = read(arrays, _FIRST, self.prefix, m=first)
        expect((self._slots < len(self.roster)).all(), "entities of the first records")
        location, scale = np.isnan(self._reference)
        expect((location == scale).all(), "a location and a scale of each field")
        # else scores would be no numbers
        least = np.array([[POSITIVE], *3 * [[population.SMALLEST_VARIANCE]]])
        enough = self._population[[B0, NU, TAU2, MEMORY]] >= least
        expect(enough.all(), "variances of entities that there can be")
        self._memories.restore(arrays, width, held)
        self._scores.restore(arrays, held)
        self._habits.restore(arrays, width, held, scored)
        self.former.restore(arrays, width)
        if self.watch.events:
            self.watch.restore(arrays, width, len(self.roster))
