"""The last incidents of a partition, as the page shows them."""

import orjson

from faust_oslrau.app.metrics.last_incidents import INCIDENTS, LastIncidents, most_urgent


def _event(offset, state, opened, **more):
    return {
        "event": "incident", "incident": f"features/0/{opened}", "offset": offset, "state": state,
        "opened_timestamp": 1000 * opened, "contributions": [], **more,
    }  # fmt: skip


def _offsets(incidents):
    return [orjson.loads(incident.content)["offset"] for incident in incidents]


def test_the_latest_event_of_each_incident_counts_in_whatever_order_they_come():
    known = LastIncidents()
    known.add(_event(9, "closed", 1), noted=2.0)
    known.add(_event(5, "updated", 1), noted=3.0, is_past=True)
    known.add(_event(20, "opened", 20), noted=4.0)
    assert sorted(_offsets(known)) == [9, 20]


def test_no_more_are_kept_than_the_limit_and_the_open_one_among_them():
    known = LastIncidents()
    known.add(_event(0, "opened", 0), noted=1.0)
    for offset in range(1, 2 * INCIDENTS):
        known.add(_event(offset, "closed", offset), noted=1.0)
    kept = _offsets(most_urgent(known, 1000))
    assert len(kept) == INCIDENTS
    assert kept[0] == 0 and kept[1] == 2 * INCIDENTS - 1


def test_names_of_fields_that_are_too_long_are_left_out():
    known = LastIncidents()
    fields = [{"field": "f" * 10_000} for _ in range(16)]
    known.add(_event(1, "opened", 1, contributions=fields), noted=1.0)
    (kept,) = known
    assert len(kept.content) < 16 * 1024
    assert orjson.loads(kept.content)["contributions"] == []
