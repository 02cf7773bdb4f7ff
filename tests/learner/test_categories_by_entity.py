"""Categories of entities: what is usual for one of them alone."""

import numpy as np
import pytest

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.categories import by_entity
from faust_oslrau.learner.categories.layer import Categories
from faust_oslrau.learner.categories.tree import STRENGTHS
from faust_oslrau.learner.entities.roster import Roster

MODE, CODE = 3.0, 5.0


def devices(n=4000, k=40, seed=0, differ=True):
    """Rows of a number, a mode and a region, with their devices, which differ by their modes."""
    rng = np.random.default_rng(seed)
    device, home = rng.integers(k, size=n), rng.integers(4, size=k)
    mode = home[device] if differ else rng.integers(4, size=n)
    rows = np.column_stack([rng.normal(size=n), mode, rng.integers(3, size=n)])
    return rows, device, home


def scored(rows, device, limit=1000):
    scorer = StreamScorer(OSLRAU(), n_categories=2, max_entities=limit)
    return scorer, scorer.process(rows, entity=[str(each) for each in device])


def learned(rows, device, batch=100, limit=1000):
    """Layers that have learned batches, with and without entities, and the roster of these."""
    own, pooled, roster = Categories(2), Categories(2), Roster(limit)
    for start in range(0, len(rows), batch):
        some = slice(start, start + batch)
        own.take(rows[some], None, roster.take([str(d).encode() for d in device[some]]))
        pooled.take(rows[some])
        for layer in (own, pooled):
            layer.end_batch(None, learning=True)
    return own, pooled, roster


def test_a_value_is_as_likely_as_its_share_in_own_records_and_what_the_tree_says():
    rows, device, _ = devices()
    own, pooled, roster = learned(rows, device)
    of = own.counts.own
    for each in (0, 7):
        slot, mine = roster.find(str(each).encode()), rows[device == each]
        for f in range(2):
            weights = np.exp(of.prior[f] + of.votes[slot, f])
            for value in range(3):
                row = np.full((1, 3), np.nan)
                row[0, 1 + f] = value
                p = np.exp(pooled.average(row).log_probability[0])
                n = np.count_nonzero(mine[:, 1 + f] == value)
                shares = (p + STRENGTHS * n) / (1.0 + STRENGTHS * len(mine))
                found = own.average(row, None, np.array([slot])).log_probability
                assert np.exp(found[0]) == pytest.approx(weights @ shares / weights.sum())


def test_probabilities_of_all_pairs_of_values_add_up_to_one():
    own, _, roster = learned(*devices()[:2])
    slots = own.counts.with_each(np.full((1, 3), roster.find(b"3")), 0)
    pairs = own.counts.with_each(slots, 1)
    assert np.exp(own.counts.log_probability(pairs)).sum() == pytest.approx(1.0)
    slots[:, 1] = -1  # summed over the regions
    assert np.exp(own.counts.log_probability(slots)).sum() == pytest.approx(1.0)


def test_entities_that_are_alike_are_nearly_as_all_together():
    rows, device, _ = devices(8000, differ=False)
    own, pooled, roster = learned(rows, device)
    entities, _ = roster.take([str(d).encode() for d in device])
    found = own.average(rows, None, entities).log_probability
    assert np.abs(found - pooled.average(rows).log_probability).mean() < 0.05


def test_one_device_of_ten_has_a_mode_of_its_own():
    rows, device, _ = devices(20_000, differ=False)
    steady = device < 4
    rows[steady, 1] = 2.0
    at = 10_000 + np.flatnonzero(steady[10_000:])[::200]
    rows[at, 1] = 0.0
    p_value = scored(rows, device)[1].p_value
    assert np.median(p_value[at]) <= 0.005
    rest = np.delete(p_value, at)[1000:]
    assert np.mean(rest <= 0.01) < 0.015


def test_a_device_in_the_mode_of_others_is_unusual_and_its_own_mode_expected():
    rows, device, home = devices(6000)
    at = np.arange(3000, 6000, 500)
    rows[at, 1] = (home[device[at]] + 1) % 4
    _, block = scored(rows, device)
    assert (block.p_value[at] <= 0.02).all() and np.median(block.p_value[at]) <= 0.001
    alone = StreamScorer(OSLRAU(), n_categories=2).process(rows)
    assert (alone.p_value[at] > 0.05).all()
    rest = np.delete(block.p_value, at)[240:]
    assert np.mean(rest <= 0.01) < 0.015
    for row in np.flatnonzero(np.isin(np.flatnonzero(block.is_anomaly), at)):
        where = np.flatnonzero(block.is_anomaly)[row]
        assert block.blame.order[row, 0] == 1
        assert block.blame.expected[row, 1] == home[device[where]]


def test_an_entity_that_takes_the_place_of_another_begins_anew():
    rows = np.column_stack([np.zeros(400), np.repeat([0.0, 1.0], 200), np.zeros(400)])
    own, _, roster = learned(rows, np.repeat([0, 1], 200), limit=1)
    assert roster.find(b"0") is None
    mine = own.counts.own.counts[roster.find(b"1")]
    assert mine.sum() == 400.0  # of both categories
    assert mine[own.counts.slots(rows[-1:, 1:])].tolist() == [[200.0, 200.0]]


def test_counts_are_bounded(monkeypatch):
    monkeypatch.setattr(by_entity, "MOST_COUNTS", 100)
    rows, device, _ = devices()
    own, pooled, _ = learned(rows, device)
    assert own.counts.own.counts.size <= 100
    beyond = own.counts.own.take(np.array([len(own.counts.own.counts)]), np.zeros(1, bool))
    found = own.average(rows[-1:], None, beyond).log_probability
    np.testing.assert_array_equal(found, pooled.average(rows[-1:]).log_probability)
