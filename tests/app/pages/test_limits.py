"""What readers of the pages may cost the worker."""

import asyncio
import gzip
import socket
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from memory_worker import until

from faust_oslrau.app.pages import answers, limits
from faust_oslrau.app.pages.answers import Answer, compress, json_answer, send
from faust_oslrau.app.pages.limits import RequestLimit, SharedPages


class Maker:
    """Makes pages, and counts them."""

    def __init__(self, seconds=0.0):
        self.made = 0
        self.seconds = seconds

    async def __call__(self):
        self.made += 1
        number = self.made
        await asyncio.sleep(self.seconds)
        return json_answer(number)


async def test_readers_who_ask_at_once_get_the_same_page():
    make, pages = Maker(0.01), SharedPages(share=1, seconds=1)
    answers = await asyncio.gather(*[pages.get("live", make) for _ in range(100)])
    assert make.made == 1
    assert {answer.content for answer in answers} == {b"1"}


async def test_a_page_that_could_not_be_made_is_made_again():
    async def fail():
        raise ValueError

    pages = SharedPages(share=1, seconds=1)
    with pytest.raises(ValueError):
        await pages.get("live", fail)
    assert (await pages.get("live", Maker())).content == b"1"


async def test_more_clients_than_have_room_are_refused_after_a_while(monkeypatch):
    monkeypatch.setattr(limits, "_REFUSE_SECONDS", 0.05)
    limit, leave = RequestLimit(per_second=1000, at_once=3), asyncio.Event()

    async def client():
        async with limit.turn() as has_turn:
            if has_turn:
                await leave.wait()
            return has_turn

    inside = [asyncio.create_task(client()) for _ in range(3)]
    await asyncio.sleep(0)
    began = time.monotonic()
    assert await client() is False
    assert time.monotonic() - began >= 0.05
    leave.set()
    assert await asyncio.gather(*inside) == [True] * 3
    assert await client() is True


async def test_large_pages_are_compressed_for_those_who_take_it():
    page = await compress(Answer(b"metric 1\n" * 10_000, {"Content-Type": "text/plain"}))
    async with _serve(page) as client:
        for accepted, encoding in (("gzip", "gzip"), ("identity", None)):
            async with client.get("/", headers={"Accept-Encoding": accepted}) as response:
                assert response.headers.get("Content-Encoding") == encoding
                assert await response.read() == page.content
    assert len(page.compressed) < len(page.content) / 10
    assert gzip.decompress(page.compressed) == page.content


async def test_a_head_request_gets_the_headers_alone():
    async with _serve(json_answer([1, 2])) as client, client.head("/") as response:
        assert (response.status, response.headers["Content-Length"]) == (200, "5")
        assert await response.read() == b""


async def test_a_reader_that_does_not_read_is_cut_off(monkeypatch):
    monkeypatch.setattr(answers, "_SEND_SECONDS", 0.2)
    done = []
    page = Answer(bytes(64 * 2**20))  # more than the system's buffers take
    async with _serve(page, done) as client:
        with socket.create_connection((client.host, client.port)) as reader:
            reader.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await until(lambda: done)
            received = 0
            while piece := await asyncio.to_thread(reader.recv, 2**20):
                received += len(piece)
    assert received < len(page.content)  # the system's buffers, then the end


def _serve(answer, done=None):
    """A client of a server that gives this answer to everybody."""

    async def handle(request):
        response = await send(request, answer)
        if done is not None:
            done.append(response)
        return response

    app = web.Application()
    app.router.add_get("/", handle)
    return TestClient(TestServer(app))
