"""A challenger beside a StackedSPN: when it comes, what it changes, when one of the two goes."""

import itertools

import naive_stacked as naive
import numpy as np
import pytest
from interpreter import INTERPRETED
from scipy.special import logsumexp
from streams import clusters

from faust_oslrau.learner import InvalidParameterError, StackedSPN, StreamScorer
from faust_oslrau.learner.stacked.alarm import Alarm

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


def test_after_a_sudden_change_both_kinds_of_records_are_explained(model):
    old, new = ROWS[3000:4000], changed(ROWS[3000:4000])
    before = learned(ROWS[:2288])
    assert model.score_samples(old).mean() > before.score_samples(old).mean() - 5.0
    assert model.score_samples(new).mean() > before.score_samples(new).mean() + 5.0
    assert model.n_nodes_ <= 2 * model.max_nodes and model.n_records_ == 2988


def test_every_answer_agrees_with_plain_numpy(model):
    rows = np.concatenate([ROWS[3000:3005], changed(ROWS[3005:3010])])
    rows[::4, 1] = rows[::6, 0] = np.nan
    found = model.score_samples(rows)
    mean, deviation = model.expected(rows)
    contributions = model.contributions(rows)
    for r, row in enumerate(rows):
        log_weight, centre, covariance = mixture(model, row)
        assert found[r] == pytest.approx(log_weight, abs=1e-6)
        told = model.conditional_moments(row)
        np.testing.assert_allclose(told[0], centre, rtol=1e-5)
        units = np.outer(UNITS, UNITS)
        np.testing.assert_allclose(told[1] / units, covariance / units, rtol=1e-4, atol=1e-7)
        for v in range(D):
            rest = row.copy()
            rest[v] = np.nan
            others, centre, covariance = mixture(model, rest)
            if not np.isnan(row[v]):
                assert contributions[r, v] == pytest.approx(others - log_weight, abs=1e-5)
            assert mean[r, v] == pytest.approx(centre[v], rel=1e-5, abs=1e-9)
            assert deviation[r, v] == pytest.approx(covariance[v, v] ** 0.5, rel=1e-4)


def mixture(model, row):
    """Log-density of a row, and mean and covariance given it, from every network's parts."""
    log_weights, means, covariances = [], [], []
    for share, network, scaling in model._members():
        z = (row - scaling.location) / scaling.scale
        jacobian = np.log(scaling.scale)[~np.isnan(row)].sum()
        for log_weight, mean, covariance in naive.parts(network, z):
            log_weights.append(np.log(share) + log_weight - jacobian)
            means.append(np.where(np.isnan(row), mean * scaling.scale + scaling.location, row))
            covariances.append(covariance * np.outer(scaling.scale, scaling.scale))
    total = logsumexp(log_weights)
    share = np.exp(np.array(log_weights) - total)
    mean = share @ np.array(means)
    shift = np.array(means) - mean
    return total, mean, np.einsum("c,cij->ij", share, covariances) + (shift.T * share) @ shift


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


def test_anomalies_of_a_fault_stay_anomalies_and_are_blamed_by_the_old_network():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4000, 3))
    rows[:, 1] += rows[:, 0]
    fault = slice(3000, 3600)
    rows[fault, 1] = 3.0 * rng.normal(size=600) - rows[fault, 0]  # no field is far from usual
    scorer = StreamScorer(StackedSPN(), alarm_rate=0.01)
    block = scorer.process(rows[:3500])
    assert n_networks(scorer.learner) == 2 and block.held_back < 30
    odd = np.array([[1.5, -3.5, 0.0]])
    probe = StreamScorer.from_bytes(scorer.to_bytes(), StackedSPN)
    alone = probe.learner.established
    assert alone.score_samples(odd)[0] < scorer.learner.score_samples(odd)[0] - 1.0
    assert probe.process(odd).p_value[0] < 0.1


@pytest.mark.parametrize("n", [600, 1500])
def test_a_fault_costs_usual_records_little(n):
    losses = []
    for start in range(2800, 3056, 64):
        rows = ROWS[: start + n + 256].copy()
        fault = np.arange(start, start + n)
        rows[fault] = changed(rows[fault])
        with_fault, without = StackedSPN(), StackedSPN()
        scores, first = [], 0
        for end in [240, *range(496, len(rows), 256), len(rows)]:
            batch = rows[first:end]
            scores.append(
                [model.established.score_samples(batch) for model in (with_fault, without)]
                if first
                else np.zeros((2, end))
            )
            usual = ~np.isin(np.arange(first, end), fault)
            with_fault.partial_fit(batch)
            without.partial_fit(batch[usual])
            first = end
        faulty, clean = np.concatenate(scores, axis=1)[:, -256:]
        losses.append((clean - faulty).mean())
    assert np.mean(losses) < 0.1 and max(losses) < 0.3


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


@pytest.mark.parametrize("seed", range(3))
def test_a_stationary_stream_has_no_challenger(seed):
    rng = np.random.default_rng(seed)
    streams = [
        clusters(seed, 6000, 6),
        rng.standard_t(3, size=(6000, 3)),
        np.exp(rng.normal(size=(6000, 3))),
        rng.integers(0, 5, size=(6000, 4)).astype(float),
    ]
    for rows in streams:
        model = StackedSPN()
        for start in range(0, len(rows), 256):
            model.partial_fit(rows[start : start + 256])
            assert n_networks(model) == 1


@pytest.mark.parametrize("seed", [13, 15, 26])
def test_a_walk_that_stays_off_its_mean_has_no_challenger(seed):
    rows = np.random.default_rng(seed).normal(size=(8000, 3))
    rows[0] /= np.sqrt(1 - 0.98**2)
    for before, row in itertools.pairwise(rows):
        row += 0.98 * before
    model = StackedSPN()
    for start in range(0, len(rows), 256):
        model.partial_fit(rows[start : start + 256])
        assert n_networks(model) == 1


def test_there_is_no_challenger_where_none_is_wanted():
    model = learned(ROWS[:2288], changed(ROWS[2288:4000]), retire_after=None)
    assert n_networks(model) == 1
    with pytest.raises(InvalidParameterError, match="retire_after"):
        StackedSPN(retire_after=0).partial_fit(ROWS[:20])


def test_records_one_by_one_bring_a_challenger_too():
    model = learned(ROWS[:1000])
    for row in changed(ROWS[1000:1400]):
        model.partial_fit(row[None])
    assert n_networks(model) == 2


def test_an_alarm_finds_the_record_since_which_others_are_unlikely():
    rng = np.random.default_rng(0)
    alarm = Alarm(1)
    for _ in range(20):
        assert not alarm.add(np.zeros((256, 1)), rng.normal(size=256))
    rows = np.arange(256.0)[:, None]
    assert alarm.add(rows, np.where(rows[:, 0] < 150, 0.0, -4.0) + rng.normal(size=256))
    assert alarm.changed()[0, 0] == pytest.approx(150, abs=5)
