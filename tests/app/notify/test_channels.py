"""What Alertmanager and webhooks get, and when they get it again."""

from __future__ import annotations

import json

import aiohttp
from post_server import PostServer

from faust_oslrau.app.notify.channels import Alertmanager
from faust_oslrau.app.notify.notices import Notices, event_of
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record


def incident(state, *fields):
    """Return the event of an incident, with the fields that it blames."""
    event = {
        "event": "incident", "topic": "pumps", "partition": 0, "offset": 9, "state": state,
        "incident": "pumps/0/1", "severity": 10, "severity_name": "minor", "length": 4,
        "contributions": [{"field": field, "value": 1.0} for field in fields],
    }  # fmt: skip
    found = event_of(Record("anomalies", 0, 0, None, None, json.dumps(event).encode()))
    assert found is not None
    return found


async def test_an_alert_ends_with_the_labels_with_which_it_began():
    server, notices = PostServer(200), Notices(Settings())
    async with aiohttp.ClientSession() as session:
        channel = Alertmanager(server.address, session)
        for event in (incident("opened", "flow", "heat"), incident("closed", "heat", "flow")):
            news = notices.add(event)
            assert news is not None
            await channel.tell(news)
    (began,), (ended,) = server.bodies
    assert began["labels"]["field"] == "flow"
    assert began["labels"] == ended["labels"]
    assert began["annotations"]["description"] == "In pumps, fields flow, heat."
    assert began["endsAt"] > ended["endsAt"]
