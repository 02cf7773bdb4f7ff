"""Workers that write Avro, with a real registry, and those who read it."""

import json
from io import BytesIO

import fastavro
import orjson
import pytest
from deployment import SCHEMA, Deployment, avro, rows
from guarded_registry import TOKEN, GuardedRegistry
from post_server import PostServer

from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.topics.formats import Schema, message_schema, message_writer, schema_id

pytestmark = pytest.mark.real_kafka

ROWS = 1500
UNUSUAL = range(1200, 1215)
BAD = 700
"""The row that is no record."""


def found_rows():
    found = list(rows(ROWS))
    for at in UNUSUAL:
        found[at]["temperature"] = 1e6
    return found


def by_fastavro(schema, value):
    """Return a message as a reader finds it that knows its schema only."""
    content = BytesIO(value[5:])
    found = fastavro.schemaless_reader(content, fastavro.parse_schema(schema))
    assert content.read() == b""
    return found


def present(content):
    """Return content without members that are null, which Avro does not tell from absent ones."""
    if isinstance(content, list):
        return [present(item) for item in content]
    if isinstance(content, dict):
        return {name: present(each) for name, each in content.items() if each is not None}
    return content


def as_found(message):
    """Return a message of JSON as Avro has it, where a record is a text."""
    document = orjson.loads(message)
    if "record" in document:
        document["record"] = message.partition(b',"record":')[2][:-1].decode()
    return present(document)


@pytest.fixture
def guarded(registry, tmp_path):
    with GuardedRegistry(registry, tmp_path, f"Bearer {TOKEN}").at_work() as found:
        yield found


@pytest.mark.parametrize(
    ("source", "delivery"), [("avro", "exactly_once"), ("json", "at_least_once")]
)
def test_what_a_worker_writes_is_avro_that_a_replay_and_every_reader_agrees_with(
    source, delivery, client, settings, start_worker, registry, guarded, tmp_path, start_command
):
    deployment = Deployment(client, settings, start_worker, guarded, tmp_path, {
        "format": source, "scores_format": "avro", "delivery": delivery,
        "registry_ca_file": str(guarded.ca_file), "registry_password": TOKEN,
    })  # fmt: skip
    known = registry.register(f"{deployment.topic}-value", SCHEMA)
    values = [
        avro(known, SCHEMA, row) if source == "avro" else orjson.dumps(row) for row in found_rows()
    ]
    values[BAD] = values[BAD][:-1]
    worker = deployment.start().wait_ready()
    web = PostServer()
    environment = deployment.environment() | {"OSLRAU_NOTIFY_WEBHOOK": web.address}
    with (tmp_path / "command.log").open("wb") as log:
        start_command("notify", stderr=log, **environment)
    worker.wait_until(lambda: "reading" in (tmp_path / "command.log").read_text(), "notifying")
    deployment.send(values)
    worker.wait_records(ROWS)

    texts = {"scores": tmp_path / "replayed", "anomalies": tmp_path / "alerts"}
    deployment.run("replay", "--out", texts["scores"], "--anomalies", texts["anomalies"])
    for name, topic in deployment.outputs().items():
        schema_text, number = registry.latest(f"{topic}-value")
        assert json.loads(schema_text) == json.loads(message_schema(name).text)
        messages = [message.value for message in client.read(topic)]
        lines = texts[name].read_bytes().splitlines()
        assert {schema_id(message) for message in messages} == {number}
        # The bytes follow from those of the replay and the id, ...
        write = message_writer(Schema("AVRO", schema_text), number)
        assert messages == list(map(write, lines))
        # ... and mean the same to others.
        found = [by_fastavro(json.loads(schema_text), message) for message in messages]
        assert list(map(present, found)) == list(map(as_found, lines))
    assert len(client.read(settings.scores_topic)) == ROWS - 1
    alerts = client.read(settings.anomalies_topic)
    assert {dict(alert.headers)["content-type"] for alert in alerts} == {b"application/avro"}
    assert deployment.live()[1] == [values[BAD]]

    # A command that follows the topic prints what the replay wrote.
    of_topic = ("--since", "earliest", "--topic", settings.anomalies_topic)
    following = start_command("tail", "--json", *of_topic, **environment)
    written = texts["anomalies"].read_bytes().splitlines()
    expected = [present(orjson.loads(line)) for line in written]
    told = [present(orjson.loads(following.stdout.readline())) for _ in expected]
    assert told == expected

    # People are told of the incident, and another worker finds it.
    worker.wait_until(lambda: web.bodies, "told")
    (name,) = {each["incident"] for each in expected if "incident" in each}
    assert name in web.bodies[0]["incidents"]
    assert worker.terminate() == 0
    topic, partition, offset = name.split("/")
    worker = deployment.start(snapshots="off", start="latest").wait_ready()
    query = f"/incident?topic={topic}&partition={partition}&offset={offset}"
    found = worker.content(query)
    assert found["incident"]["incident"] == name
    assert TOKEN not in worker.log()


