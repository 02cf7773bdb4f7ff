from __future__ import annotations

import pytest
from aiokafka import OffsetAndMetadata
from faust.types import TP

from faust_oslrau.app.kafka.positions import (
    PartitionLog,
    is_of_earlier_version,
    recorded_model,
    recorded_start,
    recorded_topic,
    start_metadata,
)
from faust_oslrau.app.partitions.resume import (
    ForeignOffsetError,
    LostHistoryError,
    Resume,
    resume_from,
    resume_without_state,
)
from faust_oslrau.app.settings import Settings


def _log(**offsets):
    defaults = {"first": 0, "end": 1000, "configured": 0}
    return PartitionLog(TP("features", 0), **{**defaults, **offsets})


def test_a_new_deployment_begins_where_the_settings_say():
    assert resume_without_state(_log(first=10, configured=700), Settings()) == Resume(700, 700)


def test_a_restart_learns_from_the_recorded_start_and_emits_from_the_committed_offset():
    log = _log(configured=900, committed=500, recorded=100)
    assert resume_without_state(log, Settings()) == Resume(100, 500, committed=500)


@pytest.mark.parametrize(("start", "committed"), [(0, 0), (700, 0), (700, 500), (700, 700)])
def test_an_offset_of_another_program_before_the_start_changes_nothing(start, committed):
    settings = Settings(start="2026-05-01T00:00:00Z" if start else "earliest")
    log = _log(configured=start, committed=committed)
    assert resume_without_state(log, settings) == Resume(start, start)


@pytest.mark.parametrize(
    ("log", "settings"),
    [
        (_log(committed=500), {}),
        (_log(first=200, configured=200, committed=500), {}),
        (_log(first=200, configured=200, committed=150), {}),
        (_log(configured=400, committed=500), {"start": "2026-05-01T00:00:00Z"}),
        (_log(configured=1000, committed=500), {"start": "latest"}),
    ],
)
def test_an_offset_of_another_program_that_would_suppress_scores_is_refused(log, settings):
    with pytest.raises(ForeignOffsetError) as caught:
        resume_without_state(log, Settings(app_id="meters", **settings))
    message = str(caught.value)
    assert "\n" not in message
    for part in (f"offset {log.committed} of features/0", "group meters", "inspect --reset"):
        assert part in message


def test_a_state_goes_on_after_an_offset_of_another_program_only_where_no_score_is_suppressed():
    assert resume_from(_log(committed=300), 0, 400, Settings()) == Resume(0, 400)
    assert resume_from(_log(committed=400), 0, 400, Settings()) == Resume(0, 400)
    with pytest.raises(ForeignOffsetError, match="offset 401 of features/0"):
        resume_from(_log(committed=401), 0, 400, Settings())
    going_on = Settings(lost_history="continue")
    assert resume_from(_log(committed=500), 0, 400, going_on) == Resume(0, 500)


@pytest.mark.parametrize(
    ("log", "settings", "words"),
    [
        (_log(first=200, committed=500, recorded=100), {}, "log now begins at 200"),
        (_log(committed=2000, recorded=0), {}, "the log ends at 1000"),
    ],
)
def test_lost_history_is_refused_unless_the_settings_allow_it(log, settings, words):
    with pytest.raises(LostHistoryError, match=words) as caught:
        resume_without_state(log, Settings(**settings))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("log", "settings", "expected"),
    [
        # The new model begins where the log does, or where the settings say.
        (_log(first=200, configured=200, committed=500, recorded=100), {}, Resume(200, 500)),
        (_log(first=600, configured=600, committed=500, recorded=100), {}, Resume(600, 600)),
        (_log(configured=1000, committed=500), {"start": "latest"}, Resume(500, 500)),
        # The offset of another program is accepted.
        (_log(committed=500), {}, Resume(0, 500)),
        # The topic was made anew: none of its records has been scored.
        (_log(committed=2000, recorded=0), {}, Resume(0, 0)),
    ],
)
def test_without_its_history_a_partition_begins_anew(log, settings, expected):
    assert resume_without_state(log, Settings(lost_history="continue", **settings)) == expected


def test_a_state_inside_the_log_needs_no_history_before_it():
    log = _log(first=300, committed=500, recorded=100)
    assert resume_from(log, 100, 400, Settings()) == Resume(100, 500, committed=500)


def test_a_state_ahead_of_the_committed_offset_emits_from_its_own():
    assert resume_from(_log(committed=500, recorded=0), 0, 700, Settings()).emit_from == 700
    assert resume_from(_log(), 0, 700, Settings()) == Resume(0, 700)


def test_a_state_that_began_elsewhere_is_another_history():
    assert resume_from(_log(committed=500, recorded=7), 0, 400, Settings()) is None


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            _log(first=450, committed=500, recorded=0),
            "the state is at offset 400 but the log begins",
        ),
        (_log(end=300), "up to offset 400 were processed but the log ends at 300"),
    ],
)
def test_a_state_outside_the_log_is_lost_history(log, words):
    with pytest.raises(LostHistoryError, match=words):
        resume_from(log, 0, 400, Settings())


def test_going_on_without_lost_history_keeps_the_state_and_skips_the_gap():
    going_on = Settings(lost_history="continue")
    log = _log(first=600, committed=500, recorded=0)
    assert resume_from(log, 0, 400, going_on) == Resume(0, 600, committed=500)
    assert resume_from(_log(end=300), 0, 400, going_on) is None


def _commit(metadata, offset=200):
    return OffsetAndMetadata(offset, metadata)


def test_the_start_survives_as_metadata():
    assert recorded_start(_commit(start_metadata(123))) == 123
    assert recorded_start(_commit(start_metadata(200))) == 200
    assert recorded_model(_commit(start_metadata(123, "id-1"))) is None
    assert recorded_model(_commit(start_metadata(123, "id-1", "abc"))) == "abc"
    assert recorded_start(None) is None


@pytest.mark.parametrize("metadata", ["", "text", '{"start": 0, "topic_id": "id-1"}'])
def test_a_commit_without_a_format_is_of_an_earlier_version_or_another_program(metadata):
    assert is_of_earlier_version(_commit(metadata))
    assert not is_of_earlier_version(_commit(start_metadata(0, "id-1")))


_STARTS = ('"x"', "true", "false", "-1", "201", "10000000", "1.0", "null", "9" * 4000, "[0]", "1e2")
_FOREIGN = ["", "text", "[]", "{}", "7", "true", "[" * 4000, '{"a":' * 800, "\ud800"]


@pytest.mark.parametrize("metadata", [*_FOREIGN, *(f'{{"start": {start}}}' for start in _STARTS)])
def test_metadata_of_another_program_records_nothing(metadata):
    assert recorded_start(_commit(metadata)) is None
    told = metadata.replace("}", ', "topic_id": "id-1", "initial_model": "abc", "format": 2}')
    assert recorded_start(_commit(told)) is None
    assert recorded_topic(_commit(told)) is recorded_model(_commit(told)) is None
    assert is_of_earlier_version(_commit(told))
