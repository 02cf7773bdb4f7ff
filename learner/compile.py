"""Preparation of the compiled kernels before records flow."""

from __future__ import annotations

import numpy as np

from .oslrau import OSLRAU
from .scoring.incident import IncidentParameters
from .shares.fixed_share import follow
from .shares.layer import RATES
from .stacked import StackedSPN
from .stream import StreamScorer


def compile_kernels(kind: type[OSLRAU] | type[StackedSPN] = OSLRAU) -> None:
    """Compile the kernels of one kind of learner, or load them from their cache.

    Runs each kernel once on a tiny stream.
    """
    rows = np.random.default_rng(0).normal(size=(1500, 3))
    rows[:, 1] += rows[:, 0]
    rows[5::100, 2] = rows[7::100, 0] = np.nan
    rows[[700, 900], 1] = [8.0, -8.0]
    rows[900, 2] = np.nan
    model = OSLRAU(min_count=8, max_leaf_vars=2) if kind is OSLRAU else kind(memory=2000.0)
    scorer = StreamScorer(
        model, alarm_rate=0.1, transforms={0: "asinh"}, incidents=IncidentParameters()
    )
    for some in np.array_split(rows, [1, 40, 900, 901]):
        scorer.process(some)
    StreamScorer.from_bytes(scorer.to_bytes(), kind).process(rows)
    entities = StreamScorer(kind(), alarm_rate=0.1, max_entities=8, forecasting=True)
    entities.process(rows, [b"%d" % (row % 9) for row in range(len(rows))])
    places = np.column_stack([np.arange(100), 1000 * np.arange(100)])
    layers = StreamScorer(kind(), history=("10",), silences=True, seasons="UTC", forecasting=True)
    layers.process(rows[:100], places=places)
    wide = np.tile(rows[:48], 86)  # more fields than several covariances take
    wide[:20, 0] = np.nan
    kind().partial_fit(wide, batch_size=16)
    model.partial_fit(rows, batch_size=16)
    model.score_samples(rows, variance_floor=1e-3)
    model.contributions(rows)
    model.conditional_quantiles(rows[:20] * np.nan, [0.01, 0.99])
    halves, weight = np.full((1, 2), 0.5), np.ones((len(RATES), 2))
    follow(halves, halves[0], RATES, weight, np.empty((1, 2)))  # as after a sudden change
