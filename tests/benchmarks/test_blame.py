"""The benchmark of blame runs in small and leaves its figures."""

import json

from benchmarks import blame


def test_every_fault_is_measured_on_every_stream(tmp_path):
    blame.run(tmp_path, quick=True)
    figures = json.loads((tmp_path / "blame.md").read_text().splitlines()[-1])["figures"]
    assert len(figures) == len(blame.STREAMS) * len(blame.FAULTS)
    shifts = [figure for figure in figures if figure["fault"].startswith("one field")]
    assert all(figure["first"] > 0.8 for figure in shifts)
