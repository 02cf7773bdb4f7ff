"""Streams that break naive learners: every score finite, and sensible where sense is defined."""

import functools

import numpy as np
import pytest
from interpreter import needs_compiler

from faust_oslrau.learner import OSLRAU, StreamScorer

N = 6000
RNG = np.random.default_rng(71)
Z = RNG.normal(size=(N, 4))
Z[:, 1] += Z[:, 0]


def missing(share):
    rows = Z.copy()
    rows[RNG.random(rows.shape) < share] = np.nan
    return rows


def with_column(column):
    return np.column_stack([Z, column])


STREAMS = {
    "units from 1e-9 to 1e9": Z * [1e-9, 1.0, 1e9, 1e-3],
    "a tiny spread far from zero": 1e6 + 1e-3 * Z,
    "a constant column": with_column(np.full(N, 5.0)),
    "all constant": np.full((N, 3), 7.0),
    "all zero": np.zeros((N, 3)),
    "duplicated rows": np.repeat(Z[:50], N // 50, axis=0),
    "integers with few values": RNG.integers(0, 4, (N, 5)).astype(float),
    "exact linear dependence": np.column_stack([Z, Z[:, 0] + Z[:, 1], 2 * Z[:, 0]]),
    "Cauchy tails": RNG.standard_cauchy((N, 4)),
    "lognormal with a large spread": np.exp(3 * Z),
    "half of the values missing": missing(0.5),
    "a column that is never observed": with_column(np.full(N, np.nan)),
    "every third row missing": np.where(np.arange(N)[:, None] % 3 == 0, np.nan, Z),
    "a column that starts to move": with_column(np.where(np.arange(N) < N / 2, 5.0, 5.0 + Z[:, 2])),
    "a column that leaves zero": with_column(np.where(np.arange(N) < N / 2, 0.0, 1e3 * Z[:, 2])),
    "one field": RNG.normal(size=(N, 1)),
    "values at the end of the range": np.where(RNG.random((N, 3)) < 0.001, 1e300, Z[:, :3]),
    "scales that alternate": Z[:, :3] * 10.0 ** (150 * (np.arange(N)[:, None] // 256 % 2)),
    "500 fields": RNG.normal(size=(1000, 500)) + RNG.normal(size=(1000, 1)),
}


@functools.cache
def scored(name, kind):
    scorer = StreamScorer(kind())
    return scorer, scorer.process(STREAMS[name])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs_compiler("500 fields") if name == "500 fields" else ())
        for name in STREAMS
    ],
)
def test_scores_are_finite_and_the_budget_holds(name, kind):
    scorer, block = scored(name, kind)
    assert np.isfinite(block.log_likelihood[16:]).all()
    assert ((block.p_value[16 + 32 :] > 0) & (block.p_value[16 + 32 :] <= 1)).all()
    assert scorer.learner.n_nodes_ <= 2000
    assert np.isfinite(block.contributions[~np.isnan(block.contributions)]).all()


@needs_compiler("many records of entities")
@pytest.mark.parametrize("name", [name for name in STREAMS if name != "500 fields"])
def test_a_state_with_entities_can_be_read_after_any_records(name):
    rows, scorer = STREAMS[name][:3000], StreamScorer(OSLRAU(), max_entities=20)
    for start in range(0, len(rows), 250):
        some = range(start, start + 250)
        scorer.process(rows[some], [k * 7 % 12 for k in some])
        state = scorer.to_bytes()
        assert StreamScorer.from_bytes(state).to_bytes() == state


@pytest.mark.parametrize(
    "name", ["one field", "exact linear dependence", "half of the values missing"]
)
def test_a_late_score_is_no_worse_than_that_of_independent_gaussians(name, kind):
    rows = STREAMS[name]
    _, block = scored(name, kind)
    mean, spread = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    nats = 0.5 * ((rows - mean) / spread) ** 2 + np.log(spread * np.sqrt(2 * np.pi))
    independent = -np.nansum(nats, axis=1)
    late = slice(N // 2, None)
    assert block.log_likelihood[late].mean() > independent[late].mean() - 0.05


def test_a_column_that_starts_to_move_is_an_anomaly_for_a_batch_and_then_learned(kind):
    _, block = scored("a column that starts to move", kind)
    start = N // 2
    boundary = start + (240 - start) % 256
    moved = np.abs(STREAMS["a column that starts to move"][start:boundary, -1] - 5.0) > 0.01
    assert (block.p_value[start:boundary][moved] <= 0.001).all()
    assert np.median(block.log_likelihood[-500:]) > -20


@pytest.mark.parametrize("layers", [{}, {"history": ("10",)}])
def test_units_shift_the_scores_and_nothing_else(kind, layers):
    powers = 2.0 ** np.array([-30, 0, 30, -10])
    plain = StreamScorer(kind(), **layers).process(Z[:3000])
    scaled = StreamScorer(kind(), **layers).process(Z[:3000] * powers)
    np.testing.assert_allclose(
        scaled.log_likelihood[16:], plain.log_likelihood[16:] - np.log(powers).sum(), rtol=1e-9
    )
    np.testing.assert_allclose(scaled.p_value, plain.p_value, rtol=1e-6)
    np.testing.assert_array_equal(scaled.is_anomaly, plain.is_anomaly)


@needs_compiler("long streams")
@pytest.mark.parametrize("share", [0.05, 0.4])
@pytest.mark.parametrize(
    "layers", [{"max_entities": 2}, {"seasons": "UTC"}, {"seasons": "UTC", "max_entities": 2}]
)
def test_a_device_that_sends_the_largest_number_for_a_missing_stops_nothing(kind, layers, share):
    rows, rng = 2.0 * Z[:3000], np.random.default_rng(72)
    rows[rng.random(len(rows)) < share, 0] = np.finfo(np.float64).max
    entity = ["a", "b"] * (len(rows) // 2) if "max_entities" in layers else None
    hours = 1_774_746_000_000 + 600_000 * np.arange(len(rows))
    places = np.column_stack([np.arange(len(rows)), hours])
    scorer = StreamScorer(kind(), **layers)
    block = scorer.process(rows, entity, places)
    assert np.isfinite(block.log_likelihood[16:]).all()
    assert np.isfinite(block.p_value[48:]).all()
    assert StreamScorer.from_bytes(scorer.to_bytes()).to_bytes() == scorer.to_bytes()


@needs_compiler("long streams")
def test_scores_of_entities_are_finite(kind):
    names = ["a constant column", "Cauchy tails", "a column that is never observed",
             "a column that leaves zero", "values at the end of the range"]  # fmt: skip
    rows = np.column_stack([STREAMS[name][:, -1] for name in names] + [np.full(N, 1e-300)])
    rows[::7] = np.nan
    keys = [b"%d" % key**3 for key in np.random.default_rng(9).integers(15, size=N)]
    block = StreamScorer(kind(), max_entities=10).process(rows, keys)
    assert np.isfinite(block.log_likelihood[16:]).all()
    assert ((block.p_value[48:] > 0) & (block.p_value[48:] <= 1)).all()
    assert np.isfinite(block.contributions[~np.isnan(block.contributions)]).all()
