"""Messages as Avro: what fastavro reads of them, and what is read back as JSON."""

import json
from io import BytesIO

import fastavro
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.topics.formats import (
    ContentError,
    Schema,
    SchemaError,
    framed,
    message_reader,
    message_schema,
    message_writer,
    schema_id,
)
from faust_oslrau.topics.formats.avro_writer import whole_number
from faust_oslrau.topics.formats.zigzag import zigzag

SCORE = {
    "topic": "machines", "partition": 3, "offset": 2**40, "timestamp": None,
    "log_likelihood": -17.25, "p_value": 1e-300, "is_anomaly": True, "n_learned": 0,
    "warming_up": False,
}  # fmt: skip
BLAME = {"field": "ä", "nats": 1.5, "usual": None}
OF_NUMBER = {**BLAME, "value": 1e22, "expected": 1e-7, "deviation": 0.5, "extrapolated": False}
OF_CATEGORY = {**BLAME, "category": "a", "expected_category": "b"}
ANOMALY = {**SCORE, "contributions": [OF_NUMBER, OF_CATEGORY]}
DRIFT = {
    "topic": "machines", "partition": 3, "offset": 7, "timestamp": -1, "event": "drift",
    "statistic": 1.25, "records": 512,
}  # fmt: skip
TOPICS = {"scores": SCORE, "anomalies": ANOMALY}


def avro(topic, message, number=7):
    return message_writer(message_schema(topic), number)(message)


def parsed(topic):
    return fastavro.parse_schema(json.loads(message_schema(topic).text))


def by_fastavro(topic, value):
    content = BytesIO(value[5:])
    found = fastavro.schemaless_reader(content, parsed(topic))
    assert content.read() == b""
    return found


def back(topic, value):
    return message_reader(message_schema(topic))(value)


@pytest.mark.parametrize("topic", TOPICS)
def test_another_reader_of_avro_finds_the_members(topic):
    value = avro(topic, orjson.dumps(TOPICS[topic]))
    assert schema_id(value) == 7
    found = by_fastavro(topic, value)
    assert {name: found[name] for name in SCORE} == SCORE
    if topic == "anomalies":
        blame = found["contributions"]
        assert {name: blame[0][name] for name in OF_NUMBER} == OF_NUMBER
        assert {name: blame[1][name] for name in OF_CATEGORY} == OF_CATEGORY
    assert found.get("forecast") is None


def test_a_score_is_read_back_to_the_byte():
    text = orjson.dumps(SCORE)
    assert back("scores", avro("scores", text)) == text


def test_a_record_is_its_text_whatever_is_in_it():
    record = b'{"a" : 1e999, "record":{"event":"drift"}}'
    text = orjson.dumps(SCORE)[:-1] + b',"record":' + record + b"}"
    value = avro("anomalies", text)
    assert by_fastavro("anomalies", value)["record"] == record.decode()
    assert back("anomalies", value) == text


def test_a_record_with_bytes_that_are_no_text_is_one_that_others_can_read():
    text = orjson.dumps(SCORE)[:-1] + b',"record":{"a":"\xff"}}'
    assert by_fastavro("anomalies", avro("anomalies", text))["record"] == '{"a":"\ufffd"}'


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_are_those_of_avro(number):
    written = whole_number(number)
    assert zigzag(written, 0) == (number, len(written))
    content = BytesIO()
    fastavro.schemaless_writer(content, "long", number)
    assert content.getvalue() == written


@pytest.mark.parametrize(
    ("kind", "schema"),
    [("JSON", "{}"), ("AVRO", "no schema"), ("AVRO", '"string"'), ("AVRO", '["null", "string"]')],
)
def test_a_schema_that_is_none_of_messages_is_refused(kind, schema):
    with pytest.raises(SchemaError):
        message_reader(Schema(kind, schema))


def test_an_event_that_the_schema_does_not_have_is_refused():
    schema = json.loads(message_schema("anomalies").text)
    value = avro("anomalies", orjson.dumps(DRIFT | {"event": "drift"}))
    renamed = [each for each in schema if each["name"] != "Drift"]
    renamed.insert(1, next(each for each in schema if each["name"] == "Drift") | {"name": "Other"})
    with pytest.raises(ContentError, match="got drift"):
        message_reader(Schema("AVRO", json.dumps(renamed)))(value)
    with pytest.raises(ContentError):
        back("anomalies", value[:-1])


@pytest.mark.timeout(20)
def test_types_that_double_are_not_written_out():
    levels = [{"type": "record", "name": "R0", "fields": []}]
    for level in range(40):
        fields = [{"name": name, "type": f"R{level}"} for name in "ab"]
        levels.append({"type": "record", "name": f"R{level + 1}", "fields": fields})
    read = message_reader(Schema("AVRO", json.dumps(levels)))
    with pytest.raises(ContentError, match="too large"):
        read(framed(1, whole_number(40)))


@pytest.mark.parametrize("event", [b"\0" + bytes(6) + b"\xf0\x7f", b"\x02" + b"\x02x"])
def test_a_message_of_other_fields_is_refused(event):
    kinds = [
        {"type": "record", "name": name, "fields": [{"name": field, "type": kind}]}
        for name, field, kind in (("Score", "event", "double"), ("Other", "event", "string"))
    ]
    with pytest.raises(ContentError):
        message_reader(Schema("AVRO", json.dumps(kinds)))(framed(1, event))
