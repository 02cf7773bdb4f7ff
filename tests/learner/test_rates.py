"""Rates: windows with far more or far fewer records than usual."""

import numpy as np
import pytest
from scipy import stats

from faust_oslrau.learner.rates.evidence import LONGEST_SECONDS, Evidence
from faust_oslrau.learner.rates.filters import Filters
from faust_oslrau.learner.rates.layer import Rates
from faust_oslrau.learner.scoring.clock import Clock

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
START = 1_767_225_600_000  # a Thursday at midnight


def records(rates, rng, start=START):
    """Return times and entities of records, in order of time: so many a minute (m, entities)."""
    counts = rng.poisson(rates)
    minute, who = np.nonzero(counts)
    minute, who = (np.repeat(each, counts[minute, who]) for each in (minute, who))
    times = start + MINUTE * minute + rng.integers(0, MINUTE, len(minute))
    order = times.argsort(kind="stable")
    return times[order], who[order]


def follow(times, who=None, rates=None, until=0):
    """Return the changes that records show, and the layer afterwards; each entity is a new one.

    No value of a field is, if the layer counts those. It is restored after the rows ``until`` one.
    """
    m, rates = len(times), rates or Rates(60.0, "UTC")
    fresh, keys = np.zeros(m, np.bool_), []
    if who is not None:
        fresh[np.unique(who, return_index=True)[1]] = rates.by is None
        keys = [None if entity < 0 else b"e%d" % entity for entity in who]
    now, found = Clock().take(np.column_stack([np.arange(m)] * 2 + [times]))[1:, 1], []
    for some in np.split(np.arange(m), [until]):
        found += [
            change._replace(row=int(some[change.row]))
            for change in rates.take(now[some], fresh[some], [keys[row] for row in some if keys])
        ]
        state, rates = rates.state(), Rates(rates.seconds, rates.zone, rates.by)
        rates.restore(state)
    return found, rates


def mean_of(predicted):
    return float(predicted.expected[0])


def test_a_drop_and_a_surge_begin_within_windows_and_end():
    rate = np.full((1200, 1), 60.0)
    rate[700:760], rate[1000:1030] = 30.0, 120.0
    times, _ = records(rate, np.random.default_rng(0))
    changes, rates = follow(times)
    assert [change.state for change in changes] == ["began", "ended"] * 2
    assert rates.changed(9) == []
    _, rates = follow(times[: changes[0].row + 1])
    assert rates.changed(9) == [(None, None, changes[0].since, 0.5)]
    drop, back, surge, _ = changes
    for change, first in ((drop, 700), (surge, 1000)):
        assert first <= (change.since - START) // MINUTE <= first + 1
        assert times[change.row] < START + MINUTE * (first + 5)
        assert change.expected == pytest.approx(60, rel=0.1)
        assert change.low < 60 < change.high
        assert change.seconds == 60.0
        assert change.entity is None
    assert drop.records < drop.low
    assert surge.records > surge.high
    assert back.since == drop.since
    assert times[back.row] > START + MINUTE * 760


@pytest.mark.parametrize("seconds", [60.0, 300.0, 1800.0])
def test_a_night_that_comes_each_day_is_usual(seconds):
    minute = np.arange(5 * 1440) % 1440
    rate = np.where(minute < 360, 4.0, 32.0)[:, None]
    times, _ = records(rate, np.random.default_rng(2))
    changes, _ = follow(times, rates=Rates(seconds, "UTC"))
    began = [times[change.row] for change in changes if change.state == "began"]
    assert len(began) >= 1  # the first nights and mornings are changes
    assert all(time < START + 3 * DAY for time in began)


@pytest.mark.parametrize("factor", [0.72, 1.3])
def test_a_change_that_begins_with_an_hour_of_the_first_day_is_told_while_it_lasts(factor):
    """It is not what is usual in this hour: no day before has had one."""
    for seed in range(4):
        rate = np.full((420, 1), 180.0)
        rate[300:330] *= factor
        times, _ = records(rate, np.random.default_rng(seed))
        began, ended = follow(times)[0]
        assert (began.state, ended.state) == ("began", "ended")
        assert times[began.row] < START + 310 * MINUTE
        assert times[ended.row] > START + 330 * MINUTE


