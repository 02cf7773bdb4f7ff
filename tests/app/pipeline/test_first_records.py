"""The first records of a partition choose its fields, are learned, and get no score themselves."""

import json

import numpy as np
import pytest
from as_records import as_records

from faust_oslrau.app.pipeline import PartitionPipeline, chosen_told
from faust_oslrau.app.settings import Settings

FIRST = 240


def requests(n=700):
    """Records of which the first lacks a field, with a code and a counter."""
    rng = np.random.default_rng(1)
    rows = [
        {"x": rng.normal(), "y": rng.normal(), "n": i, "status": int(rng.choice([200, 404, 503]))}
        for i in range(n)
    ]
    del rows[0]["y"]
    return timed(rows)


def record(offset, row):
    return timed([row], offset)[0]


def timed(rows, first=0):
    return as_records(rows, first=first, time=lambda offset: 1000 * offset, key=b"key")


def scores(settings, records):
    pipeline = PartitionPipeline("features", 0, settings)
    block = pipeline.process(records)
    return pipeline, block, [json.loads(message.value) for message in block.scores]


def test_they_are_learned_as_if_the_settings_had_chosen_what_they_choose():
    pipeline, block, found = scores(Settings(), requests())
    assert pipeline.fields == ("x", "y", "status")
    assert pipeline.left_out == ("n (only grows)",)
    chosen = Settings(features=("x", "y", "status"), kinds=(("status", "category"),))
    _, expected_block, expected = scores(chosen, requests())
    assert found[FIRST:] == expected[FIRST:]
    assert block.learned == expected_block.learned
    assert {(s["log_likelihood"], s["p_value"], s["warming_up"]) for s in found[:FIRST]} == {
        (None, None, True)
    }
    assert np.isnan(block.rows[:FIRST]).all() and not np.isnan(block.rows[FIRST:]).any()


# Three before the choice and one after it.
BAD = ((3, b"{"), (50, b'{"s": [1]}'), (100, b'{"x": 1e400}'), (300, b"[]"))


def test_invalid_ones_are_dead_letters_and_do_not_choose():
    records = requests()
    for offset, bad in BAD:
        records[offset] = record(offset, bad)
    _, block, found = scores(Settings(), records)
    reasons = {"not_json": 1, "no_features": 1, "not_finite": 1, "not_an_object": 1}
    assert block.reasons == reasons
    scored = [message.offset for message in block.scores]
    assert sorted(scored + [m.offset for m in block.dead_letters]) == list(range(len(records)))
    nulls = [s["offset"] for s in found if s["log_likelihood"] is None]
    assert nulls == scored[:FIRST]


def test_there_is_no_snapshot_before_the_fields_are_chosen():
    pipeline = PartitionPipeline("features", 0, Settings())
    assert pipeline.process(requests()[: FIRST - 1]).learned == 0
    assert pipeline.is_choosing and pipeline.fields is None
    with pytest.raises(ValueError, match="expected chosen fields"):
        pipeline.snapshot(0, FIRST - 1)
    assert pipeline.process([requests()[FIRST - 1]]).learned == FIRST
    assert not pipeline.is_choosing
    restored = PartitionPipeline.restored(pipeline.snapshot(0, FIRST), Settings())
    assert (restored.fields, restored.left_out) == (pipeline.fields, pipeline.left_out)


def test_of_very_large_records_fewer_choose(monkeypatch):
    monkeypatch.setattr("faust_oslrau.app.pipeline.first_records.MOST_BYTES", 10_000)
    sizes = np.cumsum([len(each.value) for each in requests()])
    _, _, found = scores(Settings(), requests())
    unscored = [s["offset"] for s in found if s["log_likelihood"] is None]
    assert unscored == list(range(np.searchsorted(sizes, 10_000, side="right") + 1))


def test_fields_are_chosen_early_where_a_file_ends():
    pipeline = PartitionPipeline("features", 0, Settings())
    pipeline.process(requests()[:100])
    assert pipeline.choose_fields().learned > 0 and pipeline.scorer.n_records == 100
    with pytest.raises(ValueError, match="expected first records"):
        pipeline.choose_fields()


def test_those_that_do_not_fit_what_they_choose_are_counted_and_not_learned():
    records = requests()
    records[7] = record(7, {"x": 1.5, "y": "broken"})
    pipeline, block, _ = scores(Settings(), records)
    assert "y" in pipeline.numbers and pipeline.n_unfit == 1
    assert chosen_told(pipeline).endswith("; 1 of them do not fit and are not learned")
    assert len(block.scores) == len(records) and pipeline.scorer.n_records == len(records) - 1


def degrees(n=700, **fields):
    """Whole degrees: of summer in the first records, then of winter."""
    rng = np.random.default_rng(2)
    level = np.where(np.arange(n) < 500, 15, -8)
    rows = ({"temp": int(x)} | {f: rng.normal() for f in fields} for x in rng.poisson(3, n) + level)
    return timed(rows)


@pytest.mark.parametrize("fields", [{}, {"x": 1}])
@pytest.mark.parametrize(
    "settings", [{}, {"entity": "key", "history": ("10",)}, {"seasons": "UTC", "rates": "1m"}]
)
def test_a_count_that_they_chose_makes_no_dead_letter_later(fields, settings):
    settings = Settings(**settings)
    pipeline, block, _ = scores(settings, degrees(500, **fields))
    assert pipeline.chosen_counts == {"temp"} and not block.dead_letters
    restored = PartitionPipeline.restored(pipeline.snapshot(0, 500), settings)
    for each in (pipeline, restored):
        later = each.process(degrees(**fields)[500:])
        assert not later.dead_letters and len(later.scores) == 200
        temp = later.rows[:, pipeline.fields.index("temp")]
        replaced = np.isnan(temp) if fields else temp == 0
        n_wrong = later.wrong_types["temp"]
        assert 150 < n_wrong <= 200
        assert n_wrong == replaced.sum() if fields else n_wrong <= replaced.sum()


@pytest.mark.parametrize("named", [{}, {"kinds": (("temp", "number"),)}])
def test_what_is_no_number_in_some_of_them_is_missing_unless_the_field_is_named(named):
    rng, settings = np.random.default_rng(0), Settings(**named)
    rows = [{"temp": rng.normal() if i % 5 else "n/a", "x": rng.normal()} for i in range(600)]
    rows[400] = {"temp": 1.0, "x": "n/a"}
    records = timed(rows)
    pipeline, block, _ = scores(settings, records[:500])
    refused = set(range(240, 500, 5)) if named else {400}
    assert {letter.offset for letter in block.dead_letters} == refused
    for each in (pipeline, PartitionPipeline.restored(pipeline.snapshot(0, 500), settings)):
        later = each.process(records[500:])
        assert len(later.dead_letters) == (20 if named else 0)
        assert later.wrong_types == ({} if named else {"temp": 20})


def test_a_count_that_the_settings_name_is_never_negative():
    _, block, _ = scores(Settings(kinds=(("temp", "count"),)), degrees())
    assert block.reasons["out_of_range"] > 150 and not block.wrong_types
