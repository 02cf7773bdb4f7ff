"""The latency benchmark, on a light load."""

import json

import pytest
from click.testing import CliRunner

from benchmarks.latency import main


@pytest.mark.slow
@pytest.mark.real_kafka
def test_a_short_run_leaves_latencies_of_both_readers(kafka_installed, tmp_path):
    arguments = ["--seconds", "4", "--filled", "2000", "--load", "500", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "latency.png").stat().st_size > 0
    loads = json.loads((tmp_path / "latency.md").read_text().splitlines()[-1])["loads"]
    assert [each["reader"] for each in loads] == ["worker", "bare aiokafka loop"]
    for each in loads:
        assert each["records"] > 500
        assert 0 <= each["p50"] <= each["p99"] <= each["longest"]
    assert loads[0]["late"] >= 0
