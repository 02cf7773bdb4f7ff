"""`faust-oslrau inspect` on the snapshots of real workers."""

import json
import os
from dataclasses import replace

import pytest
from command_line import run, run_well
from worker_settings import snapshots_in

pytestmark = pytest.mark.real_kafka


@pytest.fixture
def settings(settings, request, tmp_path):
    kind = getattr(request, "param", "topic")
    return replace(settings, snapshots=snapshots_in(kind, settings, tmp_path))


@pytest.fixture
def inspect(settings, tmp_path):
    """A function that runs the command with the test's settings, and returns exit code and text."""
    environment = {
        f"OSLRAU_{name.upper()}": str(getattr(settings, name))
        for name in ("broker", "app_id", "snapshots")
    }
    environment["OSLRAU_SOURCE_TOPICS"] = settings.source_topics[0]

    def inspected(*arguments, **changes):
        changed = {f"OSLRAU_{name.upper()}": str(value) for name, value in changes.items()}
        result = run("inspect", *arguments, env=os.environ | environment | changed)
        return result.exit_code, result.output

    return inspected


def _fill(client, topic, number):
    client.send(topic, [(i % 2, b'{"a": %d, "b": %d}' % (i % 97, i % 89)) for i in range(number)])


@pytest.fixture
def scored(client, settings, start_worker, topic_name):
    """Two partitions with snapshots at offset 300."""
    client.create(topic_name, 2)
    _fill(client, topic_name, 600)
    assert start_worker().wait_records(600).terminate() == 0


def test_snapshots_are_listed_with_what_they_know_of_an_entity(
    client, start_worker, inspect, topic_name
):
    client.create(topic_name, 2)
    _fill(client, topic_name, 600)
    assert start_worker(entity="a").wait_records(600).terminate() == 0
    code, text = inspect()
    assert code == 0
    assert [line.split()[0] for line in text.splitlines()] == [f"{topic_name}/0", f"{topic_name}/1"]
    assert "offset 300" in text and "300 records" in text and "1 fields" in text
    assert "batch_size: 256" in inspect("--partition", f"{topic_name}/1")[1]
    first = json.loads(inspect("--json")[1].splitlines()[0])
    assert (first["partition"], first["next_offset"], first["fields"]) == (0, 300, ["b"])
    assert first["nodes"] > 0 and first["age_seconds"] < 300

    code, text = inspect("--entity", "7", entity="a")
    assert code == 0 and text.count("next value") == 2
    assert text.startswith(f"{topic_name}/0  offset 300")
    code, text = inspect("--entity", "7", "--partition", f"{topic_name}/1", "--json", entity="a")
    assert [field["field"] for field in json.loads(text)["fields"]] == ["b"]
    code, text = inspect("--entity", "nobody", entity="a")
    assert code == 1 and "no snapshot knows the entity nobody" in text


@pytest.mark.parametrize("settings", ["topic", "folder"], indirect=True)
def test_a_deployment_without_snapshots_has_none(client, inspect, topic_name, settings):
    client.create(topic_name, 2)
    folder = settings.snapshot_folder
    gone = "" if folder is None else f": there is no folder {folder}"
    assert inspect() == (0, f"no snapshots{gone}\n")
    if folder is None:
        client.create(settings.snapshots_topic, 2)
    else:
        os.mkdir(folder)
    assert inspect() == (0, "no snapshots\n")


def test_an_exported_snapshot_seeds_another_partition_and_a_new_deployment_after_a_dry_run(
    scored, inspect, client, start_worker, topic_name, tmp_path
):
    file = tmp_path / "seed"
    assert inspect("--partition", f"{topic_name}/0", "--export", file)[0] == 0
    to = ("--partition", f"{topic_name}/1", "--import", file)
    code, text = inspect(*to)
    assert code == 1 and "expected --offset" in text
    code, text = inspect(*to, "--offset", 300, "--yes")
    assert (code, text.splitlines()[-1]) == (0, "done")
    _fill(client, topic_name, 100)
    worker = start_worker().wait_records(100)
    assert [p["records"] for p in worker.model()] == [350, 350]
    assert [p["start"] for p in worker.model()] == [0, 300]
    assert worker.terminate() == 0

    new = {"app_id": f"{topic_name}-new"}
    to = ("--partition", f"{topic_name}/0", "--import", file)
    code, text = inspect(*to, **new)
    assert code == 0 and text.endswith("nothing is changed without --yes\n")
    assert f"{topic_name}/0: continues at offset 300 with a model of 300 records" in text
    assert inspect(**new) == (0, "no snapshots\n")
    assert inspect(*to, "--yes", **new)[0] == 0
    worker = start_worker(**new).wait_ready()
    worker.wait_offsets(350)
    worker.wait_metric(50 + 350, "oslrau_records_total")  # the seeded one, and the other
    assert [p["records"] for p in worker.model()] == [350, 350]
    assert worker.terminate() == 0


def test_what_cannot_be_done_is_refused_and_a_reset_is_done_with_yes_once_no_worker_runs(
    scored, inspect, start_worker, topic_name, tmp_path
):
    code, text = inspect("--partition", f"{topic_name}/7")
    assert code == 4
    assert f"partition {topic_name}/7: expected one such as {topic_name}/0" in text
    file = tmp_path / "seed"
    file.write_bytes(b"no snapshot")
    code, text = inspect("--partition", f"{topic_name}/0", "--import", file)
    assert code == 1 and f"file {file}: " in text
    assert "Traceback" not in text
    code, text = inspect("--reset", 301)
    assert code == 1 and "expected one from 0 to 300" in text
    worker = start_worker().wait_ready()
    code, text = inspect("--reset", "start", "--yes")
    assert code == 1 and "stop the workers first" in text
    assert len(inspect()[1].splitlines()) == 2
    assert worker.terminate() == 0

    code, text = inspect("--reset", 100)
    assert code == 0
    assert "starts a new model and emits from offset 100" in text
    assert text.endswith("nothing is changed without --yes\n")
    assert len(inspect()[1].splitlines()) == 2
    assert inspect("--reset", 100, "--yes")[0] == 0
    assert inspect()[1] == "no snapshots\n"
    worker = start_worker().wait_records(400)
    assert [p["start"] for p in worker.model()] == [100, 100]
    assert worker.metric("oslrau_records_total", outcome="scored") == 400
    assert worker.terminate() == 0


def test_a_forgotten_model_is_learned_again_under_new_settings(
    scored, inspect, start_worker, tmp_path
):
    rows, model = tmp_path / "rows.ndjson", tmp_path / "model"
    rows.write_bytes(b"\n".join(b'{"a": %d, "b": %d}' % (i % 97, i % 89) for i in range(100)))
    run_well("fit", rows, "--out", model, env={"OSLRAU_BATCH_SIZE": "64"})
    new = {"batch_size": 64, "initial_model": model}
    assert inspect("--forget", "--yes", **new)[0] == 0
    worker = start_worker(**new).wait_records(600)
    assert worker.metric("oslrau_records_total", outcome="replayed") == 600
    assert worker.terminate() == 0
