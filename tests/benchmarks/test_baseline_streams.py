"""Baselines on streams: nothing is learned before it is scored."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from benchmarks.baseline_streams import stream
from benchmarks.crossval import HONEST_FLOOR, InDataUnits
from benchmarks.datasets import Dataset
from benchmarks.opponents.online import OnePass
from faust_oslrau.learner import OSLRAU

X = np.random.default_rng(0).normal(size=(400, 2))
DATASET = Dataset("some", X, (np.arange(400) % 10 + 1).astype(np.int8))


class Counting:
    """Scores each row by the number of rows learned so far; minus infinity is never wanted."""

    n_nodes_ = n_parameters_ = 1

    def __init__(self, first):
        self.batches = []

    def learn(self, rows):
        self.batches.append(len(rows))

    def density(self):
        return self

    def score_samples(self, rows, *, variance_floor=None):
        assert variance_floor == HONEST_FLOOR
        return np.full(len(rows), float(sum(self.batches)))


def test_a_record_is_scored_by_what_was_learned_before_its_block():
    made = []
    method = OnePass(lambda first: made.append(Counting(first)) or made[-1], 10)
    found = stream(DATASET, "counting", method, X)
    learned = np.repeat([16.0, 48.0, 112.0, 240.0], [32, 64, 128, 160])
    assert found.mean == pytest.approx(learned.mean())
    assert found.best == pytest.approx(np.sort(learned)[3:].mean())
    assert made[0].batches[:3] == [10, 6, 10]


def test_the_floor_of_the_default_network_is_in_the_records_units_and_never_below_its_own():
    rows = X * [1e-3, 1e3]
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    model = OSLRAU(n_init_components=1, background=False, structure_until=0, variance_floor=0.04)
    model.partial_fit(rows, batch_size=400)
    floored = InDataUnits(model).score_samples(rows, variance_floor=1e-4)
    assert_allclose(floored, norm(mean, [0.01, deviation[1]]).logpdf(rows).sum(axis=1))
    model.partial_fit(np.tile(mean, (40_000, 1)))  # variances are now a hundredth
    lower = InDataUnits(model).score_samples(rows, variance_floor=1e-12)
    assert_allclose(lower, norm(mean, 0.2 * deviation).logpdf(rows).sum(axis=1))


def test_every_online_detector_ranks_a_far_record_high():
    for package in ("capymoa", "pysad"):
        pytest.importorskip(package, reason="needs '.[opponents]'")
    from benchmarks.opponents.detectors import METHODS

    stream_of = np.random.default_rng(1).normal(size=(160, 3))
    stream_of[150] = 9.0
    for name, score in METHODS.items():
        if name == "half-space trees":  # which learn 250 records before they score one
            continue
        found = score(stream_of)
        assert found.shape == (160,) and np.mean(found[48:] < found[150]) > 0.9, name
