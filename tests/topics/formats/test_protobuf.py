"""Records of Protobuf as JSON."""

import errno
import math
import resource
import subprocess
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.topics.formats import ContentError, Schema, SchemaError, codec, framed
from faust_oslrau.topics.formats.errors import LargeContentError
from faust_oslrau.topics.formats.protobuf import _compiled

TEXT = """
syntax = "proto3";
package machines;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Zero { double unused = 1; }
message Reading {
  enum Mode { IDLE = 0; BUSY = 1; }
  message Vibration { double rms = 1; }
  double temperature = 1;
  optional double load = 2;
  int64 count = 3;
  Mode mode = 4;
  Vibration vibration = 5;
  google.protobuf.Timestamp at = 6;
  google.protobuf.DoubleValue pressure = 7;
  bytes raw = 8;
  repeated float samples = 9;
  map<string, int32> counts = 10;
  oneof which { string name = 11; bool flag = 12; }
  Reading before = 13;
}
"""
SCHEMA = Schema("PROTOBUF", TEXT)


@pytest.fixture(scope="module")
def codec_of_readings():
    return codec("protobuf", SCHEMA)


@pytest.fixture(scope="module")
def message_of():
    pool = DescriptorPool()
    for file in _compiled(SCHEMA).file:
        pool.Add(file)
    return lambda name: GetMessageClass(pool.FindMessageTypeByName(f"machines.{name}"))


READING = b"\x02\x02"  # one index, which is 1


def test_what_is_not_set_is_zero_or_missing_as_its_schema_says(codec_of_readings, message_of):
    value = framed(3, READING + message_of("Reading")().SerializeToString())
    assert orjson.loads(codec_of_readings.decode(value)) == {
        "temperature": 0.0, "load": None, "count": 0, "mode": "IDLE", "vibration": None,
        "at": None, "pressure": None, "raw": None, "samples": [], "counts": {}, "name": None,
        "flag": None, "before": None,
    }  # fmt: skip


def test_all_that_is_set_is_read(codec_of_readings, message_of):
    message = message_of("Reading")(
        temperature=-math.inf, load=0.25, count=-(2**63), mode=1, raw=b"ab", samples=[1, 2],
        counts={"a": 1}, flag=False,
    )  # fmt: skip
    message.vibration.rms = 0.5
    message.at.seconds, message.at.nanos = 1_790_000_000, 123_000_000
    message.pressure.value = 0.0
    message.before.mode = 7
    text = codec_of_readings.decode(framed(3, READING + message.SerializeToString()))
    assert b'"temperature":-1e999' in text
    found = orjson.loads(text.replace(b"-1e999", b"1"))
    assert (found["load"], found["count"], found["mode"]) == (0.25, -(2**63), "BUSY")
    assert (found["vibration"], found["pressure"]) == ({"rms": 0.5}, 0.0)
    assert found["at"] == 1_790_000_000_123.0
    assert (found["raw"], found["samples"], found["counts"]) == (None, [1.0, 2.0], {"a": 1})
    assert (found["name"], found["flag"], found["before"]["mode"]) == (None, False, "7")


@pytest.mark.parametrize(
    ("indexes", "name"), [(b"\0", "Zero"), (b"\x02\0", "Zero"), (b"\x02\x02", "Reading")]
)
def test_the_indexes_say_which_message_it_is(indexes, name, codec_of_readings, message_of):
    found = orjson.loads(codec_of_readings.decode(framed(3, indexes)))
    assert list(found) == [field.name for field in message_of(name).DESCRIPTOR.fields]


def test_indexes_lead_to_a_message_inside_another(codec_of_readings, message_of):
    content = message_of("Reading.Vibration")(rms=2.0).SerializeToString()
    assert codec_of_readings.decode(framed(3, b"\x04\x02\0" + content)) == b'{"rms":2.0}'


@pytest.mark.parametrize(
    "content", [b"", b"\x02", b"\x02\x09", b"\x02\x01", b"\x03", b"\xfe\xff\x03", b"\0\x09\0"]
)
def test_what_names_no_message_or_is_cut_is_refused(content, codec_of_readings):
    with pytest.raises(ContentError):
        codec_of_readings.decode(framed(3, content))


@pytest.mark.parametrize("left_over", [b"\x78\x01", b"\x7a\x02ab", b"\x79" + bytes(8)])
@pytest.mark.parametrize("member", [None, "vibration", "before", "at", "pressure"])
def test_bytes_that_are_a_field_of_no_message_are_refused(
    left_over, member, codec_of_readings, message_of
):
    message = message_of("Reading")(temperature=1.5)
    (getattr(message, member) if member else message).MergeFromString(left_over)
    with pytest.raises(ContentError, match="does not have"):
        codec_of_readings.decode(framed(3, READING + message.SerializeToString()))


