"""Workers whose records name schemas, with a real registry."""

import json
from functools import partial

import orjson
import pytest
from command_line import run
from deployment import SCHEMA, Deployment, avro, rows

from faust_oslrau.topics.formats import framed

pytestmark = pytest.mark.real_kafka

JSON_SCHEMA = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
EVOLVED = {**SCHEMA, "fields": [{"name": "firmware", "type": "string"}, *SCHEMA["fields"]]}


@pytest.fixture
def deployment(client, settings, start_worker, registry, tmp_path):
    return Deployment(client, settings, start_worker, registry, tmp_path, {})


def test_a_replay_equals_the_live_run_to_the_bit_with_schemas_that_change(deployment, registry):
    deployment.changes["delivery"] = "exactly_once"
    first = registry.register(f"{deployment.topic}-value", SCHEMA)
    found = list(rows(1500))
    deployment.send(avro(first, SCHEMA, row) for row in found[:700])
    worker = deployment.start()
    worker.wait_records(700)
    second = registry.register(f"{deployment.topic}-value", EVOLVED)
    deployment.send(avro(second, EVOLVED, row) for row in found[700:])
    assert worker.wait_records(1500).terminate() == 0
    scores, letters = deployment.live()
    assert (len(scores), len(letters)) == (1500, 0)
    assert [orjson.loads(score)["timestamp"] for score in scores] == [row["at"] for row in found]
    assert deployment.replay() == (scores, {})


PROTO = """syntax = "proto3";
message Reading {
  float temperature = 1;
  optional double load = 2;
  int64 at = 3;
  string mode = 4;
  message Vibration { double rms = 1; }
  Vibration vibration = 5;
}"""
SCHEMAS = {"avro": json.dumps(SCHEMA), "protobuf": PROTO, "json_schema": json.dumps(JSON_SCHEMA)}


@pytest.mark.parametrize("name", SCHEMAS)
def test_rows_of_a_file_have_the_same_scores_in_every_format(name, deployment, tmp_path):
    rows_file, schema = tmp_path / "rows.ndjson", tmp_path / "schema"
    found = [{k: v for k, v in row.items() if k != "firmware"} for row in rows(600)]
    rows_file.write_bytes(b"\n".join(map(orjson.dumps, found)))
    schema.write_text(SCHEMAS[name])
    deployment.changes["format"] = name
    for number, options in enumerate((("--schema", schema), ()), start=1):
        deployment.run("produce", rows_file, *options)
        deployment.client.wait_messages(deployment.topic, 600 * number)
    assert deployment.start().wait_records(1200).terminate() == 0
    scores, letters = deployment.live()
    assert (len(scores), len(letters)) == (1200, 0)
    assert deployment.replay() == (scores, {})
    out = tmp_path / "of-file"
    deployment.run("replay", rows_file, "--out", out)
    assert out.read_bytes().splitlines() == scores[:600]
    if name == "avro":
        _assert_other_commands_read(deployment, tmp_path)


@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_columns_that_the_schema_lacks_are_left_out_and_told_once(name, deployment, tmp_path):
    rows_file, schema = tmp_path / "rows.ndjson", tmp_path / "schema"
    found = [row | {"vibration": {"rms": 1.0, "peak": 2.0}} for row in rows(5)]
    rows_file.write_bytes(b"\n".join(map(orjson.dumps, found)))
    schema.write_text(SCHEMAS[name])
    deployment.changes["format"] = name
    commands = [
        partial(run, *command, env=deployment.environment())
        for command in (
            ("produce", rows_file, "--schema", schema),
            ("replay", rows_file, "--out", tmp_path / "scores"),
        )
    ]
    for command in commands:
        made = command()
        assert made.exit_code == 0, made.output
        assert made.stderr.count("left out") == 1
        assert "not in the schema, left out: firmware, vibration.peak\n" in made.stderr
    assert len(deployment.client.read(deployment.topic)) == 5

    rows_file.write_bytes(b'{"temp": 20.0, "mod": "idle"}')
    for command in commands:
        made = command()
        assert made.exit_code == 1
        assert "expected a row of the schema, got none of its fields but temp, mod" in made.stderr


def _assert_other_commands_read(deployment, tmp_path):
    """Let the commands that read a topic find all of its records."""
    files = [tmp_path / "a.toml", tmp_path / "b.toml"]
    for file, rate in zip(files, (0.01, 0.02), strict=True):
        file.write_text(f"alarm_rate = {rate}")
    compared = orjson.loads(deployment.run("compare", *files, "--json"))
    assert [side["scored"] for side in (compared["a"], compared["b"])] == [1200, 1200]
    assert "for 1,200 records of" in deployment.run("advise")


def of_topic(schema, topic):
    """Return a schema that no other test registers, whose id is thus of this test alone."""
    return {**schema, "doc": topic}


