"""Where a partition goes on, and what its commits tell of it."""

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

_GOING_ON = Settings(lost_history="continue")
_MAY = {"start": "2026-05-01T00:00:00Z"}


def _log(**offsets):
    defaults = {"first": 0, "end": 1000, "configured": 0}
    return PartitionLog(TP("features", 0), **{**defaults, **offsets})


@pytest.mark.parametrize(
    ("log", "settings", "expected"),
    [
        # A new deployment begins where the settings say; a restart emits what is not committed.
        (_log(first=10, configured=700), {}, Resume(700, 700)),
        (_log(configured=900, committed=500, recorded=100), {}, Resume(100, 500, committed=500)),
        # The offset of another program before the start changes nothing.
        *(
            (_log(configured=at, committed=0), _MAY if at else {}, Resume(at, at))
            for at in (0, 700)
        ),
        *((_log(configured=700, committed=at), _MAY, Resume(700, 700)) for at in (0, 500, 700)),
    ],
)
def test_a_partition_without_a_state_begins(log, settings, expected):
    assert resume_without_state(log, Settings(**settings)) == expected


@pytest.mark.parametrize(
    ("log", "settings"),
    [
        (_log(committed=500), {}),
        (_log(first=200, configured=200, committed=500), {}),
        (_log(first=200, configured=200, committed=150), {}),
        (_log(configured=400, committed=500), _MAY),
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


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (_log(first=200, committed=500, recorded=100), "log now begins at 200"),
        (_log(committed=2000, recorded=0), "the log ends at 1000"),
    ],
)
def test_lost_history_is_refused_unless_the_settings_allow_it(log, words):
    with pytest.raises(LostHistoryError, match=words) as caught:
        resume_without_state(log, Settings())
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


@pytest.mark.parametrize(
    ("log", "start", "expected"),
    [
        # A state inside the log needs no history before it.
        (_log(first=300, committed=500, recorded=100), 100, Resume(100, 500, committed=500)),
        # One ahead of the committed offset emits from its own.
        (_log(committed=350, recorded=0), 0, Resume(0, 400, committed=350)),
        (_log(), 0, Resume(0, 400)),
        # The offset of another program suppresses no score.
        (_log(committed=300), 0, Resume(0, 400)),
        (_log(committed=400), 0, Resume(0, 400)),
        # It began elsewhere: another history.
        (_log(committed=500, recorded=7), 0, None),
    ],
)
def test_a_state_at_offset_400_goes_on(log, start, expected):
    assert resume_from(log, start, 400, Settings()) == expected


@pytest.mark.parametrize(
    ("log", "error", "words"),
    [
        (_log(first=450, committed=500, recorded=0), LostHistoryError,
         "the state is at offset 400 but the log begins"),
        (_log(end=300), LostHistoryError,
         "up to offset 400 were processed but the log ends at 300"),
        (_log(committed=401), ForeignOffsetError, "offset 401 of features/0"),
    ],
)  # fmt: skip
def test_a_state_that_does_not_fit_the_log_is_refused(log, error, words):
    with pytest.raises(error, match=words):
        resume_from(log, 0, 400, Settings())


def test_going_on_without_lost_history_keeps_the_state_and_skips_the_gap():
    log = _log(first=600, committed=500, recorded=0)
    assert resume_from(log, 0, 400, _GOING_ON) == Resume(0, 600, committed=500)
    assert resume_from(_log(committed=500), 0, 400, _GOING_ON) == Resume(0, 500)
    assert resume_from(_log(end=300), 0, 400, _GOING_ON) is None


def _commit(metadata, offset=200):
    return OffsetAndMetadata(offset, metadata)


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