def test_records_without_an_entity_count_for_the_partition_alone():
    rates = np.full((800, 3), 20.0)
    times, who = records(rates, np.random.default_rng(4))
    _, layer = follow(times, np.where(who == 2, -1, who))
    hour = 13.0
    expected = layer._filters.predict(hour).expected
    assert expected == pytest.approx([60, 20, 20], rel=0.15)


def test_another_entity_in_a_slot_begins_anew():
    changes, layer = follow(*records(np.full((600, 1), 40.0), np.random.default_rng(5)))
    rates = np.full((300, 1), 5.0)
    more, _ = follow(*records(rates, np.random.default_rng(6), START + 600 * MINUTE), layer)
    assert not changes
    assert [change.entity for change in more if change.state == "began"] == [None]


@pytest.mark.parametrize("seconds", [30.0, 60.0, 300.0])
def test_what_lasts_is_usual_after_some_time(seconds):
    rate = np.full((1500, 1), 50.0)
    rate[800:] = 100.0
    times, _ = records(rate, np.random.default_rng(7))
    began, ended = follow(times, rates=Rates(seconds, "UTC"))[0]
    lasted = (times[ended.row] - times[began.row]) / 1000.0
    assert lasted == pytest.approx(LONGEST_SECONDS, abs=2 * seconds)


@pytest.mark.parametrize("rate", [0.02, 2_000.0, 20_000.0])
def test_a_steady_stream_shows_nothing_however_many_records_it_brings(rate):
    """Before its first window nothing is known of a level: 50 records would be as good a guess."""
    times, _ = records(np.full((300, 1), rate), np.random.default_rng(8))
    changes, layer = follow(times)
    assert not changes
    assert rate < 1.0 or mean_of(layer._filters.predict(3.0)) == pytest.approx(rate, rel=0.1)


def test_entities_beyond_the_first_thousand_count_for_the_partition_alone(monkeypatch):
    monkeypatch.setattr("faust_oslrau.learner.rates.layer.MOST_ENTITIES", 1)
    rates = np.full((900, 3), 30.0)
    rates[600:650, :2] = 3.0
    times, who = records(rates, np.random.default_rng(16))
    first = (who == 0).argmax()  # the first record of e0
    changes, layer = follow(times[first:], who[first:])
    assert {change.entity for change in changes} == {"e0", None}
    assert len(layer.state()["rate_records"]) == 2


def test_the_place_of_an_entity_that_is_gone_is_another_ones(monkeypatch):
    monkeypatch.setattr("faust_oslrau.learner.rates.layer.MOST_ENTITIES", 1)
    rates = np.zeros((900, 3))
    rates[:200, 0], rates[400:, 1], rates[:, 2] = 30.0, 30.0, 30.0
    rates[800:, 1] = 3.0
    times, who = records(rates, np.random.default_rng(17))
    who[who == 2] = -1
    changes, _ = follow(times, who)
    of_entities = [(each.entity, each.state) for each in changes if each.entity]
    assert of_entities == [("e0", "began"), ("e0", "ended"), ("e1", "began")]


def with_a_new_one():
    """Return times and subjects: the second one comes for ten minutes, and never before."""
    rate = np.full((300, 2), 100.0)
    rate[:, 1] = 0.0
    rate[200:210, 1] = 30.0
    return records(rate, np.random.default_rng(19))


def test_records_of_a_value_that_never_came_before_are_a_surge_while_they_come():
    times, who = with_a_new_one()
    changes, _ = follow(times, who, Rates(60.0, "UTC", "status"))
    until = int(np.searchsorted(times, START + 150 * MINUTE))
    restored, _ = follow(times, who, Rates(60.0, "UTC", "status"), until)
    assert restored == changes  # for how long values did not come is restored too
    began, ended = (change for change in changes if change.entity == "e1")
    assert began.since == START + 200 * MINUTE
    assert began.records > 20 > 1 > began.expected
    assert times[began.row] < START + 203 * MINUTE
    assert ended.state == "ended"
    assert START + 210 * MINUTE < times[ended.row] < START + 213 * MINUTE


