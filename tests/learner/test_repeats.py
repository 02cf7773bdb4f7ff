"""Runs of equal values: evidence that a field is stuck."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import examples, needs_compiler

from faust_oslrau.learner.scoring.repeats import MEMORY, Repeats

BATCH = 64
SLOTS = 3


def evidence(rows, slots=None, fresh=None, batch=256):
    """Return the evidence (m, d) of a stream that is learned in batches; by default of one slot."""
    slots = np.zeros(len(rows), np.int64) if slots is None else slots
    fresh = np.zeros(len(rows), np.bool_) if fresh is None else fresh
    repeats, found = Repeats(), []
    for start in range(0, len(rows), batch):
        some = slice(start, start + batch)
        found.append(repeats.take(rows[some], slots[some], fresh[some]))
        repeats.end_batch()
    return np.concatenate(found)


def stream(seed, n=400, d=3):
    """Return records of a few values, some missing, of slots that begin anew now and then."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(int(rng.integers(1, 4)), size=(n, d)).astype(float)
    rows[rng.random((n, d)) < 0.1] = np.nan
    return rows, rng.integers(SLOTS, size=n), rng.random(n) < 0.02


def naive(rows, slots, fresh):
    """Follow runs record by record in plain Python; a batch ends after every ``BATCH``."""
    d = rows.shape[1]
    last, runs = {}, {}
    counts, new = [[0.0, 0.0] for _ in range(d)], [[0.0, 0.0] for _ in range(d)]
    result = []
    for i, (row, slot) in enumerate(zip(rows.tolist(), slots.tolist(), strict=True)):
        if fresh[i]:
            last = {key: value for key, value in last.items() if key[0] != slot}
        found = []
        for j, x in enumerate(row):
            if x != x:
                found.append(0.0)
                continue
            runs[slot, j] = runs[slot, j] + 1 if last.get((slot, j)) == x else 0
            last[slot, j] = x
            new[j][0] += 1
            new[j][1] += (runs[slot, j] + 1) ** 2 - runs[slot, j] ** 2
            records, squares = counts[j]
            mean = max(squares / max(records, 1) / 2, 1)
            found.append(max(runs[slot, j] / mean - math.log(d), 0.0))
        result.append(found)
        if (i + 1) % BATCH == 0:
            for j in range(d):
                kept = math.exp(-new[j][0] / MEMORY)
                counts[j] = [kept * a + b for a, b in zip(counts[j], new[j], strict=True)]
                new[j] = [0.0, 0.0]
    return np.array(result)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000))
def test_evidence_is_that_of_runs_in_plain_python(seed):
    rows, slots, fresh = stream(seed)
    found = evidence(rows, slots, fresh, batch=BATCH)
    np.testing.assert_allclose(found, naive(rows, slots, fresh), rtol=1e-9, atol=1e-12)


@needs_compiler("many records")
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.98])
def test_runs_of_values_drawn_anew_are_as_rare_as_their_evidence_says(share):
    """A value stays with probability ``share``: its runs are geometric."""
    rng, n = np.random.default_rng([3, int(100 * share)]), 200_000
    drawn = rng.random((n, 2)) >= share
    rows = np.cumsum(drawn, axis=0).astype(float)
    worst = evidence(rows)[2000:].max(axis=1)
    for nats in (0.5, 2.0, 4.0, 6.0):
        assert (worst >= nats).mean() <= 1.5 * math.exp(-nats)


@needs_compiler("many records")
@pytest.mark.parametrize("values", [2, 5, 50])
def test_independent_discrete_values_are_little_evidence(values):
    rng = np.random.default_rng(values)
    worst = evidence(rng.integers(values, size=(200_000, 3)).astype(float))[2000:].max(axis=1)
    for nats in (0.5, 2.0, 4.0, 6.0):
        assert (worst >= nats).mean() <= 1.2 * math.exp(-nats)


def test_a_value_that_stays_among_others_that_change_is_evidence_of_a_nat_per_record():
    rows = np.random.default_rng(0).normal(size=(2000, 3))
    rows[1800:1900, 1] = 0.1
    found = evidence(rows)
    assert (found[:1800] == 0).all()
    np.testing.assert_allclose(found[1800:1850, 1], np.maximum(np.arange(50) - math.log(3), 0))
    assert (found[:, [0, 2]] == 0).all() and (found[1900:] == 0).all()


@needs_compiler("many records")
def test_a_field_that_is_constant_for_good_is_no_evidence_in_the_long_run():
    rows = np.random.default_rng(1).normal(size=(30_000, 2))
    rows[:, 0] = 5.0  # from the start
    rows[10_000:, 1] = 7.0
    found = evidence(rows)
    assert found[1000:, 0].max() < 4.0
    assert found[10_100:10_200, 1].min() > 50.0
    assert found[13_000:, 1].max() < 8.0
