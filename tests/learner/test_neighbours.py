"""How far records are from recent ones."""

import numpy as np
import pytest
from streams import clusters

from faust_oslrau.learner.scoring import neighbours as of
from faust_oslrau.learner.scoring.neighbours import POOL, Neighbours, in_turn

D = 5
PAST = clusters(81, 2000, D, missing=0.1)
ROWS_NOW = clusters(82, 100, D, missing=0.1)


def neighbours(*batches):
    result = Neighbours()
    for batch in batches:
        result.update(batch)
    return result


@pytest.mark.parametrize("n", [1, 3, 15, 40, 1000])
def test_the_distance_is_the_mean_of_those_to_the_fourth_nearest_of_each_sample(n):
    found = neighbours(PAST[:n])
    deviation, recent = np.nanstd(PAST[:n], axis=0), in_turn(found.rows, n)
    scale = np.divide(1.0, deviation, out=np.zeros(D), where=deviation > 0)
    samples = max(1, len(recent) // of.BLOCK)
    for row, distance in zip(ROWS_NOW, found.distance(ROWS_NOW), strict=True):
        gaps = np.minimum(np.abs(row - recent) * scale, of.FARTHEST)
        gaps = np.where(np.isnan(gaps), 1.0, gaps).sum(axis=1)
        nearest = [np.sort(gaps[first::samples])[: of.RANK][-1] for first in range(samples)]
        assert distance == pytest.approx(np.mean(nearest))


@pytest.mark.parametrize("k", [0, 1, 31, 32, 48, 100, 127, 128, 600, 893, POOL])
def test_rows_are_chosen_evenly_in_whole_samples(k):
    for n in range(k, k + 40):
        chosen = in_turn(np.arange(k)[:, None], n)[:, 0]
        assert len(chosen) == (k if k < of.BLOCK else min(k // of.BLOCK * of.BLOCK, of.ROWS))
        if k >= of.BLOCK:
            assert set(np.diff(chosen)) <= {k // len(chosen), -(-k // len(chosen))}


@pytest.mark.parametrize("batch", [1, 100, 256, 5000])
def test_others_are_taken_evenly_from_all_records_then_from_the_last_8192(batch):
    found = Neighbours()
    for end in range(batch, 12_001, batch):
        found.update(np.arange(end - batch, end, dtype=float)[:, None])
        kept = found.rows[:, 0]
        span = min(end, POOL * of.STRIDE)
        assert min(end, POOL // 2 - 2) <= len(kept) <= POOL
        assert end - kept[0] == pytest.approx(span, rel=0.05)
        assert np.diff([*kept, end]).max() <= 2.7 * span / len(kept)
    for period in range(2, 12):
        turns = np.bincount(kept.astype(int) % period, minlength=period)
        assert turns.min() > 0.7 * len(kept) / period


def test_a_field_that_never_varied_counts_nothing_until_it_does():
    past = np.column_stack([PAST[:, 0], np.full(len(PAST), 7.0)])
    found = neighbours(past[:1000], past[1000:])
    assert found.distance([[0.0, 7.0]] * np.ones((1, 2))) == found.distance(np.array([[0.0, 9.0]]))
    past[::2, 1] = 9.0
    found.update(past)
    assert found.distance(np.array([[0.0, 9.0]])) < found.distance(np.array([[0.0, 8.0]]))


def test_rounding_is_no_variation():
    constant = np.full((300, 1), 0.1)
    assert np.mean(constant) != 0.1  # else this would test nothing
    assert neighbours(constant).variance.tolist() == [0.0]
    assert neighbours(1e300 * constant).variance.tolist() == [0.0]
