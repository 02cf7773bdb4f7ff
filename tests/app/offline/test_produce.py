import json
import os
import time
from functools import partial

import command_line
import pytest
from kafka_client import KafkaClient

from faust_oslrau.app.brokers import KafkaBroker
from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.offline import encoding
from faust_oslrau.app.registry import Registry
from faust_oslrau.topics.formats import Schema

SCHEMA = Schema(
    "AVRO", '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}'
)


@pytest.fixture
def client(broker):
    return KafkaClient(broker.bootstrap_servers)


@pytest.fixture
def topic(broker, topic_name):
    broker.create_topic(topic_name, 3)
    return topic_name


@pytest.fixture
def avro(monkeypatch):
    """Let rows be Avro, by a registry that knows one schema."""

    class Known(Registry):
        async def latest(self, subject):
            return 7, SCHEMA

    monkeypatch.setattr(encoding, "Registry", Known)
    monkeypatch.setenv("OSLRAU_FORMAT", "avro")
    monkeypatch.setenv("OSLRAU_REGISTRY_URL", "http://127.0.0.1:1")


run = partial(command_line.run, "produce")


def write_ndjson(tmp_path, lines):
    path = tmp_path / "rows.ndjson"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_row_i_goes_to_partition_i_modulo_the_number_of_partitions(broker, client, topic, tmp_path):
    lines = [b'{"x": %d}' % i for i in range(9000)]
    path = write_ndjson(tmp_path, lines)
    result = run(path, "--topic", topic, "--broker", broker.bootstrap_servers, "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary.pop("seconds") > 0
    assert summary == {
        "topic": topic, "partitions": 3, "records": 9000, "bytes": sum(map(len, lines)),
        "expired": 0, "retention": None,
    }  # fmt: skip
    found = client.read(topic)
    assert len(found) == 9000
    for record in found:
        assert record.value == lines[3 * record.offset + record.partition]
        assert record.key is None


def test_messages_have_the_time_that_a_setting_finds_in_their_rows(broker, client, topic, tmp_path):
    path = write_ndjson(tmp_path, [b'{"at": %d}' % at for at in (1_790_000_000, 1_790_000_007)])
    (tmp_path / "settings.toml").write_text('time = "at"')
    arguments = ("--topic", topic, "--broker", broker.bootstrap_servers)
    assert run(path, *arguments, "--settings", tmp_path / "settings.toml").exit_code == 0
    times = [record.timestamp for record in client.read(topic)]
    assert sorted(times) == [1_790_000_000_000, 1_790_000_007_000]


@pytest.mark.real_kafka
def test_a_new_topic_keeps_old_rows_and_one_that_deletes_them_or_is_there_is_told(
    kafka_installed, tmp_path
):
    path = write_ndjson(tmp_path, [b'{"at": %d}' % at for at in (1_600_000_000, int(time.time()))])
    (tmp_path / "settings.toml").write_text('time = "at"')
    create = ("--create-topic", "--partitions", 1)
    with KafkaBroker() as broker:  # with the retention that Kafka has by default
        to = ("--broker", broker.bootstrap_servers, "--settings", tmp_path / "settings.toml")
        new = run(path, *to, "--topic", "new", *create, "--json")
        again = run(path, *to, "--topic", "new", *create)
        KafkaClient(broker.bootstrap_servers).create("old")
        old = run(path, *to, "--topic", "old")
    assert new.exit_code == old.exit_code == 0, (new.output, old.output)
    assert again.exit_code == 4 and "already exists" in again.stderr
    assert new.stderr == "" and json.loads(new.stdout)["retention"] is None
    assert old.stderr == (
        "warning: 1 of them are older than the topic's retention.ms=604800000: "
        "Kafka deletes them soon\n"
    )


def test_the_rate_is_not_exceeded(broker, topic, tmp_path):
    path = write_ndjson(tmp_path, [b"{}"] * 60)
    arguments = (path, "--topic", topic, "--broker", broker.bootstrap_servers)
    result = run(*arguments, "--rate", 100, "--json")
    # The last chunk of five leaves when the others have taken their time.
    assert json.loads(result.stdout)["seconds"] >= 0.55


def test_large_and_small_messages_pass_together(broker, client, topic, tmp_path):
    lines = [b'{"x": 1, "y": "' + b"z" * size + b'"}' for size in (1_000_000, 5, 950_000, 7)]
    path = write_ndjson(tmp_path, lines)
    result = run(path, "--topic", topic, "--broker", broker.bootstrap_servers)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("4 records (1,950,080 bytes) sent to ")
    assert result.stderr == ""  # it is no terminal
    assert sorted(record.value for record in client.read(topic)) == sorted(lines)


def test_a_broker_that_creates_no_topics_says_so(broker, topic_name, tmp_path):
    path = write_ndjson(tmp_path, [b"{}"])
    create = ("--create-topic", "--partitions", 2)
    result = run(path, "--topic", topic_name, "--broker", broker.bootstrap_servers, *create)
    assert result.exit_code == 4
    assert "this broker creates no topics" in result.stderr


def test_wrong_use_has_its_own_exit_codes(tmp_path):
    path = write_ndjson(tmp_path, [b"{}"])
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    assert run(path, "--broker", nowhere).exit_code == 3
    assert run(path, "--broker", "nowhere").exit_code == 2
    assert run(path, "--create-topic").exit_code == 2
    assert run(tmp_path / "none.csv", "--broker", nowhere).exit_code == 1


def test_a_broken_file_ends_with_its_line(broker, topic, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n3\n")
    result = run(path, "--topic", topic, "--broker", broker.bootstrap_servers)
    assert result.exit_code == 1
    assert "line 3: expected 2 cells" in result.stderr
    assert result.stderr.endswith("; no row is sent\n")


def test_a_row_of_another_schema_is_told_with_its_line_and_how_many_are_sent(
    broker, client, topic, tmp_path, avro
):
    path = write_ndjson(tmp_path, [b'{"n": %d}' % n for n in range(5000)] + [b'{"n": 3.7}'])
    result = run(path, "--topic", topic, "--broker", broker.bootstrap_servers)
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: {path} line 5001: expected a row of the schema, field n: expected a whole number "
        "of 64 bits, got 3.7; the first 4,096 rows are sent\n"
    )
    assert len(client.read(topic)) == 4096


def test_no_topic_is_created_if_the_first_row_cannot_be_sent(broker, topic_name, tmp_path, avro):
    path = write_ndjson(tmp_path, [b'{"n": "a"}'])
    create = ("--create-topic", "--partitions", 2)  # this broker would refuse it
    result = run(path, "--topic", topic_name, "--broker", broker.bootstrap_servers, *create)
    assert result.exit_code == 1
    assert f"{path} line 1: expected a row of the schema, field n: " in result.stderr
    assert "; no row is sent" in result.stderr


@pytest.mark.real_kafka
def test_batches_are_as_small_as_the_topic_wants_them(kafka, topic_name, tmp_path):
    client = KafkaClient(kafka.bootstrap_servers)
    client.create(topic_name, 1, **{"max.message.bytes": "20000"})
    lines = [os.urandom(500).hex().encode() for _ in range(100)]
    arguments = ("--topic", topic_name, "--broker", kafka.bootstrap_servers)
    assert run(write_ndjson(tmp_path, lines), *arguments).exit_code == 0
    assert [record.value for record in client.read(topic_name)] == lines
    result = run(write_ndjson(tmp_path, [*lines, os.urandom(25_000).hex().encode()]), *arguments)
    assert result.exit_code == 4
    assert "row 100 of 50000 bytes is larger than it accepts" in result.stderr
