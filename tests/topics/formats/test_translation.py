"""Which schema holds for which record, and what is wrong with records that have none."""

import json

import pytest

from faust_oslrau.topics import Record
from faust_oslrau.topics.formats import Acceptance, Schema, Translator, codec, framed

TEXT = json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": "double"}]})
AVRO = Schema("AVRO", TEXT)
CONTENT = codec("avro", AVRO).encode({"x": 1.5})


def records(*values, first=0):
    return [Record("t", 0, offset, 7, b"k", value) for offset, value in enumerate(values, first)]


def translator(*accepted, most=1000):
    found = Translator("avro", most)
    found.accept(accepted)
    return found


def reasons(found, *values, first=0):
    """Return the rejections of records by their positions."""
    _, rejected = found.translate(records(*values, first=first))
    return {position: rejection.reason.value for position, rejection in rejected.items()}


def test_records_become_json_and_keep_all_else():
    found, rejected = translator(Acceptance(5, AVRO, 0, None)).translate(
        records(framed(5, CONTENT), None)
    )
    assert found == records(b'{"x":1.5}', None)
    assert rejected == {}


def test_ids_are_needed_from_their_first_record_on():
    found = translator(Acceptance(5, AVRO, 0, None))
    known, new = framed(5, CONTENT), framed(6, CONTENT)
    assert found.needs(records(known, None, b"{}")) == {}
    assert found.needs(records(known, new, new, framed(9, b""), first=10)) == {6: 11, 9: 13}
    found.translate(records(known))
    assert found.needs(records(known, known)) == {}


def test_an_id_is_needed_before_the_offset_from_which_its_schema_holds():
    assert translator(Acceptance(5, AVRO, 10, None)).needs(records(framed(5, b""), first=9)) == {
        5: 9
    }


def test_that_there_is_no_schema_holds_up_to_an_offset():
    value = framed(5, CONTENT)
    found = translator(Acceptance(5, None, 3, 5))
    assert reasons(found, value, value, first=3) == {0: "unknown_schema", 1: "unknown_schema"}
    assert found.needs(records(value, value, first=4)) == {5: 5}
    found.accept([Acceptance(5, AVRO, 5, None)])
    assert reasons(found, value, first=5) == {}
    # A restart begins with earlier records: they are decided as they were.
    again = translator(Acceptance(5, AVRO, 5, None), Acceptance(5, None, 3, 5))
    assert reasons(again, value, value, value, first=3) == {
        0: "unknown_schema", 1: "unknown_schema",
    }  # fmt: skip


def test_a_record_is_not_read_before_its_schema_is_accepted():
    with pytest.raises(ValueError, match="expected an accepted answer for schema 5 at 0"):
        translator().translate(records(framed(5, CONTENT)))


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        (b"", "not_framed", "got no byte"),
        (b'{"x":1}', "not_framed", "got 7b 22 78 22 3a"),
        (b'{"x":1}', "not_framed", "the setting format may have to be json"),
        (b'\n{"x":1}', "not_framed", "the setting format may have to be json"),
        (b"\0\0\0\1", "not_framed", "got 00 00 00 01"),
        (b"\0" + b"\0\0\0\0\0\0\0\5" + CONTENT, "not_framed", "Apicurio's own format"),
        (b"\0\0\0\0\0", "not_framed", "got the id 0"),
        (b"\0\xff\0\0\0" + CONTENT, "not_framed", "got the id 4278190080"),
        (framed(5, CONTENT + b"\0"), "not_of_schema", "schema 5: 1 bytes are left over"),
        (framed(5, CONTENT[:-1]), "not_of_schema", "schema 5: it ends within a value"),
        (framed(6, CONTENT), "unknown_schema", "the registry had no schema 6"),
        (framed(7, CONTENT), "wrong_schema", "schema 7: expected a schema of AVRO, got JSON"),
        (framed(8, CONTENT), "wrong_schema", "schema 8: expected a schema of AVRO, "),
        (framed(5, bytes(1000)), "too_large", "1005 bytes, at most 1000 are taken"),
    ],
)
def test_what_cannot_be_read_is_rejected_with_a_reason(value, reason, detail):
    found = translator(
        Acceptance(5, AVRO, 0, None),
        Acceptance(6, None, 0, 10),
        Acceptance(7, Schema("JSON", "{}"), 0, None),
        Acceptance(8, Schema("AVRO", "{}"), 0, None),
    )
    for _ in range(2):  # as it is read for the first time, and later
        translated, rejected = found.translate(records(value, framed(5, CONTENT)))
        assert [record.value for record in translated] == [None, b'{"x":1.5}']
        assert rejected[0].reason == reason
        assert detail in rejected[0].detail


def test_a_record_that_is_too_large_as_json_says_so():
    lists = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "x", "type": {"type": "array", "items": "null"}}],
    }
    found = translator(Acceptance(5, Schema("AVRO", json.dumps(lists)), 0, None))
    _, rejected = found.translate(records(framed(5, b"\xd0\x01" * 50 + b"\0")))
    assert rejected[0] == (
        "too_large", "schema 5: its JSON is too large, at most 1000 bytes are taken"
    )  # fmt: skip


def test_records_of_json_schema_are_what_follows_the_id():
    found = Translator("json_schema", 1000)
    found.accept([Acceptance(5, Schema("JSON", "{}"), 0, None)])
    translated, rejected = found.translate(records(framed(5, b' {"x": 1}'), framed(5, b"{")))
    assert [record.value for record in translated] == [b' {"x": 1}', b"{"]
    assert rejected == {}
