"""The fields to blame: one, two at once, and a relation that is broken."""

import numpy as np
import pytest
from interpreter import needs_compiler

from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner.scoring.blame import blame

D = 6


def correlated(n, seed):
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(0).normal(size=(2, D)) + 0.5
    return rng.normal(size=(n, 2)) @ loadings + 0.3 * rng.normal(size=(n, D))


TRAINED = correlated(12_000, 1)
ROWS = correlated(300, 2)
SCALE = TRAINED.std(axis=0)


@pytest.fixture(scope="module")
def model():
    return OSLRAU().partial_fit(TRAINED, batch_size=256)


def blamed(model, rows):
    limit = np.quantile(model.score_samples(TRAINED), 0.001)
    score = model.score_samples(rows)
    clear = score < limit
    assert clear.mean() > 0.8
    return clear, blame(model, rows[clear], score[clear], lambda s: s > limit)


def shifted(fields, size):
    rng = np.random.default_rng(3)
    rows = ROWS.copy()
    at = np.arange(len(rows))[:, None]
    rows[at, fields] += size * SCALE[fields] * rng.choice([-1.0, 1.0], fields.shape)
    return rows


@needs_compiler("many rounds of blame")
def test_a_shift_of_one_field_is_blamed_on_it(model):
    fields = np.random.default_rng(4).integers(D, size=(len(ROWS), 1))
    clear, found = blamed(model, shifted(fields, 4.0))
    assert (found.order[:, 0] == fields[clear, 0]).mean() >= 0.95
    row, column = np.arange(len(found.order)), found.order[:, 0]
    unshifted = ROWS[clear][row, column]
    expected, deviation = found.expected[row, column], found.deviation[row, column]
    assert (np.abs(expected - unshifted) < 4 * deviation).mean() > 0.95
    assert (found.excess[row, column] > 3).all()


@needs_compiler("many rounds of blame")
def test_shifts_of_two_fields_are_blamed_on_both_before_the_others(model):
    rng = np.random.default_rng(5)
    fields = np.array([rng.choice(D, 2, replace=False) for _ in ROWS])
    clear, found = blamed(model, shifted(fields, 5.0))
    both = np.sort(found.order[:, :2]) == np.sort(fields[clear])
    assert both.all(axis=1).mean() >= 0.85


@needs_compiler("many rounds of blame")
def test_a_field_that_no_longer_follows_the_others_is_blamed_though_its_value_is_usual(model):
    rows = ROWS.copy()
    rows[:, 2] = correlated(300, 6)[:, 2]
    limit = np.quantile(model.score_samples(TRAINED), 0.001)
    score = model.score_samples(rows)
    clear = score < limit
    found = blame(model, rows[clear], score[clear], lambda s: s > limit)
    assert clear.sum() > 50
    assert (found.order[:, 0] == 2).mean() >= 0.9


def test_missing_fields_come_last_and_have_an_expected_value(model):
    rows = ROWS[:5].copy()
    rows[:, 1] = np.nan
    rows[:, 3] += 30 * SCALE[3]
    found = blame(model, rows, model.score_samples(rows), lambda s: s > -np.inf)
    assert (found.order[:, 0] == 3).all() and (found.order[:, -1] == 1).all()
    assert np.isnan(found.nats[:, 1]).all() and np.isfinite(found.expected).all()
    assert sorted(found.order[0]) == list(range(D))


def test_a_record_of_one_field_can_only_blame_that(model):
    rows = np.full((1, D), np.nan)
    rows[0, 4] = 1e6
    found = blame(model, rows, model.score_samples(rows), lambda s: s > -10)
    assert found.order[0, 0] == 4
