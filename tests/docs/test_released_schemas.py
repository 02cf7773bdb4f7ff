"""Readers of a released version read what is written now, and readers of now what it wrote."""

import io
import json
from pathlib import Path

import fastavro
import pytest
from fastavro.read import SchemaResolutionError

from faust_oslrau.topics.formats import message_schema, message_writer
from schemas.members import Kind

_FRAME_BYTES = 5  # magic byte and id of the schema
RELEASED = sorted(Path(__file__).with_name("released").glob("*/*.avsc"))
TOPICS = {"scores": [Kind.SCORE], "anomalies": [*set(Kind) - {Kind.SCORE, Kind.DEAD_LETTER}]}


@pytest.fixture(params=RELEASED, ids=lambda path: f"{path.stem} of {path.parent.name}")
def topic_and_schema(request):
    """A topic, and the schema of its messages in a released version."""
    return request.param.stem, json.loads(request.param.read_text())


@pytest.fixture
def written(topic_and_schema, sent):
    """Messages of a topic as they are written now, and their schema."""
    topic, _ = topic_and_schema
    schema = message_schema(topic)
    write = message_writer(schema, 1)
    messages = [message for kind in TOPICS[topic] for message in sent[kind][-20:]]
    return json.loads(schema.text), [write(message.value)[_FRAME_BYTES:] for message in messages]


def _read(message, writer, reader):
    return fastavro.schemaless_reader(io.BytesIO(message), writer, reader)


def test_messages_of_either_version_are_read_by_the_other(topic_and_schema, written):
    (_, released), (schema, messages) = topic_and_schema, written
    assert messages
    for message in messages:
        shared = _read(message, schema, released)
        assert shared.items() <= _read(message, schema, schema).items()
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, released, shared)
        assert shared.items() <= _read(stream.getvalue(), released, schema).items()


def test_a_new_member_that_must_be_there_is_noticed(sent):
    schema = message_schema("scores")
    message = message_writer(schema, 1)(sent[Kind.SCORE][-1].value)[_FRAME_BYTES:]
    released = json.loads(schema.text)
    changed = {**released, "fields": [*released["fields"], {"name": "added", "type": "long"}]}
    with pytest.raises(SchemaResolutionError, match="added"):
        _read(message, released, changed)
