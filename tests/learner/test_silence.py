"""Silences: entities and partitions that send no records for longer than usual."""

import numpy as np
import pytest
from interpreter import needs_compiler
from naive_silence import NaiveSilences

from faust_oslrau.learner.scoring.clock import Clock
from faust_oslrau.learner.silence.layer import Silences

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
START = 1_767_225_600_000


def arrivals(rng, entities=20, hours=6, gap=MINUTE, jitter=0.05):
    """Return times and entities of records that come regularly, in order of time."""
    n = int(1.2 * hours * HOUR / gap)
    times = np.cumsum(gap * (1 + jitter * rng.normal(size=(entities, n))), axis=1)
    times += rng.uniform(0, gap, size=(entities, 1))
    order = times.ravel().argsort(kind="stable")
    who = np.repeat(np.arange(entities), n)[order]
    times = times.ravel()[order]
    return START + times[times < hours * HOUR].astype(np.int64), who[times < hours * HOUR]


def follow(times, who, silences=None, nameless=None, clock=None):
    """Return what the records show; those of one entity may have no name."""
    fresh, keys = np.zeros(len(times), np.bool_), []
    if who is None:
        who = np.zeros(len(times), np.int64)
    else:
        fresh[np.unique(who, return_index=True)[1]] = silences is None
        keys = [None if entity == nameless else b"e%d" % entity for entity in who]
    silences = silences or Silences()
    places = np.column_stack([np.arange(len(times))] * 2 + [times])
    return silences.take(places, (clock or Clock()).take(places), who, fresh, keys)


def test_a_partition_that_stops_is_one_event_and_its_entities_are_not_silent():
    times, who = arrivals(np.random.default_rng(1), hours=12)
    for hour in (3, 5, 7, 9):
        times[times > START + hour * HOUR] += HOUR
    found = follow(times, who)
    assert [(silence.state, silence.entity) for silence in found] == 4 * [("ended", None)]
    assert all(silence.seconds == pytest.approx(3600, rel=0.01) for silence in found)
    for silence in found:  # two records later than the first one after it
        assert times[silence.last_offset] == silence.last_timestamp
        assert np.diff(times)[silence.last_offset] > 0.9 * HOUR
        assert silence.row == silence.last_offset + 3


def paused(gap, every, pause, days):
    """Return times of records that come regularly, with a pause in each day or hour."""
    n = days * DAY // gap
    times = gap * (1 + 0.1 * np.random.default_rng(11).normal(size=n))
    times = START + times.cumsum().astype(np.int64)
    return times[(times - START) % every >= pause]


def ends(times):
    """Return when the silences of a partition without entities end, two records after them."""
    found = follow(times, None)
    return [int(times[silence.last_offset + 1] - START) for silence in found]


