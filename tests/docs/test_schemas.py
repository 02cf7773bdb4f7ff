"""The schemas of all messages: as built, valid, and true."""

import json

import jsonschema
import pytest
from doc_pages import ROOT, read
from npm import npm_package

from faust_oslrau.topics.formats import message_reader, message_schema, message_writer
from faust_oslrau.topics.shortening import without_largest
from schemas.build import files
from schemas.json_schema import headers_of, schema_of
from schemas.members import Kind

JSON_KINDS = [kind for kind in Kind if kind is not Kind.DEAD_LETTER]


@pytest.mark.parametrize("path", files())
def test_a_file_is_what_the_table_of_members_says(path):
    assert read(path) == files()[path]


def test_there_is_no_file_without_a_kind():
    found = [*ROOT.glob("schemas/*.json"), *ROOT.glob("schemas/*.avsc")]
    assert {path.resolve().relative_to(ROOT).as_posix() for path in found} <= {*files()}


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_a_schema_is_one(kind):
    jsonschema.Draft7Validator.check_schema(schema_of(kind))


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_every_message_follows_the_schema_of_its_kind(kind, messages):
    schema = jsonschema.Draft7Validator(schema_of(kind))
    for message in _some(kind, messages[kind]):
        schema.validate(message)


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_what_is_left_of_a_message_that_is_too_large_follows_it_too(kind, sent):
    message = sent[kind][-1]
    while message.value:
        jsonschema.validate(json.loads(message.value), schema_of(kind))
        message = without_largest(message)
        jsonschema.validate(_texts(message), headers_of(kind))


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_every_message_is_the_same_as_avro_and_back(kind, sent):
    schema = message_schema("scores" if kind is Kind.SCORE else "anomalies")
    write, read = message_writer(schema, 1), message_reader(schema)
    for message in sent[kind][-200:]:
        value = write(message.value)
        assert len(value) < len(message.value)
        document, found = json.loads(message.value), json.loads(read(value))
        assert _without_null(found) == _without_null(document)
        jsonschema.validate(found, schema_of(kind))


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_no_message_follows_the_schema_of_another_kind(kind, messages):
    others = [schema_of(other) for other in JSON_KINDS if other not in (kind, Kind.SCORE)]
    for other in map(jsonschema.Draft7Validator, others):
        assert not any(map(other.is_valid, messages[kind][:3]))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"p_value": "0.1"}, "is not of type"),
        ({"offset": None}, "is not of type"),
        ({"forecast": [{"field": "a"}]}, "required"),
    ],
)
def test_a_schema_refuses_what_no_message_holds(change, told, messages):
    with pytest.raises(jsonschema.ValidationError, match=told):
        jsonschema.validate(messages["score"][-1] | change, schema_of(Kind.SCORE))


@pytest.mark.parametrize("kind", Kind)
def test_headers_follow_their_schema(kind, sent, processed):
    schema = jsonschema.Draft7Validator(headers_of(kind))
    for message in _some(kind, {**sent, "dead letter": processed.dead_letters}[kind]):
        schema.validate(_texts(message))


def test_the_document_of_topics_fits_the_schema_of_asyncapi():
    package = npm_package("@asyncapi/specs", "6.11.1")
    schema = json.loads((package / "schemas" / "3.0.0-without-$id.json").read_text())
    document = json.loads(read("schemas/asyncapi.json"))
    validator = jsonschema.Draft7Validator(schema)
    validator.validate(document)
    assert not validator.is_valid({**document, "channels": {"scores": {"adress": "scores"}}})


def _some(kind, found):
    """Return all messages of a kind, and of the many scores the first ones and a part."""
    return found[:300] + found[300 :: 20 if kind is Kind.SCORE else 1]


def _without_null(content):
    """Return content without members that are null, which Avro does not tell from absent ones."""
    if isinstance(content, list):
        return [_without_null(item) for item in content]
    if isinstance(content, dict):
        return {name: _without_null(each) for name, each in content.items() if each is not None}
    return content


def _texts(message):
    return {name: content.decode() for name, content in message.headers}
