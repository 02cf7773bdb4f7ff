import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

import command_line
import numpy as np
import orjson
import pytest
from command_line import run_well

from faust_oslrau.app.brokers.ports import free_ports

ROWS = 1500
NOON = 1767268800000  # 2026-01-01 12:00 UTC


run = partial(command_line.run, "tail")


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """The files of a replay with an incident, and with a rejected row."""
    rows = np.random.default_rng(6).normal(size=(ROWS, 2))
    rows[1100:1115, 1] = 1e6
    folder = tmp_path_factory.mktemp("tail")
    lines = [orjson.dumps({"a": a, "b": b}) for a, b in rows.tolist()]
    lines[700] = b"\xff"
    (folder / "rows.ndjson").write_bytes(b"\n".join(lines))
    arguments = (folder / "rows.ndjson", "--anomalies", folder / "alerts.ndjson")
    run_well("replay", *arguments, "--out", folder / "scores.parquet")
    letters = ("--dead-letters", folder / "letters.ndjson")
    run_well("replay", *arguments, *letters, "--out", folder / "scores.ndjson")
    return folder


def alert(offset, timestamp, entity="press-7", severity_name="minor", field="a"):
    """An event of an incident, reduced to what filters need."""
    return orjson.dumps(
        {
            "event": "incident", "topic": "machines", "partition": 0, "offset": offset,
            "timestamp": timestamp, "state": "opened", "severity_name": severity_name,
            "incident": f"machines/0/{offset}", "entity": entity,
            "contributions": [{"field": field}],
        }
    )  # fmt: skip


def test_a_file_of_alerts_has_a_line_for_each_message(replayed):
    result = run_well("tail", replayed / "alerts.ndjson")
    alerts = (replayed / "alerts.ndjson").read_bytes().splitlines()
    lines = result.stdout.splitlines()
    assert len(lines) == len(alerts) > 10
    assert "\x1b" not in result.stdout
    opened = [line for line in lines if "incident opened" in line]
    assert len(opened) == 1 and "b 1e+06 (expected " in opened[0]


@pytest.mark.parametrize("name", ["scores.ndjson", "scores.parquet"])
def test_scores_are_read_from_both_formats(replayed, name):
    lines = run(replayed / name).stdout.splitlines()
    assert len(lines) == ROWS - 1
    assert "no p-value yet" in lines[0] and "features/0@0 " in lines[0]
    assert sum("anomaly " in line for line in lines) >= 15
    assert sum("log-likelihood" in line for line in lines) > 1000


def test_dead_letters_are_read_as_they_were_written(replayed):
    (line,) = run(replayed / "letters.ndjson").stdout.splitlines()
    assert "rejected " in line and "features/0@700" in line and "not_utf8: " in line
    as_json = run(replayed / "letters.ndjson", "--json")
    assert as_json.stdout.encode() == (replayed / "letters.ndjson").read_bytes()
    as_json = run(replayed / "alerts.ndjson", "--json")
    assert as_json.stdout.encode() == (replayed / "alerts.ndjson").read_bytes()


def test_filters(tmp_path):
    file = tmp_path / "alerts.ndjson"
    rows = [
        alert(1, NOON),
        alert(2, NOON, entity="press-8", severity_name="major"),
        alert(3, NOON, severity_name="critical", field="b"),
        b'{"topic":"machines","partition":0,"offset":4,"n_learned":1,"is_anomaly":true}',
        b"nonsense",
    ]
    file.write_bytes(b"\n".join(rows) + b"\n\n")

    def shown(*filters):
        lines = run(file, "--json", *filters).stdout_bytes.splitlines()
        return [rows.index(line) + 1 for line in lines if line in rows]

    assert shown() == [1, 2, 3, 4]
    assert shown("--entity", "press-7") == [1, 3]
    assert shown("--entity", "press-7", "--field", "b") == [3]
    assert shown("--field", "a") == [1, 2]
    assert shown("--severity", "minor") == [1, 2, 3]
    assert shown("--severity", "major") == [2, 3]
    assert shown("--severity", "critical") == [3]
    assert run(file).stdout.count("not understood") == 1


def test_an_incident_ends_with_the_address_of_its_page(tmp_path, monkeypatch):
    path = tmp_path / "alerts.ndjson"
    path.write_bytes(alert(7, NOON))
    assert "incidents/" not in run(path).stdout
    monkeypatch.setenv("OSLRAU_PAGE_URL", "https://ops.example/")
    assert run(path).stdout.endswith("  https://ops.example/incidents/machines/0/7\n")
    assert json.loads(run(path, "--json").stdout) == json.loads(alert(7, NOON))


