"""Seasons: records by what is usual at their hour of the day and of the week."""

import math
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from interpreter import needs_compiler
from naive_seasons import NaiveDays, local
from streams import autoregression, blame_of

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.seasons.calendar import Calendar
from faust_oslrau.learner.seasons.days import Days
from faust_oslrau.learner.state import unpack

DAY = 86_400_000
START = int(datetime(2026, 3, 2, tzinfo=ZoneInfo("Europe/Berlin")).timestamp() * 1000)


def times_of(days, per_day):
    return START + np.arange(days * per_day) * (DAY // per_day)


def daily(rng, times, d=3, zone="Europe/Berlin", amplitude=5.0):
    """Draw correlated fields that follow the hours of a time zone, each in a wave of its own."""
    _, hour = Calendar(zone).local(times)
    noise = rng.normal(size=(len(times), d)) @ (np.eye(d) + 0.5 * rng.normal(size=(d, d)))
    angle = 2 * np.pi * hour[:, None] / 24 + rng.uniform(0, 2 * np.pi, d)
    return amplitude * np.sin(angle) + noise


def places_of(times):
    return np.column_stack([np.arange(len(times)), times])


def run(rows, times, *, seasons="Europe/Berlin", learner=OSLRAU, **parameters):
    scorer = StreamScorer(learner(), seasons=seasons, **parameters)
    return scorer, scorer.process(rows, None, places_of(times))


def counting(scorer):
    """Return which shapes count (6, d): levels, steps and spreads, of day and week."""
    return unpack(scorer.to_bytes(), "StreamScorer")[1]["season_counting"]


def dependent(rng, n):
    return autoregression(rng.normal(size=(n, 3)), 0.99)


def regimes(rng, n):
    change = rng.random(n) < 1 / 300
    regime = rng.integers(3, size=n)[np.maximum.accumulate(np.arange(n) * change)]
    return 4 * rng.normal(size=(3, 3))[regime] + rng.normal(size=(n, 3))


@needs_compiler("weeks of minutes")
@pytest.mark.parametrize("kind", [lambda rng, n: rng.normal(size=(n, 3)), dependent, regimes])
def test_without_a_season_no_score_changes(kind):
    times = times_of(14, 1440)
    rows = kind(np.random.default_rng(5), len(times))
    (_, plain), (scorer, block) = run(rows, times, seasons=None), run(rows, times)
    assert not counting(scorer).any()
    for name in ("log_likelihood", "p_value", "is_anomaly", "n_learned"):
        assert getattr(block, name).tobytes() == getattr(plain, name).tobytes()


@needs_compiler("weeks of records")
def test_a_pattern_in_local_time_keeps_its_phase_when_clocks_change():
    times = times_of(34, 288)  # clocks change on day 27
    rows = daily(np.random.default_rng(7), times)
    before, after = (slice(288 * day, 288 * (day + 6)) for day in (20, 28))
    change = {}
    for zone in ("Europe/Berlin", "UTC"):
        likelihood = run(rows, times, seasons=zone)[1].log_likelihood
        change[zone] = likelihood[after].mean() - likelihood[before].mean()
    assert change["Europe/Berlin"] > -0.1
    assert change["UTC"] < change["Europe/Berlin"] - 0.2


def in_proportion(date, hour):
    level = np.exp(1.5 - 1.2 * np.cos(2 * np.pi * hour / 24))
    return level, 0.1 * level


PATTERNS = [
    # level and spread by date and hour, days, shapes that count
    (lambda date, hour: (6.0 * (((date + 3) % 7 < 5) & (hour > 8) & (hour < 18)), 1.0), 42, [1]),
    (lambda _, hour: (20.0 * ((hour >= 6.25) & (hour < 14.75)), 1.0), 21, [2]),
    (lambda _, hour: (100.0, np.where((hour > 8) & (hour < 20), 5.0, 1.0)), 24, [4]),
    (in_proportion, 24, [0, 4]),
]


@needs_compiler("weeks of records")
@pytest.mark.parametrize(("pattern", "days", "shapes"), PATTERNS)
def test_records_of_a_pattern_are_nearly_as_likely_as_they_can_be(pattern, days, shapes):
    times = times_of(days, 288)
    level, spread = np.broadcast_arrays(*pattern(*Calendar("UTC").local(times)))
    rows = level[:, None] + spread[:, None] * np.random.default_rng(8).normal(size=(len(times), 2))
    scorer, block = run(rows, times, seasons="UTC")
    assert counting(scorer)[shapes].all()
    late = slice(len(times) * 5 // 6, None)
    entropy = math.log(2 * math.pi * math.e) + 2 * np.log(spread[late]).mean()
    assert block.log_likelihood[late].mean() == pytest.approx(-entropy, abs=0.25)


@needs_compiler("weeks of records")
def test_what_is_expected_of_a_field_is_that_of_the_hour_in_its_own_units():
    times = times_of(18, 288)
    rng = np.random.default_rng(10)
    _, hour = Calendar("UTC").local(times)
    wave = 100.0 + 20.0 * np.sin(2 * np.pi * hour / 24)
    rows = np.column_stack([wave + rng.normal(size=len(wave)), rng.normal(size=len(wave))])
    at = 17 * 288 + 216  # 18 h, where the wave is lowest
    rows[at, 0] = 118.0
    blamed, blame = blame_of(run(rows, times, seasons="UTC")[1], at)
    assert blamed == [0]
    assert blame.value[0] == 118.0
    assert blame.expected[0] == pytest.approx(80.0, abs=1.0)
    assert blame.deviation[0] == pytest.approx(1.0, abs=0.4)


@needs_compiler("weeks of records")
def test_records_without_a_time_count_as_those_before_them():
    times = times_of(9, 288)
    rows, holes, filled = daily(np.random.default_rng(13), times), times.copy(), times.copy()
    holes[5::7], filled[5::7] = -1, times[4::7][: len(times[5::7])]
    (_, found), (_, expected) = run(rows, holes), run(rows, filled)
    assert found.log_likelihood.tobytes() == expected.log_likelihood.tobytes()
    never = np.full(len(times), -1)
    (_, found), (_, expected) = run(rows, never), run(rows, never, seasons=None)
    assert found.log_likelihood.tobytes() == expected.log_likelihood.tobytes()


@needs_compiler("weeks of records")
def test_times_that_jump_do_not_hide_the_season():
    times = times_of(12, 288)
    rows, odd, rng = daily(np.random.default_rng(14), times), times.copy(), np.random.default_rng(0)
    strays = rng.choice(len(times), 20, replace=False)
    odd[strays] = rng.choice([0, 2**62, 10 * times[0], times[0] - 400 * DAY], 20)
    odd[1000:1020] = odd[1000:1020][::-1]
    odd[1500:1600] += 365 * DAY  # a producer with a wrong clock
    scorer, block = run(rows, odd)
    assert counting(scorer)[0].all()
    usual = np.ones(len(rows), bool)
    usual[strays] = usual[: 9 * 288] = False
    plain = run(rows, times)[1].log_likelihood[usual].mean()
    assert block.log_likelihood[usual].mean() == pytest.approx(plain, abs=0.4)
    assert np.isfinite(block.log_likelihood[16:]).all()


@needs_compiler("weeks of records")
def test_a_season_that_ends_counts_no_longer():
    times = times_of(70, 48)
    rows = daily(np.random.default_rng(16), times)
    rows[12 * 48 :] = np.random.default_rng(17).normal(size=rows[12 * 48 :].shape)
    assert counting(run(rows[: 12 * 48], times[: 12 * 48])[0])[0].all()
    assert not counting(run(rows, times)[0])[0].any()


@needs_compiler("weeks of records")
def test_a_scorer_that_does_not_learn_keeps_its_season():
    times = times_of(20, 96)
    rows = daily(np.random.default_rng(18), times)
    scorer, _ = run(rows[: 3 * 96], times[: 3 * 96])
    scorer.learning = False
    scorer.process(rows[3 * 96 :], None, places_of(times[3 * 96 :]))
    assert not counting(scorer).any()


def test_dates_and_hours_are_those_of_the_time_zone():
    rng = np.random.default_rng(19)
    times = np.sort(rng.integers(0, 2**41, 300))
    for zone in ("Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "UTC"):
        date, hour = Calendar(zone).local(times)
        for time, day, at in zip(times.tolist(), date.tolist(), hour.tolist(), strict=True):
            expected, whole, passed = local(time, zone)
            assert day == expected.toordinal() - 719163
            assert at == pytest.approx(whole + passed, abs=1e-6)
    assert Calendar("UTC").local(np.array([-1, 2**62]))[0].tolist() == [-1, -1]


def test_means_of_quarters_and_deviations_of_hours_are_those_of_the_oracle():
    rng, zone = np.random.default_rng(20), "America/New_York"
    times = times_of(6, 400) + rng.integers(0, 100_000, 2400)  # some change places
    rows = rng.normal(size=(2400, 2)) * [1.0, 30.0]
    rows[rng.random(rows.shape) < 0.1] = np.nan
    days, oracle = Days(2), NaiveDays(zone)
    for row, time in zip(rows, times.tolist(), strict=True):
        oracle.add(row, time)
    for start in range(0, 2400, 300):
        part = slice(start, start + 300)
        date, hour = Calendar(zone).local(times[part])
        days.add(rows[part], rows[part] - 0.5, times[part], date, hour)
    expected = [date for date in oracle.dates() if date.toordinal() - 719163 in days.dates]
    assert len(expected) == len(days.dates) >= 4
    for name, find, n in (("level", oracle.mean, 96), ("spread", oracle.spread, 24)):
        found = [[[find(date, at, v) for v in range(2)] for at in range(n)]
                 for date in expected]  # fmt: skip
        np.testing.assert_allclose(getattr(days, name), found, rtol=1e-4, atol=1e-5)
