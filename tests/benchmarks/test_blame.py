"""The benchmark of blame runs in small and leaves its figures."""

import json

import pytest

from benchmarks import blame


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_every_fault_is_measured_on_every_stream_with_every_learner(tmp_path):
    blame.run(tmp_path, quick=True)
    figures = json.loads((tmp_path / "blame.md").read_text().splitlines()[-1])["figures"]
    streams = blame.DEVELOPMENT | blame.HELD_OUT
    by_oracle = {each["stream"] for each in figures if each["learner"] == blame.ORACLE}
    assert by_oracle == {"heavy", "skewed", "bursts"}
    assert len(figures) == len(blame.LEARNERS) * len(streams) + len(by_oracle)
    assert all(figure["one, 8"]["first"] > 0.8 for figure in figures)
    assert all(figure["one, 8"]["exact"] > 0.8 for figure in figures)
