"""Schemas of a topic's records without a worker."""

from __future__ import annotations

import json

import pytest

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.offline import log_schemas
from faust_oslrau.app.offline.log_schemas import LogSchemas
from faust_oslrau.app.settings import RegistrySettings, Settings
from faust_oslrau.topics import Record
from faust_oslrau.topics.formats import Acceptance, Schema, codec, framed

SETTINGS = Settings(format="avro", registry=RegistrySettings(url="http://r"))
AVRO = Schema(
    "AVRO",
    json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "double"}]}),
)
VALUE = codec("avro", AVRO).encode({"a": 0.5})


class _Registry:
    def __init__(self, **known):
        self.known, self.asked = known, []

    async def schema(self, schema_id):
        self.asked.append(schema_id)
        return self.known.get(f"_{schema_id}")


def records(*values, first=0):
    return [Record("t", 0, offset, None, None, value) for offset, value in enumerate(values, first)]


def schemas(**known):
    found = LogSchemas(SETTINGS)
    found._registry = _Registry(**known)
    return found


async def test_the_registry_is_asked_only_for_what_was_not_accepted():
    found = schemas(_5=AVRO, _6=AVRO)
    found.translator("t", 0).accept([Acceptance(5, None, 0, 2)])
    log = records(framed(5, VALUE), framed(6, VALUE), framed(5, VALUE))
    await found.prepare(log)
    assert found._registry.asked == [6, 5]
    translated, rejected = found.translator("t", 0).translate(log)
    assert [record.value for record in translated] == [None, b'{"a":0.5}', b'{"a":0.5}']
    assert list(rejected) == [0]
    await found.prepare(log)
    assert found._registry.asked == [6, 5]


async def test_a_record_is_shown_as_json_or_as_it_is():
    found = schemas(_5=AVRO)
    shown = [await found.read(each) for each in records(framed(5, VALUE), framed(9, b""), b"x")]
    assert [record.value for record in shown] == [b'{"a":0.5}', framed(9, b""), b"x"]


def test_a_format_without_its_library_is_refused(monkeypatch):
    def refuse(settings):
        raise SettingsError("setting format: avro needs fastavro")

    monkeypatch.setattr(log_schemas, "check_format", refuse)
    with pytest.raises(SettingsError, match="needs fastavro"):
        LogSchemas(SETTINGS)