@given(content=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(codec_of_readings, content):
    with suppress(ContentError):
        orjson.loads(codec_of_readings.decode(framed(3, content)))


def test_a_schema_may_refer_to_others():
    inner = ("other/inner.proto", 'syntax = "proto3"; package o; message I { double x = 1; }')
    text = 'syntax = "proto3"; import "other/inner.proto"; message M { o.I i = 1; }'
    found = codec("protobuf", Schema("PROTOBUF", text, (inner,)))
    assert found.decode(framed(1, found.encode({"i": {"x": 1.5}}))) == b'{"i":{"x":1.5}}'


NAMES = [
    "n" * 300 + ".proto",
    "record.proto",
    "record.proto/x.proto",
    ".",
    "",
    "../out.proto",
    "/a",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_a_schema_refers_to_may_have_any_name(name):
    inner = (name, 'syntax = "proto3"; message I { double x = 1; }')
    unused = 'syntax = "proto3"; message M { double y = 1; }'
    found = codec("protobuf", Schema("PROTOBUF", unused, (inner,)))
    assert found.decode(framed(1, b"\0")) == b'{"y":0.0}'
    text = f'syntax = "proto3"; import "{name}"; message M {{ I i = 1; }}'
    with suppress(SchemaError):
        found = codec("protobuf", Schema("PROTOBUF", text, (inner,)))
        assert found.decode(framed(1, b"\0\x0a\0")) == b'{"i":{"x":0.0}}'
    assert name not in NAMES[:3] or found.shape == {"i": {"x": None}}


OF_CONFLUENT = """
syntax = "proto3";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
option (confluent.file_meta).doc = "readings";
message M {
  option (confluent.message_meta) = { doc: "a reading", tags: "PII" };
  double x = 1 [(confluent.field_meta).params = { key: "unit", value: "bar" }];
  confluent.type.Decimal price = 2;
}
"""


def test_what_confluents_serializers_do_not_register_is_known():
    found = codec("protobuf", Schema("PROTOBUF", OF_CONFLUENT))
    content = b"\0\x09" + bytes(8) + b"\x12\x05\x0a\x01\x07\x18\x02"
    expected = b'{"x":0.0,"price":{"value":null,"precision":0,"scale":2}}'
    assert found.decode(framed(1, content)) == expected


def test_a_registered_file_counts_before_a_known_one():
    own = ("confluent/type/decimal.proto", 'syntax = "proto3"; message Own { double y = 3; }')
    text = 'syntax = "proto3"; import "confluent/type/decimal.proto"; message M { Own m = 1; }'
    found = codec("protobuf", Schema("PROTOBUF", text, (own,)))
    assert found.decode(framed(1, b"\0\x0a\0")) == b'{"m":{"y":0.0}}'


def test_durations_and_structs_are_the_objects_that_their_fields_say():
    text = """
        syntax = "proto3";
        import "google/protobuf/duration.proto"; import "google/protobuf/struct.proto";
        message M { google.protobuf.Duration d = 1; google.protobuf.Struct st = 2; }
    """
    found = codec("protobuf", Schema("PROTOBUF", text))
    content = found.encode({"d": "1.5s", "st": {"k": 2.0}})
    read = orjson.loads(found.decode(framed(1, content)))
    assert read["d"] == {"seconds": 1, "nanos": 500_000_000}
    assert read["st"]["fields"]["k"]["number_value"] == 2.0


@pytest.mark.parametrize("name", ["nul\0.proto", "a=b.proto", "a:b", "two\nlines", "\ud800.proto"])
def test_what_protoc_takes_as_no_name_is_refused(name):
    with pytest.raises(SchemaError, match="expected"):
        codec("protobuf", Schema("PROTOBUF", TEXT, ((name, ""),)))


@pytest.mark.parametrize("code", [1, -9])
def test_a_compiler_that_cannot_run_says_nothing_of_a_schema(code, monkeypatch):
    stderr = b"Traceback (most recent call last):\nMemoryError"
    done = subprocess.CompletedProcess([], code, b"", stderr)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    with pytest.raises(OSError, match="protoc"):
        codec("protobuf", Schema("PROTOBUF", f"// {code}\n{TEXT}"))


def test_a_full_disk_says_nothing_of_a_schema(monkeypatch):
    def write(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(OSError, match="No space left"):
        codec("protobuf", Schema("PROTOBUF", f"// full\n{TEXT}"))


@pytest.mark.parametrize("levels", [90, 5000])
def test_a_chain_of_messages_is_read_or_refused(levels):
    links = "".join(f"message M{i} {{ M{i + 1} m = 1; }}\n" for i in range(levels))
    text = f'syntax = "proto3"; {links} message M{levels} {{ double x = 1; }}'
    found = codec("protobuf", Schema("PROTOBUF", text))
    try:
        assert found.decode(framed(1, b"\0\x0a\0")) == b'{"m":{"m":null}}'
    except ContentError as error:
        assert (levels, "RecursionError" in str(error)) == (5000, True)


WIDE = "".join(f"double a{i} = {i + 1};" for i in range(4000))
PARSED = {
    "repeated": f"message R {{ repeated M m = 1; }} message M {{ {WIDE} }}",
    "map": f"message R {{ map<int32, M> m = 1; }} message M {{ {WIDE} }}",
    "inner": f"message R {{ repeated O m = 1; }} message O {{ M m = 1; }} message M {{ {WIDE} }}",
    "own": f"message R {{ repeated R m = 1; {WIDE.replace(' = 1;', ' = 9000;')} }}",
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", PARSED)
def test_few_bytes_are_not_parsed_into_endless_messages(name):
    found = codec("protobuf", Schema("PROTOBUF", f'syntax = "proto3"; {PARSED[name]}'), 1_048_588)
    inner = {"repeated": b"\x0a\0", "own": b"\x0a\0", "map": b"\x0a\2\x12\0"}
    item = inner.get(name, b"\x0a\2\x0a\0")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LargeContentError):
        found.decode(framed(1, b"\0" + item * 100_000))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB
    assert len(found.decode(framed(1, b"\0" + item * 5))) > 40_000


def test_a_group_is_a_message_too():
    text = f'syntax = "proto2"; message R {{ repeated group M = 1 {{ {WIDE} }} }}'.replace(
        "double", "optional double"
    )
    found = codec("protobuf", Schema("PROTOBUF", text), 1_048_588)
    with pytest.raises(LargeContentError):
        found.decode(framed(1, b"\0" + b"\x0b\x0c" * 100_000))
    assert found.decode(framed(1, b"\0" + b"\x0b\x0c")).startswith(b'{"m":[{"a0":null')


def test_few_bytes_become_no_endless_json():
    fields = "".join(f"double {'a' * 200}{i} = {i + 1};\n" for i in range(1000))
    text = f'syntax = "proto3"; message R {{ repeated M m = 1; }} message M {{ {fields} }}'
    found = codec("protobuf", Schema("PROTOBUF", text), 1_000_000)
    with pytest.raises(LargeContentError, match="its JSON is too large"):
        found.decode(framed(1, b"\0" + b"\x0a\0" * 1000))
    assert len(found.decode(framed(1, b"\0" + b"\x0a\0" * 4))) > 800_000


@pytest.mark.parametrize(
    ("text", "told"),
    [("message R { required }", "record.proto:1:22: Expected type name."),
     ('import "../o.proto";', 'record.proto:1:1: Import "../o.proto" was not found or had errors.'),
     ('{"a": 1}', 'record.proto:1:1: Expected top-level statement (e.g. "message").'),
     ('import "none.proto";', "none.proto: File not found."),
     ('syntax = "proto3"; import "warned.proto"; message M { What w = 1; }',
      'record.proto:1:55: "What" is not defined.'),
     ('import "wrong.proto";', "wrong.proto:1:9: Expected message name.")],
)  # fmt: skip
def test_errors_are_those_of_the_schema_and_no_line_of_a_log(text, told):
    references = (("warned.proto", 'syntax = "proto3"; import "google/protobuf/any.proto";'),
                  ("wrong.proto", "message {"), ("../o.proto", ""))  # fmt: skip
    with pytest.raises(SchemaError) as error:
        codec("protobuf", Schema("PROTOBUF", text, references))
    assert str(error.value) == f"expected a Protobuf schema, {told}"


def test_a_document_that_is_not_of_the_schema_is_refused(codec_of_readings):
    with pytest.raises(ContentError):
        codec_of_readings.encode({"what": 1})


def test_a_document_that_lacks_a_required_field_is_refused():
    text = 'syntax = "proto2"; message R { required double a = 1; optional double b = 2; }'
    found = codec("protobuf", Schema("PROTOBUF", text))
    with pytest.raises(ContentError, match="missing required fields: a"):
        found.encode({"b": 1.0})
    assert found.decode(framed(1, found.encode({"a": 2.0}))) == b'{"a":2.0,"b":null}'


TIMES = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
message R {
  google.protobuf.Timestamp at = 1;
  repeated google.protobuf.Timestamp all_times = 2;
  map<string, google.protobuf.Timestamp> by_name = 3;
  map<string, double> others = 4;
  R inner = 5;
}"""


def test_times_are_written_of_the_numbers_that_they_are_read_as():
    by = codec("protobuf", Schema("PROTOBUF", TIMES))
    row = {
        "at": 1_790_000_000_123.25, "all_times": [0, -1, 1_790_000_000_000],
        "by_name": {"a": 5}, "others": {"a": 5.0}, "inner": {"at": 253_402_300_799_999},
    }  # fmt: skip
    found = orjson.loads(by.decode(framed(1, by.encode(row))))
    assert found["inner"]["at"] == row.pop("inner")["at"]
    assert {name: found[name] for name in row} == row
    text = {"at": "2026-05-01T10:00:00.5Z", "allTimes": [1000]}
    found = orjson.loads(by.decode(framed(1, by.encode(text))))
    assert (found["at"], found["all_times"]) == (1_777_629_600_500, [1000])
    for wrong in (1e300, True, {"seconds": 3}):
        with pytest.raises(ContentError):
            by.encode({"at": wrong})
