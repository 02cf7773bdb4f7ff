"""A change of the stream is told once; noise, dependence and a better model are none."""

import numpy as np
import pytest
from interpreter import needs_compiler

from faust_oslrau.learner.scoring.drift import Drift

BATCH = 256


def changes(scores, batch=BATCH):
    """Return the record after which each change was told, and its records."""
    drift = Drift()
    found = []
    for start in range(0, len(scores), batch):
        change = drift.update(scores[start : start + batch])
        if change:
            found.append((start + batch, change.records))
            assert change.statistic >= 1.0 > drift.statistic == 0.0
    return found


def normal(seed, n, mean=0.0):
    return np.random.default_rng(seed).normal(mean, size=n)


STATIONARY = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy": lambda rng, n: -rng.pareto(1.1, n),
    "atoms": lambda rng, n: rng.choice([-1.0, -2.0, -9.0], n, p=[0.7, 0.28, 0.02]),
    "runs of 100 alike": lambda rng, n: np.repeat(rng.normal(size=n // 100), 100),
}


@needs_compiler("a million scores")
@pytest.mark.parametrize("name", STATIONARY)
def test_a_stationary_stream_of_a_million_records_has_no_drift(name):
    assert changes(STATIONARY[name](np.random.default_rng(1), 1_000_000)) == []


def test_a_gradual_change_is_told():
    scores = normal(4, 100_000) - np.clip(np.arange(100_000) - 50_000, 0, 20_000) / 20_000
    found = changes(scores)
    assert 50_000 < found[0][0] < 60_000


def test_scores_that_rise_are_no_drift_but_the_new_measure_of_later_ones():
    scores = np.concatenate([normal(5, 20_000), normal(6, 20_000, 3.0), normal(7, 5000, 2.0)])
    ((at, _),) = changes(scores)
    assert at > 40_000


def test_single_scores_however_low_are_no_drift():
    scores = normal(8, 100_000)
    scores[::500] = -1e12
    assert changes(scores) == []


def test_each_of_several_changes_for_good_is_told_once_within_a_few_batches():
    scores = np.concatenate([normal(9 + i, 20_000, -1.0 * i) for i in range(4)])
    found = changes(scores)
    assert [at // 20_000 for at, _ in found] == [1, 2, 3]
    for at, records in found:
        change = at // 20_000 * 20_000
        assert at <= change + 3 * BATCH and abs(at - records - change) <= 2 * BATCH
