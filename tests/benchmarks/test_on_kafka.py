"""Benchmarks of a worker on a real Kafka, on light loads."""

import json

import pytest
from click.testing import CliRunner

from benchmarks import latency, partitions, readers, restore

pytestmark = [pytest.mark.slow, pytest.mark.real_kafka]


@pytest.fixture
def run(kafka_installed, tmp_path):
    """A function that runs a benchmark and returns its figures."""

    def of(command, name, *arguments):
        given = [*arguments, "--out", str(tmp_path)]
        result = CliRunner().invoke(command, given, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return json.loads((tmp_path / f"{name}.md").read_text().splitlines()[-1])

    return of


def test_a_short_run_leaves_latencies_of_both_readers(run, tmp_path):
    loads = run(latency.main, "latency", "--seconds=4", "--filled=2000", "--load=500")["loads"]
    assert (tmp_path / "latency.png").stat().st_size > 0
    assert [each["reader"] for each in loads] == ["worker", "bare aiokafka loop"]
    for each in loads:
        assert each["records"] > 500
        assert 0 <= each["p50"] <= each["p99"] <= each["longest"]
    assert loads[0]["late"] >= 0


def test_each_kind_of_reader_has_a_round(run):
    arguments = ("--seconds=4", "--rate=500", "--filled=2000", "--rounds=1")
    rounds = run(readers.main, "readers", *arguments)["rounds"]
    assert [each["readers"] for each in rounds] == ["none", "8 asking", "200 not reading"]
    for each in rounds:
        assert each["records"] > 500 and 0 <= each["p50"] <= each["p99"]
        assert 0 < each["cpu"] < 2


def test_partitions_have_a_price(run, tmp_path):
    arguments = ("--partitions=1", "--partitions=8", "--records=2000")
    assert run(partitions.main, "partitions", *arguments)["MB_per_partition"] > 0
    text = (tmp_path / "partitions.md").read_text()
    assert text.count("\n| 1 |") == text.count("\n| 8 |") == 1


def test_a_short_run_restores_and_takes_over(run, monkeypatch):
    small = restore.Model("small", fields=4, components=20, max_nodes=200)
    monkeypatch.setattr(restore, "LARGE", small)
    arguments = ("--snapshots=5", "--records=8000", "--repeats=1")
    figures = run(restore.main, "restore", *arguments)
    default, other = figures["restores"]
    assert (default["model"], default["snapshots"]) == ("default budget", 5)
    assert (other["model"], other["snapshots"]) == ("small", 2)
    assert default["bytes"] > other["bytes"] > 0
    assert all(each["restore_seconds"] > 0 for each in figures["restores"])
    assert figures["take_over_seconds"] > 0