def test_since_is_a_duration_or_a_time(replayed, tmp_path):
    file = tmp_path / "alerts.ndjson"
    now = datetime.now(UTC)
    hours = [3, 1]
    times = [int((now - timedelta(hours=h)).timestamp() * 1000) for h in hours]
    file.write_bytes(b"\n".join(alert(i, time) for i, time in enumerate(times)))
    recent = (now - timedelta(minutes=90)).isoformat()
    expected = {"2h": 1, "30m": 0, "1d": 2, recent: 1, "2026-01-01": 2, "earliest": 2}
    for since, n in expected.items():
        assert len(run(file, "--since", since).stdout.splitlines()) == n, since
    assert run(file, "--since", "yesterday").exit_code == 2
    without_times = run(replayed / "alerts.ndjson", "--since", "2h")
    assert without_times.exit_code == 1
    assert "--since needs messages with a time" in without_times.stderr


def test_colours_are_for_terminals_without_no_color(replayed, monkeypatch):
    assert "\x1b[" in run(replayed / "alerts.ndjson", color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run(replayed / "alerts.ndjson", color=True).stdout


def test_wrong_use_has_its_own_exit_codes(replayed, tmp_path):
    assert run(replayed / "alerts.ndjson", "--topic", "anomalies").exit_code == 2
    missing = run(tmp_path / "none.ndjson")
    assert missing.exit_code == 1 and "there is none" in missing.stderr
    assert run("--broker", f"127.0.0.1:{free_ports(1)[0]}").exit_code == 3


@pytest.fixture
def start(start_command):
    return partial(start_command, "tail")


def test_a_closed_pipe_ends_it_without_a_word(replayed, start):
    process = start(replayed / "scores.ndjson")
    assert b"score" in process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait(30)


def test_characters_that_the_output_does_not_know_are_escaped(replayed, start):
    process = start(replayed / "alerts.ndjson", PYTHONIOENCODING="latin-1")
    out, errors = process.communicate(timeout=240)
    assert (process.returncode, errors) == (0, b"")
    assert b" \xb1 " in out  # plus-minus
    process = start(replayed / "alerts.ndjson", PYTHONIOENCODING="cp437")
    assert process.communicate(timeout=240)[1] == b""


class TestOnTheEmbeddedBroker:
    @pytest.fixture
    def servers(self, broker):
        return broker.bootstrap_servers

    def test_messages_are_printed_as_they_come(self, broker, client, topic_name, start):
        broker.create_topic(topic_name, 2)
        client.send(topic_name, [(0, alert(1, NOON))])
        process = start("--topic", topic_name, "--broker", broker.bootstrap_servers, "--json",
                        "--since", "earliest")  # fmt: skip
        assert json.loads(process.stdout.readline())["offset"] == 1
        client.send(topic_name, [(1, alert(2, NOON))])
        assert json.loads(process.stdout.readline())["offset"] == 2
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=240) == (b"", b"")
        assert process.returncode == 0

    def test_avro_is_no_riddle(self, broker, client, topic_name, start):
        broker.create_topic(topic_name, 1)
        client.send(topic_name, [(0, b"\0\0\0\0\5" + bytes(20))] * 2 + [(0, alert(1, NOON))])
        process = start("--topic", topic_name, "--broker", broker.bootstrap_servers,
                        "--since", "earliest")  # fmt: skip
        lines = [process.stdout.readline() for _ in range(3)]
        assert [b"not understood" in line for line in lines] == [True, True, False]
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=240)[1]
        assert errors.count(b"the setting scores_format may have to be avro") == 1

    def test_without_since_only_new_messages_are_printed(self, broker, client, topic_name, start):
        broker.create_topic(topic_name, 1)
        client.send(topic_name, [(0, alert(1, NOON))])
        process = start("--broker", broker.bootstrap_servers, OSLRAU_ANOMALIES_TOPIC=topic_name)
        with ThreadPoolExecutor() as threads:
            first = threads.submit(process.stdout.readline)
            while not first.done():  # nothing tells when it is at the end
                client.send(topic_name, [(0, alert(2, NOON))])
                time.sleep(0.5)
        assert b"machines/0@2 " in first.result()
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=240)
        assert b"machines/0@1 " not in rest and errors == b""


@pytest.mark.real_kafka
def test_since_begins_at_a_time_of_a_topic(kafka, client, topic_name, start):
    client.create(topic_name, 2, **{"retention.ms": "-1"})
    rows = [(i % 2, alert(i, NOON + i), None, (), NOON + i) for i in range(10)]
    client.send(topic_name, rows)
    since = datetime.fromtimestamp((NOON + 5) / 1000, UTC).isoformat()
    process = start("--topic", topic_name, "--broker", kafka.bootstrap_servers, "--json",
                    "--since", since)  # fmt: skip
    found = sorted(json.loads(process.stdout.readline())["offset"] for _ in range(5))
    assert found == [5, 6, 7, 8, 9]
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=240) == (b"", b"")
    assert process.returncode == 0
