"""What a registry answers, and what is made of it."""

import asyncio
import gzip
import json
import os
from contextlib import aclosing, asynccontextmanager

import orjson
import pytest
from aiohttp import web

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.registry import Registry, RegistryError, check_format
from faust_oslrau.app.registry import client as client_module
from faust_oslrau.app.settings import RegistrySettings, Settings
from faust_oslrau.topics.formats import Schema

NO_SCHEMA = {"error_code": 40403, "message": "Schema not found"}
INNER = {"schema": "inner", "references": []}
OUTER = {"schema": "outer", "references": [{"name": "I", "subject": "in/ner", "version": 3}]}


class Answers:
    """A web server that gives prepared answers by path, and keeps what it was asked."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    async def handle(self, request):
        self.asked.append((request.method, request.raw_path, await request.read()))
        self.authorization = request.headers.get("Authorization")
        status, content = self.answers.get(request.raw_path, (404, NO_SCHEMA))
        body = content if isinstance(content, bytes) else orjson.dumps(content)
        packed = {"Content-Encoding": "gzip"} if body.startswith(b"\x1f\x8b") else {}
        return web.Response(status=status, body=body, headers=packed)

    @asynccontextmanager
    async def registry(self, **settings):
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}/"
        try:
            async with aclosing(Registry(RegistrySettings(url=url, **settings))) as registry:
                yield registry
        finally:
            await runner.cleanup()


def answers(**found):
    return Answers(**{f"/schemas/ids/{name[1:]}": answer for name, answer in found.items()})


async def test_a_schema_is_asked_for_once_with_what_it_refers_to():
    server = answers(_1=(200, OUTER))
    server.answers["/subjects/in%2Fner/versions/3"] = (200, INNER)
    async with server.registry() as registry:
        for _ in range(2):
            assert await registry.schema(1) == Schema("AVRO", "outer", (("I", "inner"),))
    assert [path for _, path, _ in server.asked] == [
        "/schemas/ids/1", "/subjects/in%2Fner/versions/3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        (404, b"<html>not found</html>"),  # no registry
        (404, {"error_code": 404, "message": "no such path"}),
        (401, {"error_code": 401}),
        (500, NO_SCHEMA | {"error_code": 50001}),
        (200, b"<html>log in</html>"),
        (302, b""),
        (200, {"what": 1}),
        (200, {"schema": "x", "references": [{"name": "y"}]}),
        (200, {"schema": "x", "references": 7}),
        (200, {"schema": 5}),
        (200, {"schema": None}),
        (200, b'{"schema": "\\ud800"}'),
        (200, {"schema": "x", "schemaType": 7}),
        (200, b'{"schema": "x", "more": ' + b"[" * 5000),
        (200, b"[" * 5000),
        (200, b"x" * 5_000_000),
        (404, {"error_code": 40402, "message": ["deep"] * 9}),
        (200, OUTER),  # what it refers to is missing
    ],
)
async def test_any_other_answer_says_nothing_of_a_schema(answer):
    async with answers(_1=answer).registry() as registry:
        with pytest.raises(RegistryError, match=r"registry http://127.0.0.1:\d+: "):
            await registry.schema(1)


async def test_a_registry_that_is_silent_says_nothing_of_a_schema(monkeypatch):
    monkeypatch.setattr(client_module, "_TIMEOUT_SECONDS", 0.01)
    server = answers()
    server.handle = _never
    async with server.registry() as registry:
        with pytest.raises(RegistryError, match="no answer in time"):
            await registry.schema(1)


async def _never(request):
    await asyncio.sleep(0.2)
    return web.Response()


@pytest.mark.parametrize(
    "text", ["x" * 500_000, "\1" * 200_000, "x" * 5_000_000, "é" * 300_000], ids=len
)
async def test_a_schema_that_no_topic_takes_is_one_of_another_format(text):
    async with answers(_1=(200, {"schema": text})).registry() as registry:
        found = await registry.schema(1)
    assert (" bytes" in found.kind, found.text) == (True, "")


class Endless(Answers):
    """A server whose answers have no end, or name a schema that names another, and so on."""

    def __init__(self, start):
        super().__init__()
        self.start = start
        self.sent = 0

    async def handle(self, request):
        self.asked.append(request.raw_path)
        if self.start is None:
            name = f"n{len(self.asked)}"
            inner = {"name": name, "subject": name, "version": 1}
            return web.json_response({"schema": "x", "references": [inner]})
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(self.start)
        while True:
            await response.write(b" " * 100_000)
            self.sent += 100_000


@pytest.mark.timeout(20)
@pytest.mark.parametrize("start", [b"{", b"<html>"])
async def test_an_answer_without_end_is_read_up_to_a_bound(start):
    server = Endless(start)
    async with server.registry() as registry:
        if start == b"{":
            assert (await registry.schema(1)).kind == "an answer of more than 4,000,000 bytes"
        else:
            with pytest.raises(RegistryError, match="an answer of more than 4,000,000 bytes"):
                await registry.schema(1)
    assert server.sent < 30_000_000  # what buffers hold


async def test_references_without_end_are_none_of_the_format():
    server = Endless(None)
    async with server.registry() as registry:
        assert "references" in (await registry.schema(1)).kind
    assert len(server.asked) < 100


async def test_a_schema_that_refers_to_itself_is_asked_for_once():
    server = answers(_1=(200, OUTER))
    cycle = {"schema": "inner", "references": OUTER["references"]}
    server.answers["/subjects/in%2Fner/versions/3"] = (200, cycle)
    async with server.registry() as registry:
        assert await registry.schema(1) == Schema("AVRO", "outer", (("I", "inner"),))
    assert len(server.asked) == 2


async def test_a_compressed_answer_is_not_unpacked():
    packed = gzip.compress(orjson.dumps({"schema": " " * 300_000_000}), 1)
    async with answers(_1=(200, packed)).registry() as registry:
        with pytest.raises(RegistryError):
            await registry.schema(1)


async def test_a_file_with_a_token_is_read_for_each_request(tmp_path):
    server, file = answers(), tmp_path / "token"
    file.write_text("first\n")
    async with server.registry(password_file=str(file)) as registry:
        await registry.schema(1)
        assert server.authorization == "Bearer first"
        file.write_text("second")
        await registry.schema(1)
        assert server.authorization == "Bearer second"
        server.answers["/schemas/ids/1"] = (401, {"message": "token second is no more"})
        with pytest.raises(RegistryError, match=r"token \(secret\) is no more"):
            await registry.schema(1)
        file.unlink()
        with pytest.raises(RegistryError, match="password_file: expected a readable file"):
            await registry.schema(1)


@pytest.mark.parametrize("content", [b"", b"\xff", None])
def test_a_file_without_a_password_is_refused_at_the_start(content, tmp_path):
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    registry = RegistrySettings(url="http://r", password_file=str(path))
    with pytest.raises(SettingsError, match="password_file: expected a readable file"):
        check_format(Settings(format="json_schema", registry=registry))


@pytest.mark.parametrize("number", [0, -1, 2**31, 2**70, 1.5, "7", None, True])
async def test_an_id_that_no_record_can_hold_is_not_understood(number):
    answer = json.dumps({"id": number}).encode()
    server = Answers(**{"/subjects/t-value/versions": (200, answer)})
    async with server.registry() as registry:
        with pytest.raises(RegistryError, match="not understood"):
            await registry.register("t-value", Schema("AVRO", "a"))


def test_a_format_without_its_library_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(client_module, "missing_module", lambda name: "fastavro")
    settings = Settings(format="avro", registry=RegistrySettings(url="http://r"))
    with pytest.raises(SettingsError, match="avro needs fastavro, which is not installed"):
        check_format(settings)
    check_format(Settings())


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["missing", "pipe"])
def test_authorities_that_cannot_be_read_are_refused(tmp_path, kind):
    path = tmp_path / "none.pem"
    if kind == "pipe":
        os.mkfifo(path)  # nobody writes to it
    registry = RegistrySettings(url="https://r", ca_file=str(path))
    reason = "not a regular file" if kind == "pipe" else "No such file or directory"
    expected = f"setting registry.ca_file: expected a readable PEM, got '{path}': {reason}"
    with pytest.raises(SettingsError) as failure:
        check_format(Settings(format="json_schema", registry=registry))
    assert str(failure.value) == expected
