"""Workers on a real Kafka whose snapshots are on a real S3 server."""

from dataclasses import replace

import pytest
from clean_run import assert_as_clean, clean_run, newest_states, rows
from click.testing import CliRunner
from real_bucket import SECRET

from faust_oslrau.app.cli import main

pytestmark = pytest.mark.real_kafka

# Snapshots every few hundred records.
_OFTEN = {"snapshot_interval": 0.1, "snapshot_records": 500, "batch_records": 500}


@pytest.fixture
def settings(settings, address):
    return replace(settings, snapshots=address)


def test_killed_workers_go_on_from_the_bucket_to_the_bytes_of_a_clean_run(
    client, settings, start_worker, topic_name
):
    client.create(topic_name, 2)
    client.send(topic_name, rows(10_000, 2))
    first = start_worker(session_timeout=2, commit_seconds=0.7, **_OFTEN)
    client.wait_messages(settings.scores_topic, 4_000)  # in the middle of its work
    first.kill()
    client.send(topic_name, rows(10_000, 2, seed=1))
    second = start_worker(session_timeout=2, commit_seconds=0.7, **_OFTEN).wait_ready()
    saved = lambda: {bool(p["snapshot_offset"]) for p in second.model()} == {True}  # noqa: E731
    second.wait_until(saved, "saved everywhere")
    second.kill()
    client.send(topic_name, rows(5_000, 2, seed=2))
    last = start_worker(**_OFTEN).wait_ready()
    last.wait_offsets(12_500)
    last.wait_metric(2, "oslrau_stage_seconds_count", stage="restore")
    assert last.terminate() == 0
    assert_as_clean(client, settings, 2, "at_least_once")


def test_a_worker_scores_while_the_bucket_is_full_and_saves_when_there_is_room(
    client, settings, start_worker, topic_name, door
):
    client.create(topic_name)
    client.send(topic_name, rows(300))
    worker = start_worker(**_OFTEN).wait_records(300)
    worker.wait_saved(300)
    door.is_full = True
    client.send(topic_name, rows(300, seed=1))
    worker.wait_records(600)
    worker.wait_until(
        lambda: worker.metric("oslrau_snapshot_failures_total", kind="save") > 0, "failed to save"
    )
    assert "snapshot not saved, will retry: s3://" in worker.log()
    door.open()
    worker.wait_saved(600)
    assert worker.terminate() == 0
    assert SECRET not in worker.raw_log()
    assert newest_states(settings, 1) == clean_run(client, settings)[1]


def test_inspect_reads_a_bucket_beside_the_worker_and_changes_it_after_the_worker(
    client, settings, start_worker, topic_name, monkeypatch, tmp_path
):
    for name in ("broker", "app_id", "snapshots"):
        monkeypatch.setenv(f"OSLRAU_{name.upper()}", getattr(settings, name))
    monkeypatch.setenv("OSLRAU_SOURCE_TOPICS", topic_name)

    def inspect(*arguments):
        result = CliRunner().invoke(main, ["inspect", *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    place, file = ("--partition", f"{topic_name}/0"), str(tmp_path / "exported")
    client.create(topic_name)
    client.send(topic_name, rows(300))
    worker = start_worker(**_OFTEN).wait_records(300)
    worker.wait_saved(300)
    assert "offset 300" in inspect() and settings.snapshots in inspect("--json")
    inspect(*place, "--export", file)
    client.send(topic_name, rows(300, seed=1))
    worker.wait_saved(600)  # it is the owner, still
    assert worker.terminate() == 0
    inspect("--reset", "100", "--yes")
    assert inspect() == "no snapshots\n"
    inspect(*place, "--import", file, "--yes")
    assert "offset 300" in inspect()
    worker = start_worker().wait_records(300)
    assert worker.metric("oslrau_records_total", outcome="scored") == 300
    assert worker.terminate() == 0
