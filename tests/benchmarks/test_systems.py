"""Generated streams of real systems' processes, their faults and their lasting changes."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import rankdata

from benchmarks.systems import (
    CHOICES,
    EXCHANGEABLE,
    FINAL,
    KINDS,
    changes,
    redrawn,
    relevelled,
    with_aftermaths,
    with_faults,
    with_lone,
    with_spikes,
)

N = 6_000
SYSTEMS = {**CHOICES, **FINAL, **EXCHANGEABLE}


def _stream(name, n=N, seed=0):
    return SYSTEMS[name](np.random.default_rng(seed), n)


def test_no_system_is_in_two_sets():
    assert len(SYSTEMS) == len(set(SYSTEMS.values()))
    assert (len(CHOICES), len(FINAL), len(EXCHANGEABLE)) == (6, 6, 11)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_gives_finite_fields_that_vary_and_the_same_each_time(name):
    x = _stream(name)
    assert x.shape == (N, x.shape[1]) and 1 <= x.shape[1] <= 20 and x.dtype == np.float64
    assert np.isfinite(x).all() and np.abs(x).max() < 1e8 and (x.std(axis=0) > 0).all()
    assert np.array_equal(x, _stream(name)) and not np.array_equal(x, _stream(name, seed=1))


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("put", [with_faults, with_lone, with_spikes, with_aftermaths])
def test_faults_are_where_their_labels_are_and_few(name, put):
    x = _stream(name)
    before = x.copy()
    made = put(x, np.random.default_rng(1))
    assert np.array_equal(x, before) and np.isfinite(made.x).all()
    assert not made.label[:2_000].any() and 0 < np.mean(made.label > 0) <= 0.05
    assert set(made.label) == set(range(len(made.kinds) + 1))
    differs = (made.x != x).any(axis=1)
    assert not differs[made.label == 0].any()
    single = [k for k, kind in enumerate(made.kinds, 1) if kind in ("lone", "spike")]
    assert differs[np.isin(made.label, single)].all()
    again = put(x, np.random.default_rng(1))
    assert np.array_equal(made.x, again.x) and np.array_equal(made.label, again.label)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_has_as_many_records_as_its_kind_and_is_apart_from_others(kind):
    made = with_faults(_stream("pump", 60_000), np.random.default_rng(0), [kind])
    places = [np.flatnonzero(made.label == k + 1) for k in range(len(made.kinds))]
    assert len(places) > 1 and set(made.kinds) == {kind}
    for at in places:
        assert KINDS[kind].shortest <= len(at) <= KINDS[kind].longest
        assert at[-1] - at[0] == len(at) - 1
    assert all(b[0] - a[-1] > 500 for a, b in pairwise(places))


def test_a_long_stream_has_faults_of_all_kinds():
    made = with_faults(_stream("queue", 60_000), np.random.default_rng(0))
    assert set(made.kinds) == {*KINDS, "group"}
    group = made.label == made.kinds.index("group") + 1
    assert np.diff(np.flatnonzero(group)).max() > 200
    assert with_faults(_stream("lift"), np.random.default_rng(0)).kinds.count("relation") == 0


def test_a_stuck_field_keeps_its_last_value_and_a_burst_follows():
    x = _stream("link", 20_000)
    made = with_aftermaths(x, np.random.default_rng(0))
    assert made.kinds[:4] == ("stuck", "burst", "stuck", "burst")
    held, struck = np.flatnonzero(made.label == 1), np.flatnonzero(made.label == 2)
    assert struck[0] - held[-1] == 101
    assert (np.ptp(made.x[held[0] - 1 : held[-1] + 1], axis=0) == 0).sum() >= 1


def test_broken_relations_and_spikes_leave_values_as_they_should_be():
    x = _stream("payments", 20_000)
    made = with_faults(x, np.random.default_rng(0), ["relation"])
    assert all(np.isin(new, old).all() for new, old in zip(made.x.T, x.T, strict=True))
    codes = _stream("retries")
    spikes = with_spikes(codes, np.random.default_rng(0))
    at = np.flatnonzero(spikes.label)
    assert set(np.diff(at)) == {500} and len(np.unique(spikes.x[at])) == 1
    assert not np.isin(spikes.x[at], codes).any()
    assert with_lone(codes, np.random.default_rng(0)).label.max() == round(0.005 * N)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_change_leaves_what_was_before_and_is_for_good(name):
    for change in (changes, redrawn, relevelled):
        made = change(SYSTEMS[name], np.random.default_rng(2), N)
        again = change(SYSTEMS[name], np.random.default_rng(2), N)
        assert made.x.shape == _stream(name).shape and np.isfinite(made.x).all()
        assert made.at == again.at and np.array_equal(made.x, again.x)
        assert 0.3 * N - 1 <= made.at <= 0.7 * N


def test_all_fields_have_another_level_after_a_change():
    made = relevelled(CHOICES["payments"], np.random.default_rng(0), 20_000)
    before, after = made.x[: made.at].mean(axis=0), made.x[made.at :].mean(axis=0)
    error = made.x[: made.at].std(axis=0) / np.sqrt(len(made.x) - made.at)
    assert (np.abs(after - before) > 5 * error).all()


def test_exchangeable_streams_have_the_shares_that_they_say():
    n = 100_000
    draw = {name: _stream(name, n) for name in EXCHANGEABLE}
    _, counts = np.unique(draw["status codes"], return_counts=True)
    assert np.allclose(counts / n, [0.9, 0.06, 0.03, 0.01], atol=0.003)
    assert abs(draw["sparse counts"].mean() - 0.05) < 0.003
    assert abs(draw["rare flag"].mean() - 0.02) < 0.002
    assert abs((draw["mostly zero"] == 0).mean() - 0.9) < 0.004
    assert set(draw["battery"][:, 0]) == set(range(101))
    assert np.array_equal(draw["tenths"], np.round(draw["tenths"], 1))
    assert (np.corrcoef(draw["rounded fields"].T) > 0.7).all()


@pytest.mark.parametrize("name", [*EXCHANGEABLE, "payments", "requests"])
def test_exchangeable_records_do_not_resemble_the_ones_before(name):
    for field in _stream(name, 20_000).T:
        ranks = rankdata(field)
        assert abs(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) < 0.03


OF_SEQUENCES = ["retries", "queue", "thermostat", "heap", "pump",
                "lift", "link", "meter", "cell", "host"]  # fmt: skip


@pytest.mark.parametrize("name", OF_SEQUENCES)
def test_other_systems_have_a_memory(name):
    fields = _stream(name, 20_000).T
    assert max(np.corrcoef(field[1:], field[:-1])[0, 1] for field in fields) > 0.1
