"""Who reads messages that may be Avro, and what they are told of their settings."""

import pytest

from faust_oslrau.app.registry import MessageSchemas
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record
from faust_oslrau.topics.formats import framed

AVRO = framed(5, b"content")
REASON = (("oslrau-reason", b"not_utf8"),)


def message(value, headers=(), topic="anomalies"):
    return Record(topic, 0, 0, None, None, value, headers)


async def test_avro_that_the_settings_do_not_name_is_told_once_of_each_topic(caplog):
    schemas = MessageSchemas(Settings())
    for topic in ("anomalies", "scores", "anomalies"):
        assert (await schemas.read(message(AVRO, topic=topic))).value == AVRO
    await schemas.aclose()
    assert caplog.messages == [
        f"topic {topic}: messages begin with the id of a schema: the setting scores_format may "
        "have to be avro"
        for topic in ("anomalies", "scores")
    ]


@pytest.mark.parametrize(
    "found", [message(AVRO, REASON), message(None), message(b""), message(b"{}"), message(b"\0")]
)
async def test_nothing_is_told_of_dead_letters_and_what_is_no_avro(found, caplog):
    assert await MessageSchemas(Settings()).read(found) is found
    assert caplog.messages == []
