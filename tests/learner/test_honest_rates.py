"""A p-value is a share of records, also of a young stream, and also where values repeat."""

import numpy as np
import pytest
from interpreter import needs_compiler
from streams import clusters

from benchmarks.systems import EXCHANGEABLE
from faust_oslrau.learner import OSLRAU, StreamScorer

BATCH = 256
FIRST, LAST = 496, 240 + 24 * BATCH
"""Boundaries of learning batches."""

D = 8
N_STREAMS = 16


def correlated(seed, n, d):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))


def rings(seed, n, d):
    """Pairs of fields on noisy circles, whose angles are multiples of one angle."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, size=(n, 1)) * (1 + np.arange(d) // 2 % 3)
    return np.cos(angle + np.pi / 2 * (np.arange(d) % 2)) + 0.1 * rng.normal(size=(n, d))


@pytest.fixture(scope="module")
def p_values():
    """Those of streams that do not change (stretches, records), a stretch from each boundary."""
    return np.concatenate(
        [
            StreamScorer(OSLRAU()).process(family(seed, LAST, D)).p_value[FIRST:].reshape(-1, BATCH)
            for family in (clusters, correlated, rings)
            for seed in range(N_STREAMS)
        ],
        axis=1,
    )


@needs_compiler("300,000 records")
@pytest.mark.parametrize(("rate", "rtol"), [(0.05, 0.2), (0.01, 0.5)])
def test_each_stretch_has_the_nominal_rate(p_values, rate, rtol):
    realised = (p_values <= rate).mean(axis=1)
    np.testing.assert_allclose(realised, rate, rtol=rtol)  # less than three standard errors
    assert realised.mean() == pytest.approx(rate, rel=0.1)


@needs_compiler("300,000 records")
def test_half_of_the_records_of_each_stretch_have_a_p_value_below_a_half(p_values):
    np.testing.assert_allclose(np.median(p_values, axis=1), 0.5, atol=0.06)


@needs_compiler("24,000 records")
@pytest.mark.filterwarnings("error")
def test_values_as_large_as_a_double_holds_raise_at_most_twice_as_many_alarms():
    rows = np.random.default_rng(0).uniform(-1, 1, size=(4, 6000, 3)) * 1.7e308
    streams = [StreamScorer(OSLRAU(), alarm_rate=0.05).process(each).p_value for each in rows]
    assert np.mean(np.array(streams)[:, 1000:] <= 0.05) < 0.1


YOUNG = slice(1_000, 20_000)
MOST = 1.5
"""Most alarms, as a multiple of the nominal ones."""


@needs_compiler("2,640,000 records")
@pytest.mark.parametrize("name", EXCHANGEABLE)
def test_young_streams_of_exchangeable_records_have_no_more_alarms_than_promised(name):
    p_values = []
    for seed in range(12):  # alarms of a rare group come together: three streams tell little
        rows = EXCHANGEABLE[name](np.random.default_rng([34, seed]), YOUNG.stop)
        p_values.append(StreamScorer(OSLRAU()).process(rows).p_value[YOUNG])
    for rate in (0.01, 0.001):
        assert np.mean(np.concatenate(p_values) <= rate) <= MOST * rate


@needs_compiler("360,000 records")
def test_the_rarest_of_a_far_group_alarm_as_often_as_promised():
    drawn = [EXCHANGEABLE["flag and number"](np.random.default_rng(s), 120_000) for s in range(3)]
    p_values = [StreamScorer(OSLRAU()).process(rows).p_value[20_000:] for rows in drawn]
    assert np.mean(np.concatenate(p_values) <= 0.001) == pytest.approx(0.001, rel=0.2)
