"""A challenger beside a StackedSPN: when it comes, what it changes, when one of the two goes."""

import numpy as np
import pytest
from interpreter import INTERPRETED
from naive_stacked import assert_answers
from scipy.signal import lfilter
from streams import clusters

from faust_oslrau.learner import StackedSPN
from faust_oslrau.learner.stacked.contest import Alarm

if INTERPRETED:
    pytest.skip("needs the compiler: long streams", allow_module_level=True)

D = 4
UNITS = np.array([1.0, 1e3, 1e-3, 10.0])
ROWS = clusters(71, 12_000, D, missing=0.02) * UNITS


def changed(rows):
    """Rows as after a sudden change: other units, other relations between the fields."""
    return -rows[:, ::-1]


def learned(*stretches, **parameters):
    model = StackedSPN(**parameters)
    for rows in stretches:
        model.partial_fit(rows, batch_size=256)
    return model


def n_networks(model):
    return len(model._members())


@pytest.fixture(scope="module")
def model():
    """A model with a challenger that has learned 700 records."""
    found = learned(ROWS[:2288], changed(ROWS[2288:2988]))
    assert n_networks(found) == 2
    return found


def test_every_answer_agrees_with_plain_numpy(model):
    rows = np.concatenate([ROWS[3000:3005], changed(ROWS[3005:3010])])
    rows[::4, 1] = rows[::6, 0] = np.nan
    assert_answers(model, rows, UNITS)


def test_samples_come_from_both_networks_or_from_the_one_that_fits(model):
    rows = model.sample(4000, random_state=1)
    new = model.score_samples(rows) > model.established.score_samples(rows)
    (share, *_), _ = model._members()
    assert new.mean() == pytest.approx(1.0 - share, abs=0.05)
    given = np.full(D, np.nan)
    given[0] = changed(ROWS[3000:3001])[0, 0]
    some = model.sample(500, given=given, random_state=2)
    assert (some[:, 0] == given[0]).all()
    # with a thousandth of the usual spread in the first field, it can be of the new kind only
    assert np.median(np.abs(some[:, 2])) > 1.0


def test_what_only_a_challenger_explains_stays_unusual_until_many_records_were_like_it():
    model = learned(ROWS[:2288])
    probe = changed(ROWS[9000:9200])
    before = model.evaluate(probe).measures[:, 0]
    for n in (700, 1800):
        model = learned(ROWS[:2288], changed(ROWS[2288 : 2288 + n]), retire_after=2048)
        evaluation = model.evaluate(probe)
        np.testing.assert_allclose(evaluation.measures[:, 0], before, rtol=0.05)
        assert (evaluation.log_density > evaluation.measures[:, 0] + 3.0).mean() > 0.95
    model.partial_fit(changed(ROWS[4088:5000]), batch_size=256)
    evaluation = model.evaluate(probe)
    np.testing.assert_array_equal(evaluation.measures[:, 0], evaluation.log_density)


def test_a_network_that_many_records_have_not_needed_goes():
    for after, kept in ((changed(ROWS[2988:7000]), "challenger"), (ROWS[2988:7000], "incumbent")):
        model = learned(ROWS[:2288], changed(ROWS[2288:2988]), retire_after=2048)
        while n_networks(model) == 2 and len(after) > 0:
            model.partial_fit(after[:256])
            after = after[256:]
        assert 2048 <= 4012 - len(after) + (700 if kept == "challenger" else 0) <= 2048 + 512
        new = changed(ROWS[8000:9000])
        loss = model.score_samples(ROWS[8000:9000]).mean() - model.score_samples(new).mean()
        assert (loss < 0) == (kept == "challenger")
        assert model.n_nodes_ <= 2000


def test_a_stream_that_returns_keeps_both_networks():
    stretches = [ROWS[:3000], changed(ROWS[3000:4500]), ROWS[4500:6000], changed(ROWS[6000:7500])]
    model = learned(*stretches, retire_after=2048)
    assert n_networks(model) == 2
    for rows in (ROWS[8000:9000], changed(ROWS[8000:9000])):
        assert (
            model.score_samples(rows).mean()
            > learned(ROWS[:3000]).score_samples(ROWS[8000:9000]).mean() - 5.0
        )


STATIONARY = {
    "clusters": lambda rng: clusters(1, 6000, 6),
    "heavy": lambda rng: rng.standard_t(3, size=(6000, 3)),
    "skewed": lambda rng: np.exp(rng.normal(size=(6000, 3))),
    "long off its mean": lambda rng: lfilter(
        [1.0], [1.0, -0.98], rng.normal(size=(6000, 3)), axis=0
    ),
    "discrete": lambda rng: rng.integers(0, 5, size=(6000, 4)).astype(float),
}


@pytest.mark.parametrize("name", STATIONARY)
def test_a_stationary_stream_has_no_challenger(name):
    model = StackedSPN()
    for rows in np.array_split(STATIONARY[name](np.random.default_rng(1)), 24):
        assert n_networks(model.partial_fit(rows)) == 1


def test_there_is_no_challenger_where_none_is_wanted():
    model = learned(ROWS[:2288], changed(ROWS[2288:4000]), retire_after=None)
    assert n_networks(model) == 1


def test_an_alarm_finds_the_record_since_which_others_are_unlikely():
    rng = np.random.default_rng(0)
    alarm = Alarm(1)
    for _ in range(20):
        assert not alarm.add(np.zeros((256, 1)), rng.normal(size=256))
    rows = np.arange(256.0)[:, None]
    assert alarm.add(rows, np.where(rows[:, 0] < 150, 0.0, -4.0) + rng.normal(size=256))
    assert alarm.changed()[0, 0] == pytest.approx(150, abs=5)
