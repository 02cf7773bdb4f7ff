"""What Alertmanager and webhooks get, and when they get it again."""

import asyncio
import json
from base64 import b64encode
from datetime import UTC, datetime
from functools import partial

import aiohttp
import pytest
from post_server import PostServer

from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.notify import channels
from faust_oslrau.app.notify.channels import Alertmanager, Webhook
from faust_oslrau.app.notify.notices import Notices, event_of
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record


def incident(state, *fields, **members):
    """Return the event of an incident, with the fields that it blames."""
    event = {
        "event": "incident", "topic": "pumps", "partition": 0, "offset": 9, "state": state,
        "incident": "pumps/0/1", "severity": 10, "severity_name": "minor", "length": 4,
        "contributions": [{"field": field, "value": 1.0} for field in fields],
        **members,
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


@pytest.mark.parametrize("since", [1_790_000_000_000_000, -1, -(10**15)])
async def test_an_alert_of_a_record_whose_time_is_wrong_begins_now(since):
    server, before = PostServer(200), datetime.now(UTC)
    news = Notices(Settings()).add(incident("opened", "flow", start_timestamp=since))
    assert news is not None
    async with aiohttp.ClientSession() as session:
        await Alertmanager(server.address, session).tell(news)
    ((alert,),) = server.bodies
    assert before <= datetime.fromisoformat(alert["startsAt"]) <= datetime.now(UTC)


@pytest.fixture
def opened():
    news = Notices(Settings()).add(incident("opened", "flow"))
    assert news is not None
    return news


async def test_a_redirect_is_told_and_tried_again(opened, caplog):
    server = PostServer(302, 200)
    async with aiohttp.ClientSession() as session:
        await Webhook(server.address, None, session).tell(opened)
    assert [body["state"] for body in server.bodies] == ["opened"]
    told = f"127.0.0.1:{server.port} did not take a notice, it is sent again: status 302"
    assert told in caplog.text


@pytest.mark.parametrize("channel", [Alertmanager, partial(Webhook, template=None)])
@pytest.mark.parametrize("rest", ["/token-9f2", "?token-9f2"])
async def test_user_and_password_of_an_address_log_in_and_are_not_logged(
    channel, rest, opened, caplog
):
    server = PostServer(503, 200)
    async with aiohttp.ClientSession() as session:
        address = f"http://me:hidden@127.0.0.1:{server.port}{rest}"
        await channel(address, session=session).tell(opened)
    assert server.logins == [f"Basic {b64encode(b'me:hidden').decode()}"]
    assert f"127.0.0.1:{server.port} did not take a notice" in caplog.text
    assert "hidden" not in caplog.text and "token-9f2" not in caplog.text


async def test_who_refuses_a_connection_is_told_later(opened, caplog, monkeypatch):
    monkeypatch.setattr(channels, "_RETRY_SECONDS", (0.05,))
    (port,) = free_ports(1)
    async with aiohttp.ClientSession() as session:
        address = f"http://127.0.0.1:{port}/token-9f2"
        telling = asyncio.create_task(Webhook(address, None, session).tell(opened))
        while "it is sent again: ClientConnectorError" not in caplog.text:
            await asyncio.sleep(0.01)
        server = PostServer(200, port=port)
        await telling
    assert [body["state"] for body in server.bodies] == ["opened"]
