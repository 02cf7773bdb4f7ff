"""How many leaves the values of a variable get: what new records say, and where that is kept."""

import numpy as np
import pytest
from interpreter import INTERPRETED

from faust_oslrau.learner import StackedSPN
from faust_oslrau.learner.stacked import resolution
from faust_oslrau.learner.stacked.leaves import WIDE

if INTERPRETED:
    pytest.skip("needs the compiler: long streams", allow_module_level=True)


def smooth(n, d):
    """Positive numbers with long tails that depend on three factors; none comes twice."""
    rng = np.random.default_rng(3)
    loadings = rng.normal(size=(3, d))
    return np.exp(0.7 * (rng.normal(size=(n, 3)) @ loadings + 0.5 * rng.normal(size=(n, d))))


def counts(n, d):
    """Counts of about 60 different values, which rise and fall together."""
    rng = np.random.default_rng(4)
    load = np.exp(0.3 * rng.normal(size=(n, 1)))
    return rng.poisson(rng.uniform(20, 60, d) * load).astype(np.float64)


def learn(rows, start=64, model=None):
    """Learn mini-batches of 256 records, the first of which is small."""
    model = model or StackedSPN().partial_fit(rows[:start])
    for at in range(start, len(rows), 256):
        model.partial_fit(rows[at : at + 256])
    return model


def most_leaves(model):
    """Leaves besides the wide ones of the variable with the most of them."""
    return np.diff(model._training.network.products.leaves.first).max() - len(WIDE)


def test_smooth_values_get_few_leaves_and_ties_many():
    assert most_leaves(learn(smooth(2500, 16))) == 24
    assert most_leaves(learn(counts(2500, 12))) > 42


def test_few_leaves_describe_smooth_values_better(monkeypatch):
    rows = smooth(4000, 16)
    few = learn(rows[:3000]).score_samples(rows[3000:]).mean()
    monkeypatch.setattr(resolution, "FEWEST", 90)
    assert few > learn(rows[:3000]).score_samples(rows[3000:]).mean() + 0.2


def test_few_variables_have_many_leaves_from_the_beginning():
    assert most_leaves(learn(smooth(800, 3))) > 70


@pytest.mark.parametrize("make", [smooth, counts])
def test_a_choice_goes_on_through_bytes(make):
    """What is compared is no part of the state: it is made again from the same records."""
    rows = make(2600, 12)
    rows[1000:, 2] *= 100.0  # the units move while there is a choice
    whole, copies = StackedSPN().partial_fit(rows[:64]), []
    for start in range(64, len(rows), 200):
        for model in (whole, *copies):
            model.partial_fit(rows[start : start + 200])
        copies.append(StackedSPN.from_bytes(whole.to_bytes()))
    assert {copy.to_bytes() for copy in copies} == {whole.to_bytes()}


def test_one_record_counts_no_more_than_twenty_nats():
    model = learn(smooth(600, 16))
    before = model._training.resolution.gain
    model.partial_fit(np.full((1, 16), 1e6))
    assert 0.0 < abs(model._training.resolution.gain - before) <= 20.0
