"""The benchmarks of readers and partitions, on light loads."""

import json

import pytest
from click.testing import CliRunner

from benchmarks import partitions, readers


def _run(command, out, *arguments):
    result = CliRunner().invoke(command, [*arguments, "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0, result.output


@pytest.mark.slow
@pytest.mark.real_kafka
def test_each_kind_of_reader_has_a_round(kafka_installed, tmp_path):
    _run(readers.main, tmp_path, "--seconds=4", "--rate=500", "--filled=2000", "--rounds=1")
    rounds = json.loads((tmp_path / "readers.md").read_text().splitlines()[-1])["rounds"]
    assert [each["readers"] for each in rounds] == ["none", "8 asking", "200 not reading"]
    for each in rounds:
        assert each["records"] > 500 and 0 <= each["p50"] <= each["p99"]
        assert 0 < each["cpu"] < 2


@pytest.mark.slow
@pytest.mark.real_kafka
def test_partitions_have_a_price(kafka_installed, tmp_path):
    _run(partitions.main, tmp_path, "--partitions=1", "--partitions=8", "--records=2000")
    text = (tmp_path / "partitions.md").read_text()
    assert text.count("\n| 1 |") == text.count("\n| 8 |") == 1
    assert json.loads(text.splitlines()[-1])["MB_per_partition"] > 0
