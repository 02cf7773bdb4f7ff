"""Merged models: the mixture of their networks, itself a network."""

import numpy as np
import pytest
from scipy import special

from faust_oslrau.learner import (
    OSLRAU,
    IncidentParameters,
    InvalidInputError,
    StackedSPN,
    StreamScorer,
)
from faust_oslrau.learner.merging import merge_models, merge_scorers


def rows_of(seed, n, shift=0.0, d=4):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * [1.0, 10.0, 0.1, 5.0][:d] + shift
    rows[:, 1] += 10 * rows[:, 0]
    rows[rng.random(n) < 0.3] += 3.0
    rows[::20, 2] = np.nan
    return rows


def model_of(rows, **parameters):
    return OSLRAU(min_count=32, **parameters).partial_fit(rows, batch_size=64)


MODELS = [
    model_of(rows_of(1, 1500)),
    model_of(rows_of(2, 500, 2.0)),
    model_of(rows_of(3, 900, -1.0), max_leaf_vars=0),
]


def stacked_of(rows, **parameters):
    return StackedSPN(**parameters).partial_fit(rows, batch_size=256)


def mixture_of(models, rows):
    counts = np.array([model.n_records_ for model in models])
    logs = [model.score_samples(rows) for model in models]
    return special.logsumexp(logs, axis=0, b=(counts / counts.sum())[:, None])


def test_the_density_is_the_mixture_by_records():
    merged, rows = merge_models(MODELS), rows_of(4, 200)
    expected = mixture_of(MODELS, rows)
    # up to the floors of variances, which are in units of the largest model
    np.testing.assert_allclose(merged.score_samples(rows), expected, atol=1e-3)
    assert merged.n_records_ == 2900
    assert merged.n_nodes_ == 1 + sum(model.n_nodes_ for model in MODELS)


def test_a_merged_model_is_a_network_that_learns_on():
    merged = merge_models(MODELS)
    again = OSLRAU.from_bytes(merged.to_bytes())
    rows = rows_of(5, 600, 30.0)
    before = again.score_samples(rows).mean()
    again.partial_fit(rows, batch_size=256)
    assert again.score_samples(rows).mean() > before + 1
    assert np.isfinite(again.contributions(rows[:5])).sum() == np.isfinite(rows[:5]).sum()


def changed(seed, n, shift):
    """Rows after a sudden change in a third of the stream."""
    rows = rows_of(seed, n)
    rows[-n // 3 :] = 0.3 * rows[-n // 3 :] + shift
    return rows


@pytest.mark.parametrize(
    ("streams", "tolerance"),
    [
        ([rows_of(1, 1500), rows_of(2, 500, 2.0), rows_of(3, 900, -1.0)], 0.1),  # in the warm-up
        ([rows_of(1, 4500), rows_of(2, 4500, 5.0)], 0.1),  # after it
        ([changed(1, 2400, 30.0), rows_of(2, 1500)], 0.5),  # a challenger has another shrinkage
    ],
)
def test_the_density_of_stacked_models_is_nearly_their_mixture(streams, tolerance):
    models = [stacked_of(rows, random_state=i) for i, rows in enumerate(streams)]
    merged, rows = merge_models(models), np.concatenate([each[-300:] for each in streams])
    error = merged.score_samples(rows) - mixture_of(models, rows)
    assert error.mean() > -0.05 and abs(error).mean() < tolerance
    assert merged.n_records_ == sum(map(len, streams))
    restored = StackedSPN.from_bytes(merged.to_bytes())
    assert restored.score_samples(rows).tobytes() == merged.score_samples(rows).tobytes()


def test_a_wide_stacked_model_has_one_gaussian_for_the_whole_stream_of_all_parts():
    streams = [np.random.default_rng(k).normal(0.1 * k, 1.0, (300, 130)) for k in range(2)]
    models = [stacked_of(each) for each in streams]
    rows = np.random.default_rng(2).normal(0.05, 1.0, (300, 130))
    best = max(model.score_samples(rows).mean() for model in models)
    assert merge_models(models).score_samples(rows).mean() > best


def test_a_merged_stacked_model_is_a_network_that_learns_on():
    streams = [rows_of(1, 1500), rows_of(2, 1500, 2.0)]
    models = [stacked_of(rows) for rows in streams]
    before = [model.to_bytes() for model in models]
    merged = merge_models(models)
    assert [model.to_bytes() for model in models] == before
    fresh = np.random.default_rng(0).permutation(
        np.concatenate([rows_of(3, 3000), rows_of(4, 3000, 2.0)])
    )
    frozen = merged.score_samples(fresh[-1000:]).mean()
    merged.partial_fit(fresh[:-1000], batch_size=256)
    assert merged.score_samples(fresh[-1000:]).mean() > frozen
    drawn = merged.sample(4000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), np.nanmean(fresh, axis=0), atol=0.6)
    assert np.isfinite(merged.contributions(fresh[:5])).sum() == np.isfinite(fresh[:5]).sum()


