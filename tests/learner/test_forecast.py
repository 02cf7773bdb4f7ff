"""Forecasts: the band in which each field of the next record is expected, given the past."""

import numpy as np
import pytest
from interpreter import needs_compiler
from scipy.integrate import simpson
from scipy.signal import lfilter

from faust_oslrau.learner import OSLRAU, InvalidInputError, StackedSPN, StreamScorer

RNG = np.random.default_rng(5)
N = 2600
HOURS = np.arange(N) / 6.0
ROWS = np.zeros((N, 2))
for t in range(1, N):
    ROWS[t] = 0.9 * ROWS[t - 1] + 0.3 * RNG.normal(size=2)
ROWS += 3.0 * np.sin(2 * np.pi * HOURS / 24.0)[:, None]
ROWS[RNG.random(ROWS.shape) < 0.02] = np.nan
PLACES = np.column_stack([np.arange(N), 1_700_000_000_000 + 600_000 * np.arange(N)])
KEYS = [b"machine-%d" % number for number in RNG.integers(12, size=N)]
LAYERS = {
    "plain": {},
    "history": {"history": ("10",)},
    "entities": {"history": ("10",), "max_entities": 10},
    "habits": {"max_entities": 10},
    "seasons": {"seasons": "UTC"},
    "all": {"history": ("10", "3600s"), "max_entities": 10, "seasons": "UTC"},
}
SLOW = needs_compiler("a long stream")


def scorer_of(layers):
    return StreamScorer(OSLRAU(), transforms={1: "asinh"}, forecasting=True, **LAYERS[layers])


def process(scorer, at):
    keys = KEYS[at] if scorer.parameters["max_entities"] else None
    return scorer.process(ROWS[at], keys, PLACES[at])


def learned(layers, n=N - 1):
    scorer = scorer_of(layers)
    process(scorer, slice(0, n))
    return scorer


@SLOW
@pytest.mark.parametrize("layers", LAYERS)
def test_the_band_has_98_percent_of_the_density_that_log_likelihoods_tell(layers):
    """Field by field: a record that lacks the other field has the density of one alone."""
    scorer = learned(layers)
    at = slice(N - 1, N)
    keys = KEYS[at] if scorer.parameters["max_entities"] else None
    state, band = scorer.to_bytes(), scorer.forecast(keys, PLACES[at, 1])
    for v in range(2):
        low, high = band.low[0, v], band.high[0, v]
        axis = np.linspace(low, high, 241)
        log_density = []
        for x in axis:
            row = np.full((1, 2), np.nan)
            row[0, v] = x
            block = StreamScorer.from_bytes(state).process(row, keys, PLACES[at])
            log_density.append(block.log_likelihood[0])
        inside = simpson(np.exp(log_density), x=axis)
        assert inside == pytest.approx(0.98, abs=2e-3)


@pytest.mark.parametrize("layers", ["plain", "history", "entities", "habits"])
def test_a_record_has_no_part_in_its_own_forecast(layers):
    bands = []
    for value in (0.0, 1e6, np.nan):
        scorer = learned(layers, n=300)
        keys = KEYS[300:301] if scorer.parameters["max_entities"] else None
        bands.append(scorer.process([[value, value]], keys, PLACES[300:301]).forecast)
    for band in bands[1:]:
        assert np.array_equal(np.stack(band), np.stack(bands[0]))


@SLOW
def test_a_history_makes_the_band_narrower_and_as_wide_as_it_must_be():
    noise = np.random.default_rng(6).normal(size=(6000, 2))
    rows = lfilter([1.0], [1.0, -0.95], noise, axis=0)
    late, width = slice(2000, None), {}
    for layers in ("plain", "history"):
        scorer = StreamScorer(OSLRAU(), forecasting=True, **LAYERS[layers])
        band = scorer.process(rows).forecast
        inside = (band.low <= rows) & (rows <= band.high)
        assert 0.96 <= inside[late].mean() <= 0.995
        width[layers] = np.median((band.high - band.low)[late])
    assert width["history"] < 0.6 * width["plain"]


@SLOW
@pytest.mark.parametrize("learner", [OSLRAU, StackedSPN])
def test_the_band_of_each_entity_is_as_wide_as_it_must_be(learner):
    """Entities differ in level and in spread; every other one sends values at two places."""
    rng, n, machines = np.random.default_rng(7), 16_000, 24
    of = rng.integers(machines, size=n)
    level, spread = 10.0 * rng.normal(size=(machines, 2)), np.exp(rng.normal(size=(machines, 2)))
    two_places = rng.choice([-1.0, 1.0], size=(n, 2)) + 0.25 * rng.normal(size=(n, 2))
    is_gaussian = of % 2 == 0
    shape = np.where(is_gaussian[:, None], rng.normal(size=(n, 2)), two_places)
    rows = level[of] + spread[of] * shape
    scorer = StreamScorer(learner(), max_entities=machines, forecasting=True)
    band = scorer.process(rows, [b"%d" % machine for machine in of]).forecast
    inside = (band.low <= rows) & (rows <= band.high)
    noisy, late = spread[of] > np.median(spread, axis=0), np.arange(n) >= 6000
    for group in (noisy, ~noisy):
        assert 0.97 <= inside[group & (late & is_gaussian)[:, None]].mean() <= 0.99
    assert inside[late & ~is_gaussian].mean() >= 0.97
    width = (band.high - band.low) / spread[of]
    assert np.median(width[late & ~is_gaussian]) < 0.9 * np.median(width[late & is_gaussian])


def test_nothing_is_expected_before_there_is_a_model():
    scorer = scorer_of("entities")
    assert scorer.forecast([b"machine-1"]).expected.shape == (1, 0)
    band = process(scorer, slice(0, 20)).forecast
    assert np.isnan(band.low[:16]).all()
    assert np.isfinite(band.low[16:]).all()


def test_an_unknown_entity_is_expected_to_be_like_the_others():
    scorer = learned("entities", n=300)
    band = scorer.forecast([b"machine-1", "stranger", None])
    assert band.low.shape == (3, 2)
    assert (band.low < band.expected).all() and (band.expected < band.high).all()
    assert band.low[1].tolist() == band.low[2].tolist()


def test_forecasts_need_one_entity_for_each_record():
    scorer = learned("entities", n=100)
    with pytest.raises(InvalidInputError, match="entity"):
        scorer.forecast()
    with pytest.raises(InvalidInputError, match="timestamps"):
        scorer.forecast([b"machine-1"], [1, 2])
    with pytest.raises(InvalidInputError, match="entity"):
        learned("plain", n=100).forecast([b"machine-1"])
