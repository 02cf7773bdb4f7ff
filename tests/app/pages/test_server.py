"""Connections to the worker's web server."""

import asyncio
import time
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import ClientSession
from memory_worker import until

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.pages import server
from faust_oslrau.app.worker import ScoringApp


@asynccontextmanager
async def _serving(host, port):
    """The web server of a worker's app, whose only page is `/`."""
    app = ScoringApp("pages", web_bind=host, web_port=port, web_router_enabled=False)
    app.page("/")(_say_hello)
    app.web.init_server()
    try:
        await app.web.start_server()
        yield app.web
    finally:
        await app.web.stop_server()


async def _say_hello(view, request):
    return view.text("hello")


async def _hello(host, port):
    async with ClientSession() as session, session.get(f"http://{host}:{port}/") as response:
        return await response.text()


async def test_the_oldest_of_too_many_connections_give_way(monkeypatch, free_port):
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 10)
    port = free_port()
    async with _serving("127.0.0.1", port) as web:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        assert await _hello("127.0.0.1", port) == "hello"
        await until(lambda: len(web._runner.server.connections) <= 10)
        assert await idle[0][0].read() == b""  # closed
        idle[-1][1].write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await idle[-1][0].readline()).startswith(b"HTTP/1.1 200")
        for _, writer in idle:
            writer.close()


async def test_connections_are_accepted_at_a_bounded_rate(monkeypatch, free_port):
    monkeypatch.setattr(server, "_NEW_PER_SECOND", 20)
    port = free_port()
    async with _serving("127.0.0.1", port):
        began = time.monotonic()
        for _ in range(30):
            assert await _hello("127.0.0.1", port) == "hello"
        assert time.monotonic() - began > 0.4  # twenty that were saved up, and 20 each second


async def test_a_name_stands_for_all_its_addresses(free_port):
    port = free_port()
    async with _serving("localhost", port):
        assert await _hello("localhost", port) == "hello"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1"])
async def test_a_host_that_is_not_this_one_is_refused(host, free_port):
    with pytest.raises(SettingsError, match=f"setting web_host: .* address to listen on, {host}"):
        async with _serving(host, free_port()):
            pass


async def test_what_a_client_sends_with_a_request_is_not_waited_for(free_port):
    port = free_port()
    async with _serving("127.0.0.1", port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n")
        began = time.monotonic()
        with suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(bytes(1000))
                await reader.read(1000)
        assert time.monotonic() - began < 5  # aiohttp goes on reading for ten seconds
        writer.close()
