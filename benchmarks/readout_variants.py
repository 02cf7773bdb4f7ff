"""Readouts to compare: as it is, with a part left out, and a plain one written anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol, cast
from unittest.mock import patch

import numba
import numpy as np

from faust_oslrau.learner import IncidentParameters, ScoredBlock, StreamScorer
from faust_oslrau.learner.scoring import calibration, evidence, reference
from faust_oslrau.learner.scoring.calibration import Calibration
from faust_oslrau.learner.scoring.neighbours import Neighbours
from faust_oslrau.learner.scoring.ranking import Ranking
from faust_oslrau.learner.scoring.repeats import Repeats
from faust_oslrau.learner.scoring.tail_mass import TailMass

from .datasets import Array
from .detectors import boundaries
from .learners import LEARNERS

AS_IS = "as it is"

FAR = 1 / 5000
"""P-value from which on the plain readout does not learn a record."""

ADAPT_AFTER, RECENT = 512, 8192


class Scorer(Protocol):
    """What gives a stream's scores."""

    def process(self, X: Array) -> ScoredBlock:
        """Score and learn the stream's rows."""


@dataclass(frozen=True)
class Variant:
    """A readout: how to make it, and the attributes to change while it works."""

    name: str
    make: Callable[[], Scorer]
    changes: tuple[tuple[Any, str, Any], ...] = field(default=())

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Change the attributes for some time."""
        with ExitStack() as stack:
            for target, name, value in self.changes:
                stack.enter_context(patch.object(target, name, value))
            yield


def variants(learner: str) -> dict[str, Variant]:
    """Return the readouts by their names, the one that is shipped first."""
    make = LEARNERS[learner]
    whole = partial(new_scorer, make)
    left_out: dict[str, tuple[tuple[Any, str, Any], ...]] = {
        AS_IS: (),
        "no log-density": (without(0),),
        "no nearness": (without(1),),
        "no tail mass": (without(2),),
        "no runs": ((Repeats, "take", no_runs),),
        "equal records do not count": ((reference, "share_alike", none_alike),),
        "no tail": ((calibration, "fit_tail", lambda ascending: None),),
        "tail to the lowest": ((calibration, "TRIMMED", 0),),
        "tail from 256 records on": ((calibration, "FEWEST", 256),),
        "nothing is held back": ((reference, "FAR", 1e-300),),
        "held back at 1e-4": ((reference, "FAR", 1e-4),),
        "held back at 1e-8": ((reference, "FAR", 1e-8),),
        "scores of a young model count": ((reference, "SETTLED", np.inf),),
        "evidence: many records only": horizons(0.5),
        "evidence: few records only": horizons(0.2),
        "evidence: a longer horizon": horizons(0.8),
    }
    found = {name: Variant(name, whole, changes) for name, changes in left_out.items()}
    return found | {"plain": Variant("plain", partial(Plain, make))}


def new_scorer(make: Callable[[], Any]) -> Scorer:
    return StreamScorer(make(), incidents=IncidentParameters())


def without(column: int) -> tuple[Any, str, Any]:
    """Return what leaves a measure out of the score."""

    def score(self: Ranking, measures: Array) -> Array:
        rest = measures.copy()
        rest[:, column : column + 1] = np.nan  # rows that no model measured have one column
        return ranked(self, rest)

    ranked = Ranking.score
    return Ranking, "score", score


def no_runs(self: Repeats, rows: Array, slots: Array, fresh: Array) -> Array:
    return np.zeros(rows.shape)


def none_alike(ascending: Array, mark: Array) -> Array:
    return np.zeros(len(mark))


def horizons(shape: float) -> tuple[tuple[Any, str, Any], ...]:
    """Return what has evidence look twice at one horizon."""
    shapes = np.full(evidence.N, shape)
    anew = numba.njit(evidence.add_up.py_func)  # a compiled kernel keeps the shapes that it had
    constants = {"SHAPES": shapes, "LOG_SHAPES": np.log(shapes), "add_up": anew}
    return tuple((evidence, name, value) for name, value in constants.items())


class Plain:
    """The least that a readout can be: the lowest of three measures, ranked among recent records.

    Records with a p-value of at most ``FAR`` are neither learned nor, if they are few in a batch,
    compared with, until there are ``ADAPT_AFTER`` of them.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.learner, self.mass, self.near, self.units = make(), TailMass(), Neighbours(), Ranking()
        self.measures, self.held = np.empty((0, 3)), np.empty((0, 0))
        self.recent = Calibration(np.empty(0))

    def process(self, X: Array) -> ScoredBlock:
        """Score and learn the stream's rows."""
        p_value = np.full(len(X), np.nan)
        with patch.object(calibration, "FEWEST", np.inf):  # no tail
            for start, stop in boundaries(len(X)):
                rows = np.ascontiguousarray(X[start:stop])
                measures = self.measure(rows) if start > 0 else np.empty((0, 3))
                if start > 0:
                    p_value[start:stop] = self.recent.p_value(self.units.score(measures))
                self.learn(rows, measures, p_value[start:stop])
        found = SimpleNamespace(
            p_value=p_value, log_likelihood=np.full(len(X), np.nan), incidents=()
        )
        return cast(ScoredBlock, found)

    def measure(self, rows: Array) -> Array:
        density = self.learner.evaluate(rows).log_density
        return np.column_stack([density, -self.near.distance(rows), self.mass.log_mass(rows)])

    def learn(self, rows: Array, measures: Array, p_value: Array) -> None:
        far = p_value <= FAR
        self.held = np.concatenate([self.held.reshape(-1, rows.shape[1]), rows[far]])
        usual, is_regime = rows[~far], len(self.held) >= ADAPT_AFTER
        for some in (usual, self.held) if is_regime else (usual,):
            if len(some) > 0:
                self.learner.partial_fit(some)
        if is_regime:
            self.held = self.held[:0]
        self.near.update(usual)
        self.mass.update(self.near.rows, self.near.n)
        if len(measures) > 0:
            self.units.update(measures)
            kept = measures if is_regime or far.mean() >= 1 / 8 else measures[~far]
            self.measures = np.concatenate([self.measures, kept])[-RECENT:]
            self.recent = Calibration(np.sort(self.units.score(self.measures)))
