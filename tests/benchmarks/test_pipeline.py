"""The pipeline benchmark, on a few records."""

import json

import pytest
from click.testing import CliRunner

from benchmarks.pipeline import main
from benchmarks.pipeline_process import parse
from benchmarks.pipeline_topic import rows


def test_the_rows_are_the_same_each_time_and_others_in_each_partition():
    assert list(rows(1, 2000)) == list(rows(1, 2000))
    assert list(rows(1, 2000)) != list(rows(2, 2000))


def test_metrics_are_summed_over_partitions():
    page = "\n".join(
        f'oslrau_stage_seconds_sum{{topic="t",partition="{p}",stage="learn"}} 1.5\n'
        f'oslrau_records_total{{topic="t",partition="{p}",outcome="scored"}} 10\n'
        f'oslrau_network_nodes{{topic="t",partition="{p}",kind="leaf"}} 7'
        for p in range(2)
    )
    found = parse(page)
    assert (found.records, found.stages, found.nodes) == (20, {"learn": 3.0}, {"leaf": 14})


@pytest.mark.slow
@pytest.mark.real_kafka
def test_a_small_run_leaves_a_table_that_ends_with_its_figures(kafka_installed, tmp_path):
    arguments = ["--records", "4000", "--seconds", "20", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    figures = json.loads((tmp_path / "pipeline.md").read_text().splitlines()[-1])
    names = ("records_per_second", "ratio_to_stock_agent", "score_us", "learn_us", "network_leaves")
    assert all(figures[name] > 0 for name in names)
    parts = figures["plumbing_us"] + figures["score_us"] + figures["learn_us"]
    assert parts == pytest.approx(figures["cpu_us"], abs=0.01)
