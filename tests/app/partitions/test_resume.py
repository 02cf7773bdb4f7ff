from __future__ import annotations

import pytest
from faust.types import TP

from faust_oslrau.app.kafka.positions import PartitionLog, recorded_start, start_metadata
from faust_oslrau.app.partitions.resume import (
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


def test_offsets_of_another_program_are_taken_where_the_whole_log_is_there():
    assert resume_without_state(_log(committed=500), Settings()) == Resume(0, 500)


@pytest.mark.parametrize(
    ("log", "settings", "words"),
    [
        (_log(first=200, committed=500, recorded=100), {}, "log now begins at 200"),
        (_log(committed=2000, recorded=0), {}, "the log ends at 1000"),
        (_log(first=200, configured=200, committed=500), {}, "is not recorded"),
        (_log(configured=1000, committed=500), {"start": "latest"}, "is not recorded"),
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


def test_the_start_survives_as_metadata():
    assert recorded_start(start_metadata(123)) == 123


@pytest.mark.parametrize("metadata", ["", "text", "[]", "{}", '{"start": "x"}', "7"])
def test_metadata_of_another_program_records_no_start(metadata):
    assert recorded_start(metadata) is None
