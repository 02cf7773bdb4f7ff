"""Online detectors of River, PySAD and CapyMOA with their own defaults.

Each scores a record of a stream (n, d) before it learns it, high = anomalous, and returns (n,).
PySAD's are the three with the largest mean area under the ROC curve on the first 600 records of
eleven streams of ``ranking`` with even numbers, among those that take less than 10 ms a record.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from capymoa.anomaly import OnlineIsolationForest
from capymoa.core import Instance
from capymoa.stream import Schema
from pysad.core.base_model import BaseModel
from pysad.models import LODA, ExactStorm, RSHash
from river import anomaly

from benchmarks.datasets import Array
from benchmarks.detectors import half_space_trees

FIRST = 48
"""Records from which RS-Hash takes its ranges; they are not counted in `ranking`."""


def river_loda(x: Array) -> Array:
    detector, score = anomaly.LODA(seed=0), np.zeros(len(x))
    for i, row in enumerate(x.tolist()):
        record = dict(enumerate(row))
        score[i] = detector.score_one(record) if i > 0 else 0.0
        detector.learn_one(record)
    return score


def pysad(make: Callable[[Array], BaseModel]) -> Callable[[Array], Array]:
    """Score by a detector that is made from the first records."""

    def score(x: Array) -> Array:
        detector = make(x[:FIRST])
        return np.nan_to_num([float(detector.fit_score_partial(row)) for row in x])

    return score


def online_isolation_forest(x: Array) -> Array:
    fields = [str(i) for i in range(x.shape[1])]
    schema = Schema.from_custom([*fields, "label"], "label", {"label": ["usual", "unusual"]})
    detector = OnlineIsolationForest(schema, random_seed=0, n_jobs=1)
    score = np.zeros(len(x))
    for i, row in enumerate(x):
        instance = Instance.from_array(schema, row)
        score[i] = detector.score_instance(instance) if i >= FIRST else 0.0
        detector.train(instance)
    return score


METHODS: dict[str, Callable[[Array], Array]] = {
    "half-space trees": half_space_trees,
    "LODA, River": river_loda,
    "LODA, PySAD": pysad(lambda first: LODA(random_state=0)),
    "Exact-STORM": pysad(lambda first: ExactStorm()),
    "RS-Hash": pysad(lambda first: RSHash(first.min(axis=0), first.max(axis=0), random_state=0)),
    "Online-iForest": online_isolation_forest,
}
