"""Merged models: the mixture of their networks, itself a network."""

import numpy as np
import pytest
from interpreter import needs_compiler
from scipy import special
from subjects import WITH_MIXTURES

from faust_oslrau.learner import OSLRAU, IncidentParameters, InvalidInputError, StreamScorer
from faust_oslrau.learner.merging import merge_models, merge_scorers


def rows_of(seed, n, shift=0.0, d=4):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * [1.0, 10.0, 0.1, 5.0][:d] + shift
    rows[:, 1] += 10 * rows[:, 0]
    rows[rng.random(n) < 0.3] += 3.0
    rows[::20, 2] = np.nan
    return rows


def model_of(rows, kind=OSLRAU, **parameters):
    return kind(min_count=32, **parameters).partial_fit(rows, batch_size=64)


def test_the_density_is_the_mixture_by_records(kind):
    models = [
        model_of(rows_of(1, 1500), kind),
        model_of(rows_of(2, 500, 2.0), kind),
        model_of(rows_of(3, 900, -1.0), kind, max_leaf_vars=0),
    ]
    merged, rows = merge_models(models), rows_of(4, 200)
    logs, shares = [model.score_samples(rows) for model in models], np.array([15, 5, 9]) / 29
    # up to the floors of variances, which are in units of the largest model
    expected = special.logsumexp(logs, axis=0, b=shares[:, None])
    np.testing.assert_allclose(merged.score_samples(rows), expected, atol=1e-3)
    assert merged.n_records_ == 2900
    assert merged.n_nodes_ == 1 + sum(model.n_nodes_ - 1 for model in models)


def test_a_merged_model_is_a_network_that_learns_on_and_the_others_stay_as_they_were(kind):
    models = [model_of(rows_of(1, 1500), kind), model_of(rows_of(2, 1500, 2.0), kind)]
    before = [model.to_bytes() for model in models]
    merged = merge_models(models)
    assert [model.to_bytes() for model in models] == before
    merged = type(merged).from_bytes(merged.to_bytes())
    fresh = rows_of(3, 3000, 5.0)
    frozen = merged.score_samples(fresh[-1000:]).mean()
    merged.partial_fit(fresh[:-1000], batch_size=256)
    assert merged.score_samples(fresh[-1000:]).mean() > frozen
    assert np.isfinite(merged.contributions(fresh[:5])).sum() == np.isfinite(fresh[:5]).sum()


def test_models_that_do_not_go_together_are_refused():
    model = model_of(rows_of(1, 100))
    with pytest.raises(InvalidInputError, match="expected mixtures in each, or in none"):
        merge_models([model, model_of(rows_of(1, 100), WITH_MIXTURES)])
    for models in ([], [model, OSLRAU()]):
        with pytest.raises(InvalidInputError, match="expected some that have learned records"):
            merge_models(models)
    with pytest.raises(InvalidInputError, match="expected as many fields in each"):
        merge_models([model, model_of(rows_of(1, 100, d=3))])
    unknown = rows_of(1, 100)
    unknown[:, 3] = np.nan
    with pytest.raises(InvalidInputError, match="expected each field to have been observed"):
        merge_models([model, model_of(unknown)])


def scorer_of(rows, kind=OSLRAU, keys=None, **parameters):
    scorer = StreamScorer(kind(), **parameters)
    scorer.process(rows, keys)
    return scorer


def test_a_merged_scorer_goes_on_with_the_mixture(kind):
    scorers = [scorer_of(rows_of(1, 700), kind), scorer_of(rows_of(2, 1200), kind)]
    merged = StreamScorer.from_bytes(merge_scorers(scorers))
    assert merged.n_records == 1200 and merged.learner.n_records_ == 496 + 1008  # at boundaries
    block = merged.process(rows_of(3, 500))
    assert np.isfinite(block.log_likelihood).all() and (block.p_value < 0.01).mean() < 0.1


def machines_of(names, n, seed, d=4):
    """Records of machines, each with a level and a scale that its name tells."""
    rng = np.random.default_rng(seed)
    of = rng.choice(names, n)
    like = [np.random.default_rng([7, name]) for name in range(max(names) + 1)]
    level = np.array([8.0 * rng.normal(size=d) for rng in like])
    scale = np.array([np.exp(0.8 * rng.normal(size=d)) for rng in like])
    mixing = np.eye(d) + 0.7 * np.random.default_rng(8).normal(size=(2, d, d))
    own = np.einsum("nij,nj->ni", mixing[of % 2], rng.normal(size=(n, d)))
    return [b"machine-%d" % name for name in of], level[of] + scale[of] * own


