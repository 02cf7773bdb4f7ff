"""A file over Kafka and through a worker, and the same file offline: one command each."""

import json
import re
import shutil
import subprocess

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from faust_oslrau.app.cli import main

pytestmark = pytest.mark.real_kafka


def run(*arguments):
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert result.exit_code == 0, result.output


def without_time(score):
    return re.sub(rb'"timestamp":(null|[0-9]+)', b"", score)


def live_scores(client, settings, start_worker, path, topic, partitions, records):
    """Return the score messages of a worker by partition, in the order of the topic."""
    create = ("--create-topic", "--partitions", partitions)
    run("produce", path, "--topic", topic, "--broker", settings.broker, *create)
    start_worker().wait_records(records).terminate()
    found = [[] for _ in range(partitions)]
    for message in client.read(settings.scores_topic):
        found[message.partition].append(message.value)
    return found


def replayed_scores(out, partitions):
    found = [[] for _ in range(partitions)]
    for line in out.read_bytes().splitlines():
        found[orjson.loads(line)["partition"]].append(line)
    return found


def test_live_scores_equal_replayed_ones_to_the_bit(
    dataset, client, settings, start_worker, topic_name, tmp_path
):
    partitions, rows = 3, dataset("ca")
    path = tmp_path / "ca.npz"
    np.savez(path, x=rows)
    live = live_scores(client, settings, start_worker, path, topic_name, partitions, len(rows))
    assert sum(map(len, live)) == len(rows)

    broker = ("--topic", topic_name, "--broker", settings.broker)
    run("replay", *broker, "--out", tmp_path / "topic")
    assert replayed_scores(tmp_path / "topic", partitions) == live

    spread = ("--partitions", partitions, "--topic", topic_name)
    run("replay", path, *spread, "--out", tmp_path / "file")
    offline = replayed_scores(tmp_path / "file", partitions)
    assert [list(map(without_time, scores)) for scores in offline] == [
        list(map(without_time, scores)) for scores in live
    ]


def test_categories_and_entities_are_the_same_live_after_a_kill_and_in_a_replay(
    client, settings, start_worker, topic_name, tmp_path, monkeypatch
):
    rng, n = np.random.default_rng(5), 4000
    rows = [
        {
            "at": 1_790_000_000 + i,  # only grows
            "latency": [1.0, 5.0, 9.0][service] + i % 37 + noise,
            "machine": f"m{i % 37}",
            "service": f"service-{service}",
            "status": "503" if i % 700 == 699 else "200",
            "trace": f"{i:x}-{noise}",
        }
        for i, (service, noise) in enumerate(
            zip(rng.integers(3, size=n).tolist(), rng.normal(0, 0.1, n).tolist(), strict=True)
        )
    ]
    path = tmp_path / "rows.ndjson"
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    keyed, broker = ("--key", "machine", "--topic", topic_name), ("--broker", settings.broker)
    run("produce", path, *keyed, *broker, "--create-topic", "--partitions", 2)
    entities = {"entity": "key", "max_entities": 10}
    first = start_worker(**entities, snapshot_records=500, batch_records=100)
    client.wait_messages(settings.scores_topic, 1600)
    first.kill()
    worker = start_worker(**entities, batch_records=77).wait_ready()
    done = lambda: sum(p["next_offset"] for p in worker.model()) == n  # noqa: E731
    worker.wait_until(done, "at the end")
    assert worker.metric("oslrau_ignored_fields") == 4  # at and trace, in two partitions
    worker.terminate()
    live = [{} for _ in range(2)]
    for message in client.read(settings.scores_topic):
        live[message.partition][orjson.loads(message.value)["offset"]] = message.value
    live = [list(scores.values()) for scores in live]

    for name, value in entities.items():
        monkeypatch.setenv(f"OSLRAU_{name.upper()}", str(value))
    run("replay", "--topic", topic_name, *broker, "--out", tmp_path / "again")
    assert replayed_scores(tmp_path / "again", 2) == live
    run("replay", path, *keyed, "--partitions", 2, "--out", tmp_path / "file")
    offline = replayed_scores(tmp_path / "file", 2)
    assert [list(map(without_time, scores)) for scores in offline] == [
        list(map(without_time, scores)) for scores in live
    ]


def test_a_console_consumer_reads_the_scores(client, settings, start_worker, topic_name, tmp_path):
    if shutil.which("kcat") is None:
        pytest.skip("no kcat on the PATH")
    path = tmp_path / "rows.ndjson"
    path.write_bytes(b"\n".join(b'{"x": %d, "y": %d}' % (i % 50, i % 7) for i in range(400)))
    live_scores(client, settings, start_worker, path, topic_name, 1, 400)
    command = ["kcat", "-C", "-q", "-e", "-b", settings.broker, "-t", settings.scores_topic]
    read = subprocess.run(command, capture_output=True, timeout=240, check=True)
    scores = [json.loads(line) for line in read.stdout.splitlines()]
    assert [score["offset"] for score in scores] == list(range(400))
    assert all(isinstance(score["log_likelihood"], float) for score in scores[240:])
