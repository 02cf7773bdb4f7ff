"""Which incidents are one notice, and when people are told."""

import json

import pytest
from incident_events import incident_event, read_event

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.notify.channels import body, read_template
from faust_oslrau.app.notify.notices import HAPPENED, Event, Notices, event_of
from faust_oslrau.app.offline.told import Contribution
from faust_oslrau.app.settings import NotifySettings, Settings
from faust_oslrau.learner.scoring.incident import CLOSED, OPENED, UPDATED
from faust_oslrau.topics import Record


def incident(name, state, severity="minor", *, fields=("flow",), entity=None):
    """Return what the event of an incident tells."""
    members = {"start_timestamp": 1000 * name} | ({} if entity is None else {"entity": entity})
    return read_event(incident_event(name, state, severity, fields=fields, **members))


def states(notices, *incidents):
    news = [notices.add(each) for each in incidents]
    return [each and each.state for each in news]


def test_an_incident_is_told_as_it_opens_gets_worse_and_closes():
    notices = Notices(Settings())
    assert states(
        notices, incident(1, OPENED), incident(1, UPDATED, "major"), incident(1, CLOSED, "major")
    ) == [OPENED, UPDATED, CLOSED]
    assert notices.open == []


def test_incidents_that_overlap_and_blame_a_common_field_are_one_notice():
    notices = Notices(Settings())
    first, second = incident(1, OPENED, entity="a"), incident(2, OPENED, entity="b")
    assert states(notices, first, second) == [OPENED, None]
    other = notices.add(incident(3, OPENED, fields=("heat",)))
    assert other is not None and other.notice.as_dict(OPENED)["incidents"] == ["pumps/0/3"]
    assert states(notices, incident(1, CLOSED, entity="a")) == [None]
    closed = notices.add(incident(2, CLOSED, entity="b"))
    assert closed is not None and closed.state == CLOSED
    assert closed.notice.as_dict(CLOSED) == {
        "notice": "pumps/0/1", "event": "incident", "state": "closed", "severity": "minor",
        "title": "a: flow is 1, expected 13.2 ± 0.28, and 1 more incident",
        "topic": "pumps", "since": 1000,
        "records": 8, "fields": ["flow"], "entities": ["a", "b"],
        "incidents": ["pumps/0/1", "pumps/0/2"], "address": "",
    }  # fmt: skip


def test_what_begins_long_after_others_is_told_though_one_of_them_never_ends():
    notices = Notices(Settings())
    begins = [incident(n, OPENED, entity=str(n)) for n in (1, 3000, 6000, 9601)]
    assert states(notices, *begins) == [OPENED, None, None, OPENED]


def test_an_incident_is_ended_by_the_next_one_of_its_entity():
    notices, first = Notices(Settings()), incident(1, OPENED, entity="a")
    assert states(notices, first, incident(2, OPENED, entity="b")) == [OPENED, None]
    others = (
        first, incident(3, OPENED), incident(3, OPENED, entity="c"),
        incident(3, CLOSED, entity="a"), event("silence", "began", entity="a"),
    )  # fmt: skip
    assert [notices.ended_by(each) for each in others] == 5 * [None]
    ended = notices.ended_by(incident(3, OPENED, entity="a"))
    assert ended is not None and ended.message.incident == "pumps/0/1"
    assert states(notices, ended) == [None]  # the notice has another one
    last = notices.ended_by(incident(4, OPENED, entity="b"))
    assert last is not None and states(notices, last) == [CLOSED]


def test_a_category_to_blame_has_its_probability():
    found = incident(1, OPENED).message
    status = Contribution("status", 8.5, 0.03, category="503", expected_category="200")
    found.contributions = [status]
    news = Notices(Settings()).add(Event(found, OPENED))
    assert news is not None
    assert news.notice.title == "pumps/0: status is 503 (0.02 %), others suggest 200 (97 %)"


def test_a_notice_has_the_address_of_its_most_severe_incident():
    notices = Notices(Settings(page_url="https://ops.example/oslrau/"))
    first = notices.add(incident(1, OPENED))
    assert first is not None
    assert first.notice.address == "https://ops.example/oslrau/incidents/pumps/0/1"
    second = notices.add(incident(2, OPENED, "major"))
    assert second is not None
    assert second.notice.as_dict(UPDATED)["address"].endswith("/incidents/pumps/0/2")


def test_what_is_not_severe_is_told_once_it_is_and_never_if_it_is_not():
    notices = Notices(Settings(notify=NotifySettings(severity="major")))
    assert states(notices, incident(1, OPENED), incident(1, CLOSED)) == [None, None]
    assert states(
        notices, incident(2, OPENED), incident(2, UPDATED, "major"), incident(2, CLOSED, "major")
    ) == [None, OPENED, CLOSED]


def test_fields_and_entities_choose_incidents():
    notices = Notices(Settings(notify=NotifySettings(fields=("heat",), entities=("a",))))
    assert states(
        notices,
        incident(1, OPENED, entity="a"),
        incident(2, OPENED, fields=("flow", "heat"), entity="b"),
        incident(3, OPENED, fields=("flow", "heat"), entity="a"),
    ) == [None, None, OPENED]


def test_an_incident_that_opened_before_is_not_told_when_it_closes():
    assert states(Notices(Settings()), incident(1, CLOSED)) == [None]


