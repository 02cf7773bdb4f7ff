"""History from the records of a partition to its messages."""

import numpy as np
import orjson
import pytest

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.pipeline import IncompatibleSnapshotError, PartitionPipeline
from faust_oslrau.app.settings import Settings, load_settings
from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.topics import Record

RNG = np.random.default_rng(5)
N = 600
ROWS = RNG.normal(size=(N, 2)).cumsum(axis=0)
TIMES = 500 * RNG.integers(1, 40, size=N).cumsum()
SETTINGS = Settings(features=["a", "b"], history=["10", "30s"])


def records(times=TIMES):
    for offset, (row, time) in enumerate(zip(ROWS.tolist(), times.tolist(), strict=True)):
        yield Record("features", 0, offset, time, None, orjson.dumps({"a": row[0], "b": row[1]}))


def test_scores_are_those_of_the_scorer_alone_and_depend_on_the_time_stamps():
    block = PartitionPipeline("features", 0, SETTINGS).process(list(records()))
    scorer = StreamScorer(OSLRAU(), history=("10", "30s"))
    alone = scorer.process(ROWS, None, np.column_stack([np.arange(N), TIMES]))
    assert block.log_likelihood.tobytes() == alone.log_likelihood.tobytes()
    slower = PartitionPipeline("features", 0, SETTINGS).process(list(records(10 * TIMES)))
    assert (block.log_likelihood[16:] != slower.log_likelihood[16:]).mean() > 0.5


def test_snapshots_and_cuts_do_not_change_a_message():
    whole, expected = PartitionPipeline("features", 0, SETTINGS), []
    expected = [message.value for message in whole.process(list(records())).scores]
    pipeline, found = PartitionPipeline("features", 0, SETTINGS), []
    for piece in np.array_split(np.arange(N), [0, 5, 16, 40, 300, 301]):
        pipeline = PartitionPipeline.restored(
            pipeline.snapshot(0, pipeline.next_offset or 0), SETTINGS
        )
        block = pipeline.process([list(records())[i] for i in piece])
        found += [message.value for message in block.scores]
    assert found == expected
    assert pipeline.snapshot(0, N).to_bytes() == whole.snapshot(0, N).to_bytes()


def test_a_snapshot_without_history_is_not_continued_with_one():
    snapshot = PartitionPipeline("features", 0, Settings()).snapshot(0, 0)
    assert "history" not in snapshot.settings
    with pytest.raises(IncompatibleSnapshotError, match=r"history = None, now \['10'"):
        PartitionPipeline.restored(snapshot, SETTINGS)


def test_spans_are_read_from_the_environment():
    assert load_settings(None, {"OSLRAU_HISTORY": "10, 5m"}).history == ("10", "5m")
    assert load_settings(None, {"OSLRAU_HISTORY": "none"}).history is None
    for wrong in ("10,10", "0", "5 days", "1e9", "1,2,3,4,5", ""):
        with pytest.raises(SettingsError, match="setting history: expected up to 4 different"):
            load_settings(None, {"OSLRAU_HISTORY": wrong})
