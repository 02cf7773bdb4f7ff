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

_GOING_ON = {"lost_history": "continue"}
_MAY = {"start": "2026-05-01T00:00:00Z"}
_LATEST = {"start": "latest"}
_lost = LostHistoryError


def _log(**offsets):
    defaults = {"first": 0, "end": 1000, "configured": 0}
    return PartitionLog(TP("features", 0), **{**defaults, **offsets})


def _foreign(offset):
    """The refusal of an offset that another program committed."""
    parts = (f"offset {offset} of features/0", "group meters", "inspect --reset")
    return ForeignOffsetError(".*".join(parts))


def check(expected, decide, *arguments, settings):
    """Decide: where a partition goes on, or an error in one line, which has these words."""
    arguments = (*arguments, Settings(app_id="meters", **settings))
    if not isinstance(expected, Exception):
        assert decide(*arguments) == expected
        return
    with pytest.raises(type(expected), match=str(expected)) as caught:
        decide(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("log", "settings", "expected"),
    [
        # A new deployment begins where the settings say; a restart emits what is not committed.
        (_log(first=10, configured=700), {}, Resume(700, 700)),
        (_log(configured=900, committed=500, recorded=100), {}, Resume(100, 500, committed=500)),
        # The offset of another program before the start changes nothing.
        (_log(committed=0), {}, Resume(0, 0)),
        *((_log(configured=700, committed=at), _MAY, Resume(700, 700)) for at in (0, 500, 700)),
        # One that would suppress scores is refused.
        (_log(committed=500), {}, _foreign(500)),
        (_log(first=200, configured=200, committed=500), {}, _foreign(500)),
        (_log(first=200, configured=200, committed=150), {}, _foreign(150)),
        (_log(configured=400, committed=500), _MAY, _foreign(500)),
        (_log(configured=1000, committed=500), _LATEST, _foreign(500)),
        # So is lost history, ...
        (_log(first=200, committed=500, recorded=100), {}, _lost("log now begins at 200")),
        (_log(committed=2000, recorded=0), {}, _lost("the log ends at 1000")),
        # ... unless the settings allow it: the new model begins where the log does, or they say.
        (_log(first=200, configured=200, committed=500, recorded=100), _GOING_ON, Resume(200, 500)),
        (_log(first=600, configured=600, committed=500, recorded=100), _GOING_ON, Resume(600, 600)),
        (_log(configured=1000, committed=500), _GOING_ON | _LATEST, Resume(500, 500)),
        (_log(committed=500), _GOING_ON, Resume(0, 500)),
        # The topic was made anew: none of its records has been scored.
        (_log(committed=2000, recorded=0), _GOING_ON, Resume(0, 0)),
    ],
)
def test_a_partition_without_a_state_begins_or_is_refused(log, settings, expected):
    check(expected, resume_without_state, log, settings=settings)


@pytest.mark.parametrize(
    ("log", "start", "settings", "expected"),
    [
        # A state inside the log needs no history before it.
        (_log(first=300, committed=500, recorded=100), 100, {}, Resume(100, 500, committed=500)),
        # One ahead of the committed offset emits from its own.
        (_log(committed=350, recorded=0), 0, {}, Resume(0, 400, committed=350)),
        (_log(), 0, {}, Resume(0, 400)),
        # The offset of another program suppresses no score.
        (_log(committed=300), 0, {}, Resume(0, 400)),
        (_log(committed=400), 0, {}, Resume(0, 400)),
        (_log(committed=401), 0, {}, _foreign(401)),
        (_log(committed=500), 0, _GOING_ON, Resume(0, 500)),
        # It began elsewhere: another history.
        (_log(committed=500, recorded=7), 0, {}, None),
        # It does not fit the log: the gap is skipped if the settings allow it.
        (_log(first=450, committed=500, recorded=0), 0, {},
         _lost("the state is at offset 400 but the log begins")),
        (_log(first=600, committed=500, recorded=0), 0, _GOING_ON, Resume(0, 600, committed=500)),
        (_log(end=300), 0, {},
         _lost("up to offset 400 were processed but the log ends at 300")),
        (_log(end=300), 0, _GOING_ON, None),
    ],
)  # fmt: skip
def test_a_state_at_offset_400_goes_on_or_is_refused(log, start, settings, expected):
    check(expected, resume_from, log, start, 400, settings=settings)


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
