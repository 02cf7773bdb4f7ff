"""What keeps a state and goes on from it: models of every kind, and scorers with every layer.

`test_contract.py` holds all of them against the same promises. Scorers are given one stream that
has something for each layer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from streams import clusters

from faust_oslrau.learner import (
    OSLRAU,
    CategoricalDensity,
    EntityDensity,
    IncidentParameters,
    StreamScorer,
)
from faust_oslrau.learner.scoring.block import ScoredBlock

N, PER_DAY, QUARTER = 2000, 96, 900_000
CATEGORY, COUNTER = 3, 4
"""Columns of the stream beside its three numbers."""

STUCK, FAULT, CHANGE = slice(1100, 1180), slice(1330, 1370), slice(1500, 1900)
"""When a field stays as it is, values are far off, and fields depend on each other otherwise."""

SURGE = slice(1000, 1096)
"""When a record comes each minute, not each quarter of an hour."""


def _stream():
    """Return rows with a daily pattern, their entities, and their offsets and time stamps."""
    rng, number = np.random.default_rng(8), np.arange(N)
    who = number % 6
    who[(who == 3) & (number > 800) & (number < 1400)] = 2  # silent for a while
    who[1420:1480] = np.arange(6, 66)  # so many that others give way
    keys = [[b"", b"x" * 300, "saw", 7, b"\xff", None, b"m-%d" % at][min(at, 6)] for at in who]
    rows = np.column_stack([rng.normal(size=(N, 3)), number % 5 // 2, number])
    rows[:, 0] += who % 6
    sign = np.where(np.isin(number, number[CHANGE]), -2.0, 2.0)
    rows[:, 1] = sign * rows[:, 0] + 0.5 * rows[:, 1]
    rows[:, 2] += 12.0 * np.sin(2 * np.pi * number / PER_DAY)
    rows[STUCK, 2] = 0.25
    rows[who == 4, 2] *= 0.02  # an unusual entity
    rows[FAULT, :2] += 300.0
    rows[:, :4][rng.random((N, 4)) < 0.03] = np.nan
    rows[[5, 900], :4] = np.nan
    times = 1_772_406_000_000 + QUARTER * number + rng.integers(60_000, size=N)
    times[600:] += 20 * QUARTER
    times -= (QUARTER - 60_000) * np.clip(number - SURGE.start, 0, SURGE.stop - SURGE.start)
    times[::50] = -1
    times[1250:1255] = times[1250:1255][::-1]
    return rows, keys, np.column_stack([3 * number, times])


ROWS, KEYS, PLACES = _stream()


@dataclass(frozen=True)
class Scorer:
    """A `StreamScorer` on some columns of the stream; ``later`` is what its state does not hold."""

    learner: Callable[[], Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    columns: tuple[int, ...] = (0, 1, 2)
    later: dict[str, Any] = field(default_factory=dict)
    kind: ClassVar = "StreamScorer"
    n: ClassVar = N
    batch: ClassVar = 1

    def new(self):
        return StreamScorer(self.learner(), alarm_rate=0.02, **self.parameters, **self.later)

    def read(self, state):
        scorer = StreamScorer.from_bytes(state)
        for name, value in self.later.items():
            setattr(scorer, name, value)
        return scorer

    def go_on(self, scorer, some):
        """Process some rows of the stream; return the block with its place in the stream."""
        keys = KEYS[some] if "max_entities" in self.parameters else None
        block = scorer.process(ROWS[some][:, self.columns], keys, PLACES[some])
        known = block.n_learned > 0
        assert np.isfinite(block.log_likelihood[known]).all()
        return some.start, block

    def answers(self, _, said):
        """Return all that the blocks say, to the bit, as if they were one."""
        return {
            each.name: _joined([(start, getattr(block, each.name)) for start, block in said])
            for each in fields(ScoredBlock)
            if not each.name.endswith("_seconds")
        }


def _joined(parts):
    """Join what blocks say of one thing: arrays by row, events by their place in the stream."""
    first = parts[0][1]
    if isinstance(first, np.ndarray):
        return exact(np.concatenate([part for _, part in parts]))
    if hasattr(first, "_fields"):
        return [_joined([(0, getattr(part, name)) for _, part in parts]) for name in first._fields]
    if isinstance(first, int):
        return sum(part for _, part in parts)
    if isinstance(first, tuple):
        return [(start + event[0], exact(event[1:])) for start, part in parts for event in part]
    return exact(parts[-1][1])


def exact(said):
    """Return anything in a form that is equal where all bits are, but for those of NaN."""
    if isinstance(said, np.ndarray):
        return said.shape, np.where(said == said, said, np.nan).tobytes()
    if is_dataclass(said):
        return [exact(getattr(said, each.name)) for each in fields(said)]
    return [exact(each) for each in said] if isinstance(said, tuple) else repr(said)


@dataclass(frozen=True)
class Model:
    """A model of rows, learned in mini-batches; ``keys`` are entities, where it has any."""

    new: Callable[[], Any]
    rows: np.ndarray
    batch: int = 256
    keys: Any = None
    wide: bool = False
    """Whether a block of fields has three of them, so that few fields count as many."""

    @property
    def kind(self):
        return type(self.new()).__name__

    @property
    def n(self):
        return len(self.rows)

    def read(self, state):
        return type(self.new()).from_bytes(state)

    def _given(self, some):
        return (self.rows[some],) if self.keys is None else (self.rows[some], self.keys[some])

    def go_on(self, model, some):
        if some.stop > some.start:
            model.partial_fit(*self._given(some), batch_size=self.batch)
            asked = self._given(slice(max(0, some.stop - 20), some.stop))
            assert np.isfinite(model.score_samples(*asked)).all()

    def answers(self, model, _):
        asked = self._given(slice(0, 60))
        return exact((model.score_samples(*asked), model.impute(*asked), model.n_records_))


ENTITIES = {"max_entities": 40, "max_former_entities": 30, "entity_events": ["new", "unusual"]}
LAYERS = {
    "history": ("10", "30m"), "seasons": "Europe/Berlin", "silences": True, "rates": 3600.0,
}  # fmt: skip
INCIDENTS = {"incidents": IncidentParameters(quiet_records=60)}
RELEVANCE = {"directions": {1: "high"}, "least": {0: 1.5}}
FORECASTS = {"forecasting": True}
SMALL = partial(OSLRAU, min_count=32)
WITH_MIXTURES = partial(OSLRAU, mixtures=True)
MIXTURES = partial(WITH_MIXTURES, min_count=32, max_nodes=400)

SCORERS = {
    "plain": Scorer(SMALL),
    "small batches": Scorer(SMALL, {"batch_size": 40, "adapt_after": 20}),
    "forgetting": Scorer(partial(OSLRAU, memory=300.0, max_nodes=120)),
    "transforms": Scorer(SMALL, {"transforms": {0: "asinh", 3: "count"}}, (0, 1, 2, 3), FORECASTS),
    "mixtures": Scorer(MIXTURES, later=FORECASTS),
    "incidents": Scorer(SMALL, INCIDENTS),
    "relevance": Scorer(SMALL, RELEVANCE | INCIDENTS),
    "silences": Scorer(SMALL, {"silences": True}),
    "history": Scorer(SMALL, {"history": ("10", "30m")}, later=FORECASTS),
    "seasons": Scorer(SMALL, {"seasons": "UTC", "batch_size": 64}, later=FORECASTS),
    "categories": Scorer(
        SMALL, {"n_categories": 2} | INCIDENTS, (0, 1, 2, CATEGORY, COUNTER), FORECASTS
    ),
    "categories and seasons": Scorer(
        SMALL, {"n_categories": 2, "seasons": "Europe/Berlin"}, (0, 1, 2, CATEGORY, COUNTER)
    ),
    "categories of entities": Scorer(
        MIXTURES,
        ENTITIES | INCIDENTS | {"history": ("10",), "n_categories": 1},
        (0, 1, 2, CATEGORY),
        FORECASTS,
    ),
    "categories alone": Scorer(
        SMALL,
        ENTITIES | INCIDENTS | {"history": ("10",), "n_categories": 1},
        (CATEGORY,),
        FORECASTS,
    ),
    "entities": Scorer(SMALL, ENTITIES, later=FORECASTS),
    "few entities": Scorer(SMALL, {"max_entities": 2, "max_former_entities": 0}),
    "all but entities": Scorer(SMALL, LAYERS | INCIDENTS),
    "all": Scorer(SMALL, ENTITIES | LAYERS | INCIDENTS | RELEVANCE, later=FORECASTS),
    "all with mixtures": Scorer(MIXTURES, ENTITIES | LAYERS | INCIDENTS, later=FORECASTS),
}


def _moving():
    """Return rows of mixtures in mixtures whose relations change, so that parts of them go."""
    rng, stretches = np.random.default_rng(0), []
    for i in range(40):
        rows = rng.normal(size=(128, 6)) + rng.integers(3, size=(128, 1)) * rng.normal(0, 4, 6)
        rows[:, 1] = rows[:, 0] * rng.choice([-1, 1]) + rows[:, 1] / 5
        stretches.append(rows + 10 * (i // 8))
    return np.concatenate(stretches)


def _apart():
    """Return rows of 40 groups, each far from the others."""
    rng = np.random.default_rng(1)
    rows = 10.0 * rng.normal(size=(40, 3))[rng.integers(40, size=3000)]
    return rows + 0.1 * rng.normal(size=rows.shape)


FEW = {"max_nodes": 150, "min_count": 12, "merges_per_batch": 4, "max_leaf_vars": 2}
FORGETTING = partial(OSLRAU, memory=400, **FEW)
CLUSTERS = clusters(21, 1200, 4, missing=0.05)
CHANGED = np.concatenate([clusters(9, 1000, 12, missing=0.02), 4.0 + clusters(9, 1500, 12)])
UNSEEN = CLUSTERS * [1.0, np.nan, 1.0, 1.0]
WIDE = clusters(5, 900, 7, missing=0.05)
OF = [b"m-%d" % at for at in np.random.default_rng(1).integers(30, size=len(CLUSTERS))]
MIXED = np.column_stack([CLUSTERS[:, :2], np.floor(CLUSTERS[:, 2:])])

MODELS = {
    "OSLRAU": Model(SMALL, CLUSTERS, 30),
    "OSLRAU of single leaves": Model(partial(SMALL, max_leaf_vars=0), CLUSTERS, 30),
    "OSLRAU of one component": Model(partial(SMALL, n_init_components=1), CLUSTERS, 30),
    "OSLRAU of many components": Model(
        partial(OSLRAU, max_leaf_vars=0, n_init_components=40), _apart(), 100
    ),
    "OSLRAU that ends early": Model(partial(OSLRAU, structure_until=333), CLUSTERS, 30),
    "OSLRAU that forgets": Model(partial(FORGETTING, max_leaf_vars=0), _moving(), 128),
    "OSLRAU that forgets wide leaves": Model(FORGETTING, _moving(), 128),
    "OSLRAU of many fields": Model(SMALL, WIDE, 50, wide=True),
    "OSLRAU of a field never seen": Model(SMALL, UNSEEN, 100),
    "mixtures of OSLRAU": Model(WITH_MIXTURES, CHANGED),
    "mixtures of OSLRAU that forgets": Model(partial(MIXTURES, memory=400.0), CHANGED),
    "mixtures of OSLRAU of a field never seen": Model(MIXTURES, UNSEEN, 100),
    "EntityDensity": Model(partial(EntityDensity, SMALL()), CLUSTERS, 100, OF),
    "EntityDensity of few records": Model(partial(EntityDensity, SMALL()), CLUSTERS[:230], 230, OF),
    "EntityDensity of few entities": Model(
        partial(EntityDensity, SMALL(), max_entities=20, max_former_entities=5), CLUSTERS, 100, OF
    ),
    "CategoricalDensity": Model(partial(CategoricalDensity, SMALL(), n_categories=2), MIXED, 100),
    "CategoricalDensity of categories alone": Model(
        partial(CategoricalDensity, SMALL(), n_categories=2), MIXED[:, -2:], 100
    ),
    "EntityDensity of mixtures": Model(partial(EntityDensity, MIXTURES()), CLUSTERS, 100, OF),
}

SUBJECTS: dict[str, Scorer | Model] = SCORERS | MODELS
