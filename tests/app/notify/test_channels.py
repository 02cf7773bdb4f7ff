"""What Alertmanager and webhooks get, and when they get it again."""

import asyncio
from base64 import b64encode
from datetime import UTC, datetime
from functools import partial

import aiohttp
import pytest
from incident_events import incident_event, read_event
from post_server import PostServer

from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.notify import channels
from faust_oslrau.app.notify.channels import Alertmanager, Webhook
from faust_oslrau.app.notify.notices import Notices
from faust_oslrau.app.settings import Settings


def opened_notice(**members):
    """Return the news of an incident that has opened."""
    news = Notices(Settings()).add(read_event(incident_event("1", "opened", **members)))
    assert news is not None
    return news


@pytest.mark.parametrize("since", [1_790_000_000_000_000, -1, -(10**15)])
async def test_an_alert_of_a_record_whose_time_is_wrong_begins_now(since):
    server, before = PostServer(200), datetime.now(UTC)
    news = opened_notice(start_timestamp=since)
    async with aiohttp.ClientSession() as session:
        await Alertmanager(server.address, session).tell(news)
    ((alert,),) = server.bodies
    assert before <= datetime.fromisoformat(alert["startsAt"]) <= datetime.now(UTC)


@pytest.fixture
def opened():
    return opened_notice()


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
