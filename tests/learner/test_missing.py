"""Records with missing fields have p-values like complete ones."""

import numpy as np
import pytest
from interpreter import needs_compiler
from streams import clusters

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.scoring.missing import (
    LOSSES_PER_BATCH,
    MEASURED_ROWS,
    WIDEST,
    Missing,
    most_complete,
    stretch,
)

N, D = 24_000, 6
COMPLETE = clusters(51, N, D)


def p_values(rows):
    return StreamScorer(OSLRAU()).process(rows).p_value


def rates(p_value):
    return [(p_value <= rate).mean() / rate for rate in (0.5, 0.1)]


@needs_compiler("24,000 records")
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_p_values_of_records_with_gaps_are_uniform_too(share):
    rows = COMPLETE.copy()
    rows[np.random.default_rng(1).random(rows.shape) < share] = np.nan
    late, lacking = np.arange(N) > 8192, np.isnan(rows).sum(axis=1)
    p_value = p_values(rows)
    assert rates(p_value[late & (lacking == 1)]) == pytest.approx([1, 1], abs=0.25)
    assert rates(p_value[late & (lacking > 0)]) == pytest.approx([1, 1], abs=0.25)


@needs_compiler("96,000 records")
def test_a_field_that_is_gone_at_once_makes_no_difference_from_its_first_record_on():
    rows = COMPLETE.copy()
    rows[16_000:, 2] = np.nan
    shares = [0.1, 0.25, 0.5, 0.75]
    for half in (slice(16_000, 16_500), slice(16_500, N)):
        complete, lacking = (np.quantile(p_values(x)[half], shares) for x in (COMPLETE, rows))
        np.testing.assert_allclose(lacking, complete, atol=0.1)


@needs_compiler("24,000 records")
def test_an_anomaly_is_one_without_some_fields_too():
    rows = COMPLETE.copy()
    odd = np.arange(16_000, N, 500)
    rows[odd, 0] += 60.0
    rows[odd, 1:3] = np.nan
    block = StreamScorer(OSLRAU(), alarm_rate=0.01).process(rows)
    assert block.is_anomaly[odd].mean() > 0.95
    assert (block.blame.order[np.isin(np.flatnonzero(block.is_anomaly), odd), 0] == 0).mean() > 0.95


def test_complete_records_keep_their_bits_and_cost_nothing():
    missing = Missing()
    missing.update(COMPLETE[:100], 100)
    measures = np.arange(50.0)[:, None]

    def never(rows):
        raise AssertionError("nothing is to be measured")

    assert missing.complete(COMPLETE[:50], measures, never) is measures


def test_of_independent_gaussians_the_loss_is_the_density_of_the_fields_left_out():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 3)) * [1.0, 10.0, 0.1]
    model = OSLRAU().partial_fit(X, batch_size=256)
    missing = Missing()
    missing.update(X[:256], 256)
    rows = X[:1].copy()
    rows[0, 1] = np.nan

    def measure(rows):
        return model.evaluate(rows).measures

    measures = measure(rows)
    (found,) = missing.complete(rows, measures, measure)
    loss = -np.log(10.0) - 0.5 * np.log(2 * np.pi * np.e)
    assert found == pytest.approx(measures[0] + loss, abs=0.3)


def test_few_losses_are_measured_at_a_time_and_others_estimated_from_them():
    rng = np.random.default_rng(3)
    worth = np.array([[1.0, -2.0, 0.5, 3.0, 0.0, -1.0], [0.5, 0.5, 1.0, 1.0, 2.0, 2.0]]).T
    calls = []

    def measure(rows):
        calls.append(len(rows))
        return np.where(np.isnan(rows), 0.0, 1.0) @ worth

    missing = Missing()
    missing.update(COMPLETE[:256], 256)
    for boundary in range(512, 512 + 40 * 256, 256):
        rows = COMPLETE[:256].copy()
        rows[rng.random(rows.shape) < 0.5] = np.nan
        rows = rows[~np.isnan(rows).all(axis=1)]
        calls.clear()
        found = missing.complete(rows, measure(rows), measure)
        assert len(calls) <= 1 + 2 * LOSSES_PER_BATCH
        missing.update(COMPLETE[:0], boundary)
    np.testing.assert_allclose(found, np.tile(worth.sum(axis=0), (len(found), 1)), atol=0.5)


def test_rows_to_measure_on_are_the_most_complete_of_late():
    rows = np.arange(4.0 * MEASURED_ROWS).reshape(-1, 2)
    rows[::2, 0] = np.nan
    np.testing.assert_array_equal(most_complete(rows), rows[1::2])
    rows[1, 1] = np.nan
    expected = np.concatenate([rows[3:-2:2], rows[-2:]])
    np.testing.assert_array_equal(most_complete(rows), expected)


def test_the_fewer_fields_a_record_has_the_further_its_measures_would_spread():
    rows = np.ones((4, 8))
    rows[1, :4] = rows[2, :7] = rows[3] = np.nan
    np.testing.assert_allclose(stretch(rows), [1.0, np.sqrt(2.0), WIDEST, 1.0])
    assert stretch(rows[:1]) is None


@needs_compiler("thousands of records")
@pytest.mark.parametrize("seed", range(3))
def test_a_stream_whose_records_have_one_field_each_keeps_its_alarm_rate(seed):
    rng = np.random.default_rng(seed)
    complete = 5 * rng.normal(size=8) + rng.normal(size=(8000, 8)) * rng.lognormal(0, 1, 8)
    sparse = np.full_like(complete, np.nan)
    at = np.arange(len(sparse)), rng.integers(0, 8, len(sparse))
    sparse[at] = complete[at]
    p_value = StreamScorer(OSLRAU()).process(sparse).p_value
    for settled in (p_value[240:500], p_value[500:2000], p_value[2000:]):
        assert (settled <= 0.05).mean() < 0.1
    assert (p_value[2000:] <= 0.05).mean() > 0.02
