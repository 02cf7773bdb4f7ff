"""CloudEvents' rules for attributes, and that each event has an id of its own."""

from datetime import UTC, datetime

import pytest

from faust_oslrau.topics.cloud_events import event_headers, source_address

SOURCE = source_address("faust-oslrau", "features", 2)


def headers(*arguments):
    return {name: text.decode() for name, text in event_headers(SOURCE, *arguments)}


def test_an_anomaly_is_named_by_its_record():
    assert headers(4711, 1767225600007, "anomaly") == {
        "ce_specversion": "1.0", "ce_id": "4711/anomaly", "ce_source": "/faust-oslrau/features/2",
        "ce_type": "oslrau.anomaly", "ce_time": "2026-01-01T00:00:00.007+00:00",
        "content-type": "application/json",
    }  # fmt: skip


def test_an_event_is_named_by_what_it_tells_of_whom():
    found = headers(7, 0, "incident", "opened", "press-7")
    assert (found["ce_id"], found["ce_type"]) == (
        "7/incident/opened/press-7",
        "oslrau.incident.opened",
    )


def test_no_name_of_an_entity_makes_the_id_of_another_event_or_breaks_it():
    names = [None, "", "a/b", "a%2Fb", "a\nb", "Maß", "\u202e"]
    ids = [headers(7, 0, "silence", "began", name)["ce_id"] for name in names]
    assert len(set(ids)) == len(names)
    assert all(each.isascii() and each.isprintable() for each in ids)


def test_the_source_escapes_what_an_address_cannot_hold():
    assert source_address("my app/1", "t", 0) == "/my%20app%2F1/t/0"


@pytest.mark.parametrize("time", [0, 253_402_300_799_999])
def test_a_time_is_told_to_the_millisecond(time):
    told = datetime.fromisoformat(headers(7, time, "drift")["ce_time"])
    assert (told - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() == time / 1000


@pytest.mark.parametrize("time", [None, -1, 253_402_300_800_000, 2**63 - 1])
def test_a_time_that_no_date_names_is_left_out(time):
    assert "ce_time" not in headers(7, time, "drift")