def test_records_of_known_schemas_go_on_while_the_registry_is_away(deployment, registry):
    subject = f"{deployment.topic}-value"
    known, later = (of_topic(schema, deployment.topic) for schema in (SCHEMA, EVOLVED))
    first = registry.register(subject, known)
    found = list(rows(900))
    worker = deployment.start()
    deployment.send(avro(first, known, row) for row in found[:300])
    worker.wait_records(300)
    registry.shut()
    second = registry.register(subject, later)
    deployment.send(avro(first, known, row) for row in found[300:600])
    deployment.send(avro(second, later, row) for row in found[600:800])
    worker.wait_records(600)
    worker.wait_metric(1, "oslrau_awaited_schemas")
    worker.wait_metric(200, "oslrau_consumer_lag_records")
    status, text = worker.get("/readyz")
    assert (status, "schemas are awaited" in text) == (503, True)
    assert worker.get("/healthz")[0] == 200
    assert worker.log().count("waits for schema") == 1
    assert worker.terminate() == 0

    worker = deployment.start()  # it knows the first schema without the registry
    deployment.send(avro(first, known, row) for row in found[800:])
    worker.wait_metric(1, "oslrau_awaited_schemas")
    registry.open()
    worker.wait_offsets(900)
    assert worker.get("/readyz")[0] == 200
    assert worker.terminate() == 0
    scores, letters = deployment.live()
    assert (len(scores), len(letters)) == (900, 0)
    registry.shut()
    assert deployment.replay() == (scores, {})


@pytest.fixture
def next_id(deployment, registry):
    """The id that the registry gives to the next schema, and that no schema has yet."""
    return registry.register("next-id", of_topic(JSON_SCHEMA, deployment.topic), "JSON") + 1


def test_an_unknown_id_is_a_dead_letter_though_it_is_known_later(deployment, registry, next_id):
    subject, found = f"{deployment.topic}-value", list(rows(600))
    known, later = (of_topic(schema, deployment.topic) for schema in (SCHEMA, EVOLVED))
    unknown = next_id + 1
    assert registry.register(subject, known) == next_id
    deployment.send(avro(next_id, known, row) for row in found[:300])
    deployment.send(avro(unknown, later, row) for row in found[300:310])
    worker = deployment.start()
    worker.wait_records(310)
    assert registry.register(subject, later) == unknown
    deployment.send(avro(unknown, later, row) for row in found[310:])
    worker.wait_records(600)
    worker.kill()
    # A worker that begins anew learns the log again, and decides as the first one has.
    deployment.start(snapshots="off").wait_ready().wait_offsets(600)
    scores, _ = deployment.live()
    once = list(dict.fromkeys(scores))  # the last ones may not have been committed
    assert set(deployment.reasons()) == {"unknown_schema"}
    assert deployment.replay() == (once, {"unknown_schema": 10})


DECIMAL = {
    "type": "bytes", "logicalType": "decimal", "precision": 2 * 10**21, "scale": 2 * 10**21 - 1,
}  # fmt: skip
LONG_NAME = "n" * 300 + ".proto"


def poison_of_avro(deployment, registry):
    """Return a schema's id and a record that no library can read."""
    fields = [{"name": "temperature", "type": DECIMAL}]
    schema = {"type": "record", "name": "Poison", "fields": fields, "doc": deployment.topic}
    return framed(registry.register(f"{deployment.topic}-poison", schema), b"\x02\x05")


def poison_of_protobuf(deployment, registry):
    """Return a record whose schema refers to what is a file, and a folder of others."""
    inner, subject = 'syntax = "proto3"; message I { double x = 1; }', f"{deployment.topic}-inner"
    registry.register(subject, inner, "PROTOBUF")
    references = [
        {"name": name, "subject": subject, "version": 1} for name in ("a", "a/b", LONG_NAME)
    ]
    text = f'syntax = "proto3"; import "{LONG_NAME}"; message P {{ I i = 1; What w = 2; }}'
    number = registry.register(
        f"{deployment.topic}-poison", text, "PROTOBUF", references=references
    )
    return framed(number, b"\0")


POISON = {"avro": poison_of_avro, "protobuf": poison_of_protobuf}


@pytest.mark.parametrize("name", POISON)
def test_a_schema_that_no_library_can_read_and_messages_of_others_stop_nobody(
    name, deployment, registry, tmp_path, client
):
    deployment.changes["format"] = name
    rows_file, schema = tmp_path / "rows.ndjson", tmp_path / "schema"
    rows_file.write_bytes(b"\n".join(map(orjson.dumps, rows(300))))
    schema.write_text(SCHEMAS[name])
    deployment.run("produce", rows_file, "--schema", schema)
    client.wait_messages(deployment.topic, 300)
    poison = POISON[name](deployment, registry)
    deployment.send([poison, poison])
    deployment.run("produce", rows_file)
    client.wait_messages(deployment.topic, 602)
    assert deployment.start().wait_records(602).terminate() == 0

    key = f"{deployment.topic}/{deployment.topic}/0/0/99".encode()
    crafted = [b"[", b"[" * 4000, b"[]", b"{}", b'{"start": "x"}', b'{"references": null}']
    topic = deployment.changes["registry_schemas_topic"]
    client.send(topic, [(0, value, key + b"%d" % i) for i, value in enumerate(crafted)])
    worker = deployment.start(snapshots="off").wait_ready()
    worker.wait_offsets(602)
    assert worker.terminate() == 0
    assert "no acceptance, of 6 that are passed over" in worker.log()
    assert "Traceback" not in worker.log()
    scores, letters = deployment.live()
    assert (len(scores), letters) == (600, [poison, poison])
    expected = "not_of_schema" if name == "avro" else "wrong_schema"
    assert deployment.reasons() == [expected, expected]
    assert deployment.replay() == (scores, {expected: 2})