@needs_compiler("long streams")
@pytest.mark.parametrize(
    ("gap", "every", "pause", "days"),
    [
        (1000, DAY, 5 * MINUTE, 14),
        (1000, HOUR, 40_000, 3),
        (10_000, 7 * DAY, HOUR, 60),
        (20_000, DAY, 3 * MINUTE, 60),
        (MINUTE, DAY, 2 * HOUR, 60),
    ],
)
def test_short_pauses_are_usual_once_four_were_told(gap, every, pause, days):
    told = ends(paused(gap, every, pause, days))
    assert [at // every for at in told] == [1, 2, 3, 4]


@needs_compiler("long streams")
def test_an_outage_longer_than_the_usual_pauses_is_told():
    times = paused(10_000, DAY, 5 * MINUTE, 30)
    since, until = START + 20 * DAY + HOUR, START + 20 * DAY + HOUR + 20 * MINUTE
    times = times[(times < since) | (times > until)]
    assert [at // DAY for at in ends(times)] == [1, 2, 3, 4, 20]


@needs_compiler("long streams")
def test_an_entity_that_pauses_each_night_and_then_stops_is_found():
    times, who = arrivals(np.random.default_rng(12), entities=2, hours=24 * 24)
    nights = (times - START) % DAY >= 16 * HOUR
    stop = START + 20 * DAY + HOUR
    still = (who == 1) | (~nights & (times < stop))
    times, who = times[still], who[still]
    found = [silence for silence in follow(times, who) if silence.entity == "e0"]
    assert found[-1].state == "began"
    assert found[-1].last_timestamp > stop - 2 * MINUTE
    assert found[-1].seconds < 13 * 3600


WRONG = {
    "jitter": lambda rng, m, who: rng.integers(-20_000, 20_000, m),
    "glitches": lambda rng, m, who: rng.choice([-100, 0, 100], m, p=[0.01, 0.98, 0.01]) * DAY,
    "a fast clock": lambda rng, m, who: np.where(who == 5, 2 * HOUR, 0),
    "a slow clock": lambda rng, m, who: np.where(who < 8, -START, 0),
    "a block of old records": lambda rng, m, who: -10 * DAY * (np.arange(m) // 1000 == 3),
    "a block from the future": lambda rng, m, who: 10 * DAY * (np.arange(m) // 1000 == 3),
}
"""By how much time stamps are wrong."""


@needs_compiler("long streams")
@pytest.mark.parametrize("name", [*WRONG, "none"])
def test_wrong_time_stamps_make_no_storm_and_hide_nothing(name):
    rng = np.random.default_rng(4)
    times, who = arrivals(rng, hours=10)
    away = (times > START + 7 * HOUR) & (times < START + 8 * HOUR)
    still = (who != 3) | ~away
    times, who = times[still], who[still]
    if name == "none":
        times = np.where(rng.random(len(times)) < 0.3, -1, times)
    else:
        times = times + WRONG[name](rng, len(times), who)
    found = follow(times, who)
    own = [silence.state for silence in found if silence.entity == "e3"]
    assert own == ["began", "ended"]
    assert len(found) == 2 + name.startswith("a block")  # then the partition seems to be silent


@needs_compiler("many gaps")
@pytest.mark.parametrize("kind", ["regular", "poisson", "bursts"])
def test_few_silences_are_false(kind):
    rng = np.random.default_rng(5)
    n = 1_000_000
    who, times = rng.integers(100, size=n), START + np.arange(n) * 10
    if kind == "regular":
        who = np.arange(n) % 100
    if kind == "bursts":  # each entity sends for a while, then pauses
        who = np.repeat(rng.integers(100, size=n // 20), 20)
    found = [silence.row for silence in follow(times, who)]
    later = [row for row in found if row > n // 10]
    assert len(later) <= (4 if kind == "bursts" else 2)
    assert len(found) <= (40 if kind == "bursts" else 2)


@pytest.mark.parametrize("gap", [1000, HOUR])
def test_silences_are_those_of_the_oracle(gap):
    rng = np.random.default_rng(6)
    n = 6000
    who = np.where(rng.random(n) < 0.95, rng.integers(6, size=n), 6 + rng.integers(3, size=n))
    times = START + np.cumsum(rng.exponential(gap, size=n)).astype(np.int64)
    times[rng.random(n) < 0.01] = -1
    times[4000:] += 3600 * gap
    away = (who == 2) & (np.arange(n) > 2000) & (np.arange(n) < 3000)
    away |= (who == 3) & (np.arange(n) % 600 < 200)
    still = ~away
    times, who = times[still], who[still]
    naive, expected = NaiveSilences(), []
    for row, (time, entity) in enumerate(zip(times.tolist(), who.tolist(), strict=True)):
        for shown in naive.process(None if entity == 8 else f"e{entity}", row, time):
            expected.append((row, *shown))
    found = follow(times, who, nameless=8)
    assert len(expected) >= 3
    assert [silence[:4] for silence in found] == [entry[:4] for entry in expected]
    for silence, entry in zip(found, expected, strict=True):
        assert 1000 * silence.seconds == pytest.approx(entry[4], rel=1e-5)
        assert 1000 * silence.limit == pytest.approx(entry[5], rel=1e-5)


def test_entities_that_are_silent_are_counted_and_named_the_longest_first():
    times, who = arrivals(np.random.default_rng(10))
    still = (who > 4) | (times < START + (4 - who / 4) * HOUR)
    times, who = times[still], who[still]
    silences, clock = Silences(), Clock()
    assert silences.silent(3) == []
    began = {each.entity: each for each in follow(times, who, silences, clock=clock)}
    assert silences.n_silent == 5
    longest = silences.silent(3)
    assert [each.entity for each in longest] == ["e4", "e3", "e2"]
    for each in longest:
        assert each.last_timestamp == began[each.entity].last_timestamp
        assert each.limit == began[each.entity].limit
    follow(times[-20:] + MINUTE, np.arange(20), silences, clock=clock)
    assert silences.n_silent == 0 and silences.silent(3) == []
