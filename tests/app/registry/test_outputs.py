"""Who reads messages that may be Avro, and what they are told of their settings."""

import orjson
import pytest

from faust_oslrau.app.registry import MessageSchemas, OutputSchemas
from faust_oslrau.app.registry import outputs as outputs_module
from faust_oslrau.app.settings import RegistrySettings, Settings
from faust_oslrau.topics import Record
from faust_oslrau.topics.formats import framed, message_schema

AVRO = framed(5, b"content")
REASON = (("oslrau-reason", b"not_utf8"),)


def message(value, headers=(), topic="anomalies"):
    return Record(topic, 0, 0, None, None, value, headers)


@pytest.mark.parametrize(
    "found", [message(AVRO, REASON), message(None), message(b""), message(b"{}"), message(b"\0")]
)
async def test_nothing_is_told_of_dead_letters_and_what_is_no_avro(found, caplog):
    assert await MessageSchemas(Settings()).read(found) is found
    assert caplog.messages == []


class Reader:
    """A partition with these messages."""

    def __init__(self, *found):
        self.found = found

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    async def range(self):
        return 0, len(self.found)

    async def records(self, first, end):
        for record in self.found:
            yield record


IDS = [None, "x", 0, -5, 2**31, 1.5, True, [], 7]


@pytest.mark.parametrize("number", IDS)
async def test_only_an_id_that_a_registry_gives_is_kept(number, monkeypatch):
    registry = RegistrySettings(url="http://r")
    settings = Settings(format="avro", scores_format="avro", registry=registry)
    text = message_schema("scores").text
    value = orjson.dumps({"id": number, "schema": text, "registry": "http://r"})
    key = f"{settings.app_id}//{settings.scores_topic}".encode()
    found = Record("s", 0, 0, None, key, value)
    monkeypatch.setattr(outputs_module, "PartitionReader", lambda *_: Reader(found))
    writers = {}
    await OutputSchemas(settings, {}, None).fill_in_kept(writers)
    assert list(writers) == ([settings.scores_topic] if number == 7 else [])
