"""A file over Kafka and through a worker, and the same file offline: one command each."""

import re

import numpy as np
import orjson
import pytest
from command_line import run_well

pytestmark = pytest.mark.real_kafka


def without_time(score):
    return re.sub(rb'"timestamp":(null|[0-9]+)', b"", score)


def replayed_scores(out, partitions):
    found = [[] for _ in range(partitions)]
    for line in out.read_bytes().splitlines():
        found[orjson.loads(line)["partition"]].append(line)
    return found


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
    run_well("produce", path, *keyed, *broker, "--create-topic", "--partitions", 2)
    entities = {"entity": "key", "max_entities": 10}
    first = start_worker(**entities, snapshot_records=500, batch_records=100)
    client.wait_messages(settings.scores_topic, 1600)
    first.kill()
    worker = start_worker(**entities, batch_records=77).wait_ready()
    done = lambda: sum(p["next_offset"] for p in worker.model()) == n  # noqa: E731
    worker.wait_until(done, "at the end")
    assert worker.metric("oslrau_ignored_fields") == 4  # at and trace, in two partitions
    assert worker.terminate() == 0
    live = [{} for _ in range(2)]
    for message in client.read(settings.scores_topic):
        live[message.partition][orjson.loads(message.value)["offset"]] = message.value
    live = [list(scores.values()) for scores in live]

    for name, value in entities.items():
        monkeypatch.setenv(f"OSLRAU_{name.upper()}", str(value))
    run_well("replay", "--topic", topic_name, *broker, "--out", tmp_path / "again")
    assert replayed_scores(tmp_path / "again", 2) == live
    run_well("replay", path, *keyed, "--partitions", 2, "--out", tmp_path / "file")
    offline = replayed_scores(tmp_path / "file", 2)
    assert [list(map(without_time, scores)) for scores in offline] == [
        list(map(without_time, scores)) for scores in live
    ]


def test_a_field_that_is_added_begins_at_the_same_record_after_a_kill_and_in_a_replay(
    client, settings, start_worker, topic_name, tmp_path
):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4000, 2)) + rng.normal(size=(4000, 1))
    rows = [{"a": a, "b": b, "m": "low" if a < 0 else "high"} for a, b in x.tolist()]
    values = list(map(orjson.dumps, rows))
    client.create(topic_name)
    send = lambda first, last: client.send(topic_name, [(0, v) for v in values[first:last]])  # noqa: E731
    added = {"features": "a,b,m", "kinds": "m=category"}
    send(0, 1500)
    before = start_worker(features="a").wait_records(1500)
    assert before.terminate() == 0
    killed = start_worker(**added, batch_records=100).wait_ready()
    send(1500, 3000)
    client.wait_messages(settings.scores_topic, 2200)
    killed.kill()
    send(3000, 4000)
    worker = start_worker(**added, batch_records=77).wait_ready()
    worker.wait_until(lambda: worker.model()[0]["next_offset"] == 4000, "at the end")
    assert worker.model()[0]["fields"] == ["a", "b", "m"]
    assert worker.terminate() == 0
    found = client.read(settings.scores_topic)
    live = [*{orjson.loads(score.value)["offset"]: score.value for score in found}.values()]

    of_worker = {"app_id": settings.app_id, "snapshots": settings.snapshots}
    chosen = ("--topic", topic_name, "--broker", settings.broker)
    for name, of in (("again", added), ("a", {"features": "a"})):
        environment = {f"OSLRAU_{each.upper()}": value for each, value in (of_worker | of).items()}
        run_well("replay", *chosen, "--out", tmp_path / name, env=environment)
    assert replayed_scores(tmp_path / "again", 1) == [live]
    (only_a,) = replayed_scores(tmp_path / "a", 1)
    assert only_a[:1500] == live[:1500] and only_a[1600:] != live[1600:]