def test_outputs_wait_for_their_schemas(client, settings, start_worker, registry, tmp_path):
    changes = {"format": "json", "scores_format": "avro"}
    deployment = Deployment(client, settings, start_worker, registry, tmp_path, changes)
    registry.shut()
    worker = deployment.start()
    deployment.send(map(orjson.dumps, found_rows()[:100]))
    worker.wait_until(lambda: f"no schema for topic {settings.scores_topic}" in worker.log(), "on")
    assert (worker.get("/readyz")[0], client.read(settings.scores_topic)) == (503, [])
    registry.open()
    assert worker.wait_records(100).terminate() == 0
    assert len(client.read(settings.scores_topic)) == 100

    other = f"{deployment.topic}.other"
    registry.register(f"{other}-value", {"type": "record", "name": "Else", "fields": []})
    registry.refuse_incompatible(f"{other}-value")
    worker = deployment.start(anomalies_topic=other)
    assert worker.wait() == 3
    assert f"no schema for topic {other}: registry {registry.url}: status 409" in worker.log()
    assert "Traceback" not in worker.log()


def test_a_worker_that_starts_while_the_registry_is_away_writes_by_the_ids_that_it_had(
    client, settings, start_worker, registry, tmp_path
):
    deployment = Deployment(client, settings, start_worker, registry, tmp_path, {})
    deployment.changes["scores_format"] = "avro"
    known = registry.register(f"{deployment.topic}-value", SCHEMA)
    values = [avro(known, SCHEMA, row) for row in rows(600)]
    worker = deployment.start()
    deployment.send(values[:300])
    worker.wait_records(300)
    assert worker.terminate() == 0
    registry.shut()
    worker = deployment.start()
    deployment.send(values[300:])
    worker.wait_records(300)
    assert worker.get("/readyz")[0] == 200
    registry.open()
    topics = deployment.outputs().values()
    worker.wait_until(
        lambda: all(f"topic {topic} has schema" in worker.log() for topic in topics), "answers"
    )
    assert worker.terminate() == 0
    messages = [message.value for message in client.read(settings.scores_topic)]
    number = registry.latest(f"{settings.scores_topic}-value")[1]
    assert (len(messages), set(map(schema_id, messages))) == (600, {number})
    deployment.run("replay", "--out", tmp_path / "replayed")
    write = message_writer(message_schema("scores"), number)
    assert messages == list(map(write, (tmp_path / "replayed").read_bytes().splitlines()))

    # Another registry may have given the ids to other schemas, and other programs may write here.
    schemas = deployment.changes["registry_schemas_topic"]
    keys = {record.key for record in client.read(schemas) if b"//" in record.key}
    assert len(keys) == 2
    client.send(schemas, [(0, value, key) for key in keys for value in (b"[", b"{}", b"7", None)])
    deployment.changes["registry_url"] = f"http://127.0.0.1:{free_ports(1)[0]}"
    worker = deployment.start()
    worker.wait_until(lambda: "no schema for topic" in worker.log(), "waiting")
    assert "waiting for the registry" in worker.get("/readyz")[1]
