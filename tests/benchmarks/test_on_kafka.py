"""Benchmarks of a worker on a real Kafka, on light loads."""

import asyncio
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from benchmarks import latency, partitions, pipeline, readers, restore, scaling
from faust_oslrau.app.brokers import KafkaBroker

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


def test_a_short_run_of_the_pipeline_tells_where_its_time_goes(run):
    figures = run(pipeline.main, "pipeline", "--records=4000", "--seconds=20")
    names = ("records_per_second", "ratio_to_stock_agent", "score_us", "learn_us", "network_leaves")
    assert all(figures[name] > 0 for name in names)
    parts = figures["plumbing_us"] + figures["score_us"] + figures["learn_us"]
    assert parts == pytest.approx(figures["cpu_us"], abs=0.01)


def test_two_workers_share_the_records_and_decoding_costs_more_for_more_fields(
    kafka_installed, tmp_path
):
    async def run_two(servers):
        await scaling.create_topics(servers, scaling.TOPIC)
        await scaling.fill(servers, scaling.TOPIC, 16_000)
        return await scaling.run_workers(servers, 2, 16_000, tmp_path)

    with KafkaBroker() as broker:
        share = asyncio.run(run_two(broker.bootstrap_servers))
    few, many = (scaling.cost("fields", fields, 1024, fields) for fields in (4, 64))
    scaling.write(tmp_path, [share], [few, many, replace(few, varied="nodes")], 1024)
    figures = json.loads((tmp_path / "scaling.md").read_text().splitlines()[-1])
    assert figures["workers"][0]["workers"] == 2 and figures["workers"][0]["cpu_seconds"] > 0
    cheap, dear = figures["costs"][:2]
    assert min(cheap[name] for name in ("decode", "score", "learn", "emit", "nodes")) > 0
    assert dear["decode"] > cheap["decode"]