@needs_compiler("long streams")
def test_an_entity_keeps_its_level_and_a_merged_scorer_goes_on(kind):
    plant, other = (  # the first with 80 machines, the other with 40 others
        scorer_of(10.0 + rows, kind, keys, max_entities=200, entity_events=["unusual"])
        for keys, rows in (machines_of(range(80), 6000, 1), machines_of(range(80, 120), 3000, 2))
    )
    merged = StreamScorer.from_bytes(merge_scorers([plant, other]))
    assert merged.n_entities == 120 and merged.entity_events == ("unusual",)
    for name, scorer in (("machine-3", plant), ("machine-90", other)):
        profile, before = merged.entity_profile(name), scorer.entity_profile(name)
        np.testing.assert_allclose(profile.level, before.level, rtol=1e-9)
        np.testing.assert_allclose(profile.deviation, before.deviation, rtol=0.1)
    keys, rows = machines_of(list(range(120)), 9000, 6)
    block = merged.process(10.0 + rows, keys)
    assert block.learned > 8000 and (block.p_value < 0.01).mean() < 0.03
    assert StreamScorer.from_bytes(merged.to_bytes()).to_bytes() == merged.to_bytes()


def test_of_too_many_entities_those_not_seen_for_longest_give_way():
    scorers = []
    for first in (0, 30):
        keys, rows = machines_of(list(range(first, first + 30)), 600, first)
        keys[-20:] = [b"machine-%d" % (first + k) for k in range(20)]  # the latest ones
        scorers.append(scorer_of(rows, keys=keys, max_entities=40, max_former_entities=100))
    merged = StreamScorer.from_bytes(merge_scorers(scorers))
    assert (merged.n_entities, merged.n_former_entities) == (40, 20)
    for first in (0, 30):
        assert merged.entity_profile(f"machine-{first + 19}") is not None
        assert merged.entity_profile(f"machine-{first + 29}") is None


def walks(seed, n, noise):
    """Records of which each is near the one before."""
    return np.cumsum(noise * np.random.default_rng(seed).normal(size=(n, 3)), axis=0)


@needs_compiler("long streams")
def test_models_with_a_history_are_merged_and_their_running_means_begin_anew():
    scorers = [scorer_of(walks(k, 2000, 1.0), history=["5"]) for k in range(2)]
    merged = StreamScorer.from_bytes(merge_scorers(scorers))
    found = [scorer.process(walks(7, 500, 1.0)).log_likelihood for scorer in (merged, *scorers)]
    assert np.isfinite(found[0]).all()
    assert found[0].mean() > max(scores.mean() for scores in found[1:]) - 0.05


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kind": WITH_MIXTURES}, "expected mixtures in each, or in none"),
        ({"transforms": {0: "log1p"}}, "expected those with the same transforms"),
        ({"history": ["6"]}, "expected those with the same history"),
        ({"seasons": "UTC"}, "expected those without seasons$"),
        ({"max_entities": 1, "keys": [b"a"] * 100}, "expected those with the same max_entities"),
    ],
)
def test_scorers_of_other_settings_are_refused(parameters, message):
    rows = np.abs(rows_of(1, 100))
    with pytest.raises(InvalidInputError, match=message):
        merge_scorers([scorer_of(rows), scorer_of(rows, **parameters)])
    for scorers in ([], [scorer_of(rows), scorer_of(rows[:10])]):
        with pytest.raises(InvalidInputError, match="expected some that have learned records"):
            merge_scorers(scorers)


def test_a_merged_scorer_follows_incidents_and_silences_anew():
    """An open incident, and the gaps between records, are those of one partition's log."""
    rows = rows_of(1, 1400)
    rows[1300:] += 100.0  # an incident that does not end
    scorer = StreamScorer(OSLRAU(), incidents=IncidentParameters(), silences=True)
    times = 1000 * np.arange(len(rows))
    scorer.process(rows, places=np.column_stack([np.arange(len(rows)), times]))
    assert scorer.open_incidents and scorer.silence_limit is not None
    before = scorer.to_bytes()
    merged = StreamScorer.from_bytes(merge_scorers([scorer, scorer_of(rows_of(2, 300))]))
    assert (merged.open_incidents, merged.silence_limit) == ([], None)
    assert (merged.incidents, merged.silences) == (scorer.incidents, True)
    assert scorer.to_bytes() == before
    later = 10**9 + 1000 * np.arange(400)  # another log, with other time stamps
    block = merged.process(rows_of(3, 400), places=np.column_stack([np.arange(400), later]))
    assert not block.silences
