"""The restore benchmark, on few snapshots and a small network."""

import json

import pytest
from click.testing import CliRunner

from benchmarks import restore


@pytest.mark.slow
@pytest.mark.real_kafka
def test_a_short_run_restores_and_takes_over(kafka_installed, tmp_path, monkeypatch):
    small = restore.Model("small", fields=4, components=20, max_nodes=200)
    monkeypatch.setattr(restore, "LARGE", small)
    arguments = ["--snapshots", "5", "--records", "1600", "--repeats", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(restore.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    figures = json.loads((tmp_path / "restore.md").read_text().splitlines()[-1])
    default, other = figures["restores"]
    assert (default["model"], default["snapshots"]) == ("default budget", 5)
    assert (other["model"], other["snapshots"]) == ("small", 2)
    assert default["bytes"] > other["bytes"] > 0
    assert all(each["restore_seconds"] > 0 for each in figures["restores"])
    assert figures["take_over_seconds"] > 0
