"""Seasons from the records of a partition to its messages."""

import numpy as np
import orjson
import pytest

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.pipeline import IncompatibleSnapshotError, PartitionPipeline
from faust_oslrau.app.settings import Settings, load_settings
from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.topics import Record

N = 8 * 96
TIMES = 1_767_225_600_000 + 900_000 * np.arange(N)
WAVE = 6.0 * np.sin(2 * np.pi * np.arange(N) / 96)
ROWS = WAVE[:, None] + np.random.default_rng(5).normal(size=(N, 2))
SETTINGS = Settings(features=["a", "b"], seasons="Europe/Berlin")


def records(times=TIMES):
    for offset, (row, time) in enumerate(zip(ROWS.tolist(), times.tolist(), strict=True)):
        yield Record("features", 0, offset, time, None, orjson.dumps({"a": row[0], "b": row[1]}))


def test_scores_are_those_of_the_scorer_alone_and_depend_on_the_time_stamps():
    block = PartitionPipeline("features", 0, SETTINGS).process(list(records()))
    scorer = StreamScorer(OSLRAU(), seasons="Europe/Berlin")
    alone = scorer.process(ROWS, None, np.column_stack([np.arange(N), TIMES]))
    assert block.log_likelihood.tobytes() == alone.log_likelihood.tobytes()
    faster = PartitionPipeline("features", 0, SETTINGS).process(list(records(TIMES // 1000)))
    assert faster.log_likelihood.tobytes() != block.log_likelihood.tobytes()


def test_snapshots_and_cuts_do_not_change_a_message():
    whole = PartitionPipeline("features", 0, SETTINGS)
    expected = [message.value for message in whole.process(list(records())).scores]
    pipeline, found = PartitionPipeline("features", 0, SETTINGS), []
    for piece in np.array_split(np.arange(N), [0, 5, 16, 40, 300, 301, 600, 700]):
        pipeline = PartitionPipeline.restored(
            pipeline.snapshot(0, pipeline.next_offset or 0), SETTINGS
        )
        block = pipeline.process([list(records())[i] for i in piece])
        found += [message.value for message in block.scores]
    assert found == expected
    assert pipeline.snapshot(0, N).to_bytes() == whole.snapshot(0, N).to_bytes()


def test_a_snapshot_without_seasons_is_not_continued_with_some():
    snapshot = PartitionPipeline("features", 0, Settings()).snapshot(0, 0)
    assert "seasons" not in snapshot.settings
    with pytest.raises(IncompatibleSnapshotError, match=r"seasons = None, now 'Europe/Berlin'"):
        PartitionPipeline.restored(snapshot, SETTINGS)


def test_the_time_zone_is_read_from_the_environment():
    assert load_settings(None, {"OSLRAU_SEASONS": "Asia/Kolkata"}).seasons == "Asia/Kolkata"
    assert load_settings(None, {"OSLRAU_SEASONS": "none"}).seasons is None
    for wrong in ("", "Berlin", "Europe", "../UTC", "+01:00"):
        with pytest.raises(SettingsError, match="setting seasons: expected a time zone such as"):
            load_settings(None, {"OSLRAU_SEASONS": wrong})