@pytest.mark.parametrize("make", [model_of, stacked_of])
@pytest.mark.parametrize("apart", [0.0, 4.0])
def test_records_of_all_partitions_are_described_as_well_as_by_the_best_of_their_models(
    make, apart
):
    parts = [make(rows_of(k, 800, apart * k)) for k in range(4)]
    held_out = np.concatenate([rows_of(9 + k, 1000, apart * k) for k in range(4)])
    best = max(part.score_samples(held_out).mean() for part in parts)
    gain = merge_models(parts).score_samples(held_out).mean() - best
    assert gain > (-0.05 if apart == 0.0 else 1.0)


@pytest.mark.parametrize(("make", "kind"), [(model_of, OSLRAU), (stacked_of, StackedSPN)])
def test_models_that_do_not_go_together_are_refused(make, kind):
    model = make(rows_of(1, 100))
    for models in ([], [model, kind()]):
        with pytest.raises(InvalidInputError, match="expected some that have learned records"):
            merge_models(models)
    with pytest.raises(InvalidInputError, match="expected as many fields in each"):
        merge_models([model, make(rows_of(1, 100, d=3))])
    unknown = rows_of(1, 100)
    unknown[:, 3] = np.nan
    with pytest.raises(InvalidInputError, match="expected each field to have been observed"):
        merge_models([model, make(unknown)])


def scorer_of(rows, kind=OSLRAU, keys=None, **parameters):
    scorer = StreamScorer(kind(), **parameters)
    scorer.process(rows, keys)
    return scorer


@pytest.mark.parametrize("kind", [OSLRAU, StackedSPN])
def test_a_merged_scorer_goes_on_with_the_mixture(kind):
    scorers = [scorer_of(rows_of(1, 700), kind), scorer_of(rows_of(2, 1200), kind)]
    merged = StreamScorer.from_bytes(merge_scorers(scorers), kind)
    assert merged.n_records == 1200 and merged.learner.n_records_ == 496 + 1008  # at boundaries
    block = merged.process(rows_of(3, 500))
    assert np.isfinite(block.log_likelihood).all() and (block.p_value < 0.01).mean() < 0.1


@pytest.mark.parametrize(
    ("layer", "parameters"),
    [
        ("entities", {"keys": [b"a"] * 100, "max_entities": 1}),
        ("history", {"history": ["10"]}),
        ("stretches", {"stretches": [8]}),
        ("seasons", {"seasons": "UTC"}),
    ],
)
def test_scorers_with_a_layer_of_one_partition_are_refused(layer, parameters):
    rows = rows_of(1, 100)
    with pytest.raises(InvalidInputError, match=f"expected those without {layer}$"):
        merge_scorers([scorer_of(rows), scorer_of(rows, **parameters)])


def test_scorers_with_models_of_different_kinds_are_refused():
    rows = rows_of(1, 100)
    with pytest.raises(InvalidInputError, match="expected those of one kind"):
        merge_scorers([scorer_of(rows), scorer_of(rows, StackedSPN)])


def test_scorers_of_other_transforms_or_without_a_model_are_refused():
    rows = np.abs(rows_of(1, 100))
    with pytest.raises(InvalidInputError, match="expected those with the same transforms"):
        merge_scorers([scorer_of(rows), scorer_of(rows, transforms={0: "log1p"})])
    for scorers in ([], [scorer_of(rows), scorer_of(rows[:10])]):
        with pytest.raises(InvalidInputError, match="expected some that have learned records"):
            merge_scorers(scorers)


def test_a_merged_scorer_follows_incidents_and_silences_anew():
    """An open incident, and the gaps between records, are those of one partition's log."""
    rows = rows_of(1, 800)
    rows[700:] += 100.0  # an incident that does not end
    scorer = StreamScorer(OSLRAU(), incidents=IncidentParameters(), silences=True)
    times = 1000 * np.arange(len(rows))
    scorer.process(rows, places=np.column_stack([np.arange(len(rows)), times]))
    assert scorer.open_incident is not None and scorer.silence_limit is not None
    before = scorer.to_bytes()
    merged = StreamScorer.from_bytes(merge_scorers([scorer, scorer_of(rows_of(2, 300))]))
    assert (merged.open_incident, merged.silence_limit) == (None, None)
    assert (merged.incidents, merged.silences) == (scorer.incidents, True)
    assert scorer.to_bytes() == before
    later = 10**9 + 1000 * np.arange(400)  # another log, with other time stamps
    block = merged.process(rows_of(3, 400), places=np.column_stack([np.arange(400), later]))
    assert not block.silences