def test_a_new_entity_is_no_surge_of_it():
    changes, _ = follow(*with_a_new_one())
    assert not [change for change in changes if change.entity == "e1" and change.records]


def test_a_value_for_which_there_was_no_place_is_no_surge_of_it(monkeypatch):
    monkeypatch.setattr("faust_oslrau.learner.rates.layer.MOST_ENTITIES", 1)
    rates = np.full((600, 2), 30.0)
    rates[300:, 0] = 0.0
    times, who = records(rates, np.random.default_rng(20))
    first = (who == 0).argmax()
    changes, layer = follow(times[first:], who[first:], Rates(60.0, "UTC", "status"))
    assert b"e1" in layer._slots
    assert "e1" not in {change.entity for change in changes}


def test_pauses_of_the_partition_are_no_drops():
    times, _ = records(np.full((1000, 1), 50.0), np.random.default_rng(8))
    times[times > START + 600 * MINUTE + 20_000] += 5 * HOUR
    assert follow(times)[0] == []


def test_records_without_a_time_belong_to_the_window_that_is_open():
    times, _ = records(np.full((600, 1), 50.0), np.random.default_rng(9))
    times[::3] = -1
    _, layer = follow(times)
    assert mean_of(layer._filters.predict(10.0)) == pytest.approx(50, rel=0.1)
    assert follow(np.full(1000, -1))[0] == []


def learned(counts):
    filters, counts = Filters(60.0), np.asarray(counts, np.float64).reshape(len(counts), -1)
    filters.reserve(counts.shape[1])
    for window, count in enumerate(counts):
        hour = window / 60 % 168
        filters.learn(count, filters.predict(hour), hour, np.ones(counts.shape[1], np.bool_))
    return filters


def told_of(filters, counts, first=0):
    """Return what is told of more windows, and which rates are changed at last."""
    evidence, told = Evidence(60.0), []
    evidence.reserve(counts.shape[1])
    for window, records in enumerate(counts.astype(float), first):
        predicted = filters.predict(window / 60)
        told += evidence.add(records, predicted, window, filters.has_level)
        filters.learn(records, predicted, window / 60, evidence.changed == 0)
    return told, evidence.changed


def test_probabilities_add_up_and_quantiles_are_theirs():
    rng = np.random.default_rng(12)
    predicted = learned(rng.poisson(7.0, 300)).predict(5.0)
    counts = np.arange(400.0)
    each = [predicted.log_probabilities(np.array([y]), np.array([1.0]))[0, 0] for y in counts]
    below = np.exp(each).cumsum()
    assert below[-1] == pytest.approx(1.0, abs=1e-6)
    for level in (0.01, 0.5, 0.99):
        assert predicted.quantile(0, level) == np.flatnonzero(below >= level)[0]
    assert (np.exp(each) * counts).sum() == pytest.approx(mean_of(predicted), rel=1e-6)


def test_steady_counts_are_predicted_as_by_a_poisson():
    rng = np.random.default_rng(13)
    predicted = learned(rng.poisson(100.0, 3000)).predict(5.0)
    poisson = stats.poisson(100.0)
    assert predicted.quantile(0, 0.01) == pytest.approx(poisson.ppf(0.01), abs=3)
    assert predicted.quantile(0, 0.99) == pytest.approx(poisson.ppf(0.99), abs=3)


@pytest.mark.parametrize(
    ("rate", "noise", "factor"), [(6e4, 0.03, 0.5), (3e6, 0.0, 0.3), (3e6, 0.03, 0.5)]
)
def test_a_loss_is_told_within_two_windows_however_many_records_they_bring(rate, noise, factor):
    rng = np.random.default_rng(18)
    means = rate * np.exp(noise * rng.normal(size=302))
    records = rng.poisson(means * np.where(np.arange(302) < 300, 1.0, factor))[:, None]
    told, _ = told_of(learned(records[:300]), records[300:], 300)
    assert [found.begins for found in told] == [True]


def test_few_changes_are_told_as_over_while_they_last():
    rng = np.random.default_rng(21)
    filters, records = learned(rng.poisson(100.0, (400, 24))), rng.poisson(150.0, (60, 24))
    told, changed = told_of(filters, records, 400)
    assert changed.all()
    assert sum(not each.begins for each in told) <= 2
