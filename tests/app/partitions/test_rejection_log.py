"""Rejected records in the log: the first ones, then numbers, however many there are."""

import pytest

from faust_oslrau.app.partitions import rejection_log
from faust_oslrau.app.partitions.rejection_log import RejectionLog
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the test lets pass."""
    times = [1000.0]
    monkeypatch.setattr(rejection_log.time, "monotonic", lambda: times[0])
    return times


def _rejecting(log):
    """Return a function that rejects so many records of a value, and says what was logged."""
    pipeline = PartitionPipeline("features", 2, Settings())
    offsets = iter(range(10**6))

    def reject(number, value=b"broken", headers=()):
        place = ("features", 2)
        records = [Record(*place, next(offsets), None, None, value, headers) for _ in range(number)]
        log.add(pipeline.process(records))

    return reject


def test_the_others_are_summed_up_by_reason_once_an_interval(clock, caplog):
    log = RejectionLog(("features", 2))
    reject = _rejecting(log)
    for _ in range(100):
        reject(10)
        reject(1, None)
        log.summarize()
    assert len(caplog.records) == 3
    clock[0] += 60
    log.summarize()
    told = "features/2: 1097 more records rejected in 60 s: not_json 997, no_value 100"
    assert caplog.messages[3:] == [told]
    assert caplog.records[3].reasons == {"not_json": 997, "no_value": 100}
    clock[0] += 1
    reject(5)
    log.summarize()
    assert len(caplog.records) == 4  # it goes on, so that there are numbers only
    clock[0] += 60
    log.summarize()
    assert caplog.messages[4:] == ["features/2: 5 more records rejected in 61 s: not_json 5"]


def test_after_an_interval_without_rejections_the_first_ones_are_logged_again(clock, caplog):
    log = RejectionLog(("features", 2))
    reject = _rejecting(log)
    reject(5)
    for _ in range(3):
        clock[0] += 60
        log.summarize()
    reject(1)
    assert len(caplog.records) == 3 + 1 + 1
    assert caplog.messages[-1].startswith("features/2: record at 5 rejected")


def test_headers_of_the_record_itself_do_not_mislead(clock, caplog):
    headers = (("oslrau-reason", b"\xff"), ("oslrau-detail", b"\xff"))  # a dead letter sent again
    _rejecting(RejectionLog(("features", 2)))(1, headers=headers)
    assert caplog.records[0].reason == "not_json"
