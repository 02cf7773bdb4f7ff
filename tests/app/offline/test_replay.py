import asyncio
import json
import os
from collections import defaultdict
from functools import partial

import command_line
import numpy as np
import orjson
import pyarrow.parquet
import pytest
from kafka_client import KafkaClient

from faust_oslrau.app.brokers import EmbeddedBroker
from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.errors import BrokerError
from faust_oslrau.app.offline import logs
from faust_oslrau.app.offline.input_files import open_input
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record

ROWS = 1500
BEGAN = 1_700_000_000_000


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(ROWS, 2)) @ np.array([[1, 0.9], [0, 0.5]])
    rows[::250] += 30
    lines = [orjson.dumps({"b": b, "a": a}) for a, b in rows.tolist()]
    lines[7], lines[400] = b"\xff", b'{"a": "x"}'
    path = tmp_path_factory.mktemp("replay") / "rows.ndjson"
    path.write_bytes(b"\n".join(lines))
    return path


run = partial(command_line.run, "replay")


def lines_of(path):
    return path.read_bytes().splitlines()


def expected_scores(file, partitions):
    """Scores of the file from pipelines that see one record at a time."""
    pipelines = [
        PartitionPipeline("features", p, Settings(features=("a", "b"))) for p in range(partitions)
    ]
    scores = []
    for row, (key, value) in enumerate(open_input(file)):
        place = ("features", row % partitions, row // partitions)
        block = pipelines[row % partitions].process([Record(*place, None, key, value)])
        scores += [message.value for message in block.scores]
    return scores


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_file_is_scored_as_its_records_one_by_one(file, tmp_path, partitions):
    out = tmp_path / "scores.ndjson"
    result = run(file, "--features", "a,b", "--partitions", partitions, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    expected = expected_scores(file, partitions)
    assert sorted(lines_of(out)) == sorted(expected)
    summary = json.loads(result.stdout)
    assert summary.pop("seconds") > 0
    assert summary.pop("first_rejection").startswith("features/0 offset ")
    anomalies = sum(json.loads(score)["is_anomaly"] for score in expected)
    assert summary == {
        "records": ROWS, "scored": ROWS - 2, "anomalies": anomalies, "incidents": 0,
        "rejected": {"not_utf8": 1, "not_a_number": 1},
    }  # fmt: skip


def test_anomalies_and_incidents_are_written_as_a_worker_sends_them(tmp_path):
    rows = np.random.default_rng(6).normal(size=(ROWS, 2))
    rows[1100:1115] = 1e6
    file, alerts = tmp_path / "rows.ndjson", tmp_path / "alerts.ndjson"
    file.write_bytes(b"\n".join(orjson.dumps({"a": a, "b": b}) for a, b in rows.tolist()))
    result = run(file, "--out", tmp_path / "scores.ndjson", "--anomalies", alerts)
    assert ", 1 incidents, " in result.stdout
    pipeline, expected = PartitionPipeline("features", 0, Settings()), []
    for row, (key, value) in enumerate(open_input(file)):
        block = pipeline.process([Record("features", 0, row, None, key, value)])
        expected += [message.value for message in block.alerts]
    assert lines_of(alerts) == expected
    kinds = {json.loads(line).get("event") for line in expected}
    assert kinds == {None, "incident"}


def test_rejected_rows_are_written_with_their_reasons(file, tmp_path):
    letters = tmp_path / "letters.ndjson"
    run(file, "--out", tmp_path / "scores.ndjson", "--dead-letters", letters)
    first, second = map(json.loads, lines_of(letters))
    assert (first["value"], first["key"]) == ({"base64": "/w=="}, None)
    headers = dict(second["headers"])
    assert second["value"] == '{"a": "x"}'
    assert headers["oslrau-reason"] == "not_a_number"
    assert headers["oslrau-offset"] == "400"


def test_parquet_holds_what_ndjson_holds(file, tmp_path, monkeypatch):
    monkeypatch.setenv("OSLRAU_ALARM_RATE", "0.05")
    monkeypatch.setenv("OSLRAU_FORECASTS", "true")
    run(file, "--out", tmp_path / "scores.ndjson")
    result = run(file, "--out", tmp_path / "scores.parquet")
    assert result.exit_code == 0, result.output
    table = pyarrow.parquet.read_table(tmp_path / "scores.parquet").to_pylist()
    for row in table:
        for name in ("contributions", "forecast"):
            if row[name] is None:
                del row[name]
        for item in row.get("contributions", []):
            assert item.pop("category") is item.pop("expected_category") is None
    assert table == list(map(json.loads, lines_of(tmp_path / "scores.ndjson")))
    assert any("contributions" in row for row in table)
    assert any("forecast" in row for row in table)


def test_settings_and_chosen_fields_decide_the_scores(file, tmp_path):
    chosen = tmp_path / "settings.toml"
    chosen.write_text("batch_size = 64\n")
    outs = [tmp_path / name for name in ("default", "settings", "fields")]
    run(file, "--out", outs[0])
    run(file, "--out", outs[1], "--settings", chosen)
    run(file, "--out", outs[2], "--features", "b")
    assert len({out.read_bytes() for out in outs}) == 3


@pytest.mark.timeout(60)
def test_wrong_use_has_its_own_exit_codes_and_one_line(file, tmp_path):
    out = tmp_path / "scores.ndjson"
    assert run(file, "--out", out, "--from", 3).exit_code == 2
    assert run(file, "--out", out, "--to", 3).exit_code == 2
    assert run("--out", out, "--to", "never").exit_code == 2
    assert run(file).exit_code == 2
    assert run(file, "--out", out, "--features", "a,a").exit_code == 2
    assert run(file, "--out", tmp_path / "none" / "scores").exit_code == 1
    assert run("--out", out, "--broker", f"127.0.0.1:{free_ports(1)[0]}").exit_code == 3
    told = _told(run(file, "--out", out, "--partitions", 999_999_999))
    assert "999999999 is not in the range 1<=x<=100000" in told
    assert (
        _told(command_line.run("merge", "/dev/zero", "--out", out))
        == "Error: file /dev/zero: not a regular file"
    )
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for endless in ("/dev/zero", str(pipe)):
        told = _told(command_line.run("tail", endless))
        assert told == f"Error: {endless}: expected a regular file, there is none"
    chosen = tmp_path / "settings.toml"
    chosen.write_text('initial_model = "/dev/zero"')
    told = _told(run(file, "--out", out, "--settings", chosen))
    assert told.endswith("expected a model's file, got '/dev/zero': not a regular file")


@pytest.mark.parametrize("option", ["--out", "--anomalies", "--dead-letters"])
def test_what_is_read_is_not_written(option, file, tmp_path):
    rows, link = tmp_path / "rows.ndjson", tmp_path / "link.ndjson"
    rows.write_bytes(file.read_bytes())
    link.symlink_to(rows)
    outs = {"--out": tmp_path / "scores", option: link}
    told = _told(run(rows, *(part for pair in outs.items() for part in pair)))
    assert told == f"Error: {option} {link}: expected another file than {rows}, which is read"
    assert rows.read_bytes() == file.read_bytes() and not (tmp_path / "scores").exists()


def test_each_file_gets_one_kind_of_message(file, tmp_path):
    out = tmp_path / "scores"
    told = _told(run(file, "--out", out, "--anomalies", tmp_path / "." / "scores"))
    assert told == f"Error: --anomalies {out}: expected another file than --out"
    assert run(file, "--out", "/dev/null", "--anomalies", "/dev/null").exit_code == 0


def _told(result):
    """Return the last line of a command that failed with no traceback."""
    assert result.exit_code in (1, 2) and isinstance(result.exception, SystemExit)
    return result.stderr.splitlines()[-1]


@pytest.mark.parametrize("option", ["--out", "--anomalies", "--dead-letters"])
def test_a_full_disk_ends_a_replay_with_one_line(option, file, tmp_path, monkeypatch):
    monkeypatch.setenv("OSLRAU_ALARM_RATE", "0.1")
    outs = {"--out": tmp_path / "scores", option: "/dev/full"}
    result = run(file, *(part for pair in outs.items() for part in pair))
    assert result.exit_code == 1
    assert _told(result) == "Error: /dev/full: No space left on device"


def test_a_replay_of_many_partitions_takes_memory_for_those_with_rows(tmp_path):
    file, out = tmp_path / "rows.ndjson", tmp_path / "out"
    file.write_bytes(b'{"a": 1}\n' * 3)
    assert run(file, "--out", out, "--partitions", 100_000).exit_code == 0
    assert [json.loads(line)["partition"] for line in lines_of(out)] == [0, 1, 2]


def expected_of_topic(values, topic, partitions, start=0, end=None):
    """Scores of the offsets from start to end by partition, a millisecond after each other."""
    scores = {}
    for partition in range(partitions):
        records = [
            Record(topic, partition, offset, BEGAN + row, None, values[row])
            for offset, row in enumerate(range(partition, len(values), partitions))
        ]
        block = PartitionPipeline(topic, partition, Settings()).process(records[start:end])
        scores[partition] = [message.value for message in block.scores]
    return scores


def scores_by_partition(out):
    found = defaultdict(list)
    for line in lines_of(out):
        found[json.loads(line)["partition"]].append(line)
    return found


def test_a_topic_gives_the_scores_of_its_records(file, tmp_path, topic_name):
    values = [message.value for message in open_input(file)]
    with EmbeddedBroker() as broker:
        broker.create_topic(topic_name, 2)
        rows = [(row % 2, value, None, (), BEGAN + row) for row, value in enumerate(values)]
        KafkaClient(broker.bootstrap_servers).send(topic_name, rows)
        arguments = ("--topic", topic_name, "--broker", broker.bootstrap_servers, "--out")
        assert run(*arguments, tmp_path / "all").exit_code == 0
        assert run(*arguments, tmp_path / "again").exit_code == 0
        result = run(*arguments, tmp_path / "some", "--from", 100, "--to", 500, "--json")
        missing = run("--topic", "none", *arguments[2:], tmp_path / "none")
    assert scores_by_partition(tmp_path / "all") == expected_of_topic(values, topic_name, 2)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "all").read_bytes()
    order = [json.loads(line)["partition"] for line in lines_of(tmp_path / "all")]
    assert order == sorted(order)
    some = expected_of_topic(values, topic_name, 2, 100, 500)
    assert scores_by_partition(tmp_path / "some") == some
    assert json.loads(result.stdout)["records"] == 800
    assert missing.exit_code == 4 and "expected to exist" in missing.stderr


@pytest.mark.real_kafka
def test_aborted_records_and_markers_are_passed_over(kafka, client, tmp_path, topic_name):
    client.create(topic_name)
    for number in range(6):
        client.send(topic_name, [(0, b'{"x": %d}' % number)], abort=number % 2 == 1)
    out = tmp_path / "scores.ndjson"
    arguments = ("--topic", topic_name, "--broker", kafka.bootstrap_servers, "--out", out)
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["scored"] == 3
    assert [json.loads(line)["offset"] for line in lines_of(out)] == [0, 4, 8]


def test_what_is_wrong_with_the_first_rejected_record_is_told(file, tmp_path):
    result = run(file, "--out", tmp_path / "scores.ndjson")
    assert result.exit_code == 0
    assert result.stdout.endswith(
        " 2 rejected (not_a_number 1, not_utf8 1); the first rejected: features/0 offset 7: "
        "invalid start byte at byte 0\n"
    )


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_replay_without_any_scored_record_fails_and_says_why(options, tmp_path):
    path, letters = tmp_path / "wide.csv", tmp_path / "letters"
    columns = ",".join(f"c{i}" for i in range(5000))
    path.write_text(columns + ("\n" + ",".join("1" * 5000)) * 2 + "\n")
    result = run(path, "--out", tmp_path / "scores", "--dead-letters", letters, *options)
    assert result.exit_code == 1
    assert _told(result) == (
        "Error: no record was scored; the first rejected: features/0 offset 0: "
        "expected at most 4096 numeric fields, got more: choose some by name"
    )
    assert "rejected" in result.stdout and len(lines_of(letters)) == 2


def test_a_replay_of_no_records_succeeds(tmp_path):
    (tmp_path / "rows.ndjson").touch()
    assert run(tmp_path / "rows.ndjson", "--out", tmp_path / "scores").exit_code == 0


def test_records_that_are_too_few_to_choose_fields_are_told(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1.5,2.5\n" * 100)
    result = run(path, "--out", tmp_path / "out")
    assert result.exit_code == 0 and "100 scored" in result.stdout
    assert result.stderr == (
        "features/0: fields are chosen by 240 valid records, there are fewer: "
        "log-likelihoods and p-values are null\n"
    )
    assert run(path, "--out", tmp_path / "out", "--features", "a").stderr == ""


def test_a_broker_that_goes_away_ends_the_reading_of_a_topic(monkeypatch, topic_name):
    monkeypatch.setattr(logs, "_SILENT_SECONDS", 0.5)
    read = []
    with EmbeddedBroker() as broker:
        broker.create_topic(topic_name, 1)
        client = KafkaClient(broker.bootstrap_servers)
        client.send(topic_name, [(0, b"%05d" % at + b"x" * 500) for at in range(20_000)])
        settings = Settings(broker=broker.bootstrap_servers)

        def process(records):
            read.extend(records)
            broker.stop()

        with pytest.raises(BrokerError, match="returns no records from "):
            asyncio.run(logs.read_topic(topic_name, None, None, settings, process, lambda *_: None))
    assert 0 < len(read) < 20_000