def test_a_later_event_of_an_incident_is_told_whatever_it_blames():
    notices = Notices(Settings(notify=NotifySettings(fields=("heat",))))
    assert states(
        notices, incident(1, OPENED, fields=("heat",)), incident(1, CLOSED, fields=("flow",))
    ) == [OPENED, CLOSED]


def event(kind, state=None, **members):
    """Return another event of partition 0."""
    told = {"event": kind, "topic": "pumps", "partition": 0, "offset": 9, "timestamp": 1000}
    told |= members if state is None else {"state": state, **members}
    return read_event(json.dumps(told).encode())


SILENT = {"entity": "a", "last_timestamp": 400, "seconds": 240.0, "limit_seconds": 186.2}
SLOW = {"entity": "a", "since": 600, "window_seconds": 60.0, "records": 12, "low": 80, "high": 140}
ASPECT = {"aspect": "level", "field": "heat", "value": 88.0, "usual": 61.2, "deviations": 6.1}


def test_an_entity_that_is_silent_for_a_week_is_not_waited_for_any_more():
    notices, day = Notices(Settings()), 86_400_000
    assert states(notices, event("silence", "began", **SILENT), incident(1, OPENED)) == 2 * [OPENED]
    assert notices.gone(6 * day) == []
    assert states(notices, *notices.gone(8 * day)) == [CLOSED]
    assert [each.first.is_of_incident for each in notices.open] == [True]


@pytest.mark.parametrize(
    ("kind", "begins", "ends", "members", "since", "title"),
    [
        ("silence", "began", "ended", SILENT, 400,
         "a: silence began: no record for 240 s, unusual after 186.2 s"),
        ("rate", "began", "ended", SLOW, 600,
         "a: rate began: 12 records in the last 60 s, 80 to 140 usual"),
        ("entity", "unusual", "usual", {"entity": "a", "aspects": [ASPECT]}, 1000,
         "a: entity unusual: level of heat 88 (usual 61.2, 6.1 deviations)"),
    ],
)  # fmt: skip
def test_what_begins_and_ends_is_told_twice(kind, begins, ends, members, since, title):
    notices = Notices(Settings())
    opened = notices.add(event(kind, begins, **members))
    assert opened is not None and opened.state == OPENED
    told = opened.notice.as_dict(OPENED)
    assert told["title"].startswith(title)
    assert (told["notice"], told["event"]) == (f"pumps/0/9/{kind}/a", kind)
    assert (told["severity"], told["since"], told["entities"]) == ("minor", since, ["a"])
    other = notices.add(event(kind, begins, **(members | {"entity": "b"})))
    assert other is not None and other.notice is not opened.notice
    closed = notices.add(event(kind, ends, entity="a", timestamp=5000))
    assert closed is not None and closed.state == CLOSED
    assert closed.notice.as_dict(CLOSED)["since"] == since
    assert closed.notice.as_dict(CLOSED)["notice"] == f"pumps/0/9/{kind}/a"
    assert notices.open == [other.notice]


@pytest.mark.parametrize(
    ("found", "title"),
    [
        (event("field", "vanished", field="heat"), "pumps/0: field vanished: heat"),
        (event("drift", records=512),
         "pumps/0: drift: records are less likely than before, since about 512 records"),
        (event("entity", "new", entity="a"), "a: entity new"),
        (event("silence", "ended", seconds=240.0, limit_seconds=186.2),
         "pumps/0: silence ended: no record for 240 s, unusual after 186.2 s"),
    ],
)  # fmt: skip
def test_what_has_no_end_is_told_once(found, title):
    notices = Notices(Settings())
    news = notices.add(found)
    assert news is not None and news.state == HAPPENED and news.notice.title == title
    assert notices.open == []


def test_settings_choose_events():
    silence, new = event("silence", "began", **SILENT), event("entity", "new", entity="a")
    field = event("field", "vanished", field="heat")
    unusual = event("entity", "unusual", entity="a")
    every = (incident(1, OPENED), silence, new, field, unusual)
    chosen = NotifySettings(events=("silences", "new_entities"), severity="major")
    assert states(Notices(Settings(notify=chosen)), *every) == [None, OPENED, HAPPENED, None, None]
    of_field = NotifySettings(fields=("heat",))
    assert states(Notices(Settings(notify=of_field)), *every) == [None, None, None, HAPPENED, None]


@pytest.mark.parametrize(
    "value",
    [None, b"", b"[1]", b'{"event": "drift"}', b"\xff", b"[" * 9999,
     b'{"event": "eclipse", "topic": "a", "partition": 0, "offset": 1}',
     b'{"event": "incident", "topic": "a", "partition": 0, "offset": 1, "severity_name": "dire"}'],
)  # fmt: skip
def test_other_messages_are_no_events(value):
    assert event_of(Record("anomalies", 0, 0, None, None, value)) is None


def test_a_template_shapes_the_body(tmp_path):
    path = tmp_path / "slack.json"
    path.write_text('{"text": "[$severity] $title", "about": "$fields"}')
    template = read_template(str(path))
    notice = {"severity": "major", "title": 'a "b"\n', "fields": ["x", "y"]}
    assert json.loads(body(template, notice)) == {"text": '[major] a "b"\n', "about": "x, y"}
    for wrong in ('{"text": $title}', '{"text": "$nothing"}', '{"text": "$"}'):
        path.write_text(wrong)
        with pytest.raises(SettingsError, match="expected a file of JSON"):
            read_template(str(path))
    with pytest.raises(SettingsError, match=r"missing\.json"):
        read_template(str(tmp_path / "missing.json"))
