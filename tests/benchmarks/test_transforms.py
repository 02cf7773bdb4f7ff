"""The benchmark of transforms runs in small and leaves its figures."""

import json

from benchmarks import transforms


def test_logarithms_describe_log_normal_fields_better(tmp_path):
    transforms.run(tmp_path, quick=True)
    figures = json.loads((tmp_path / "transforms.md").read_text().splitlines()[-1])["figures"]
    assert [figure["transform"] for figure in figures] == ["log", "log1p", "asinh", "asinh"]
    assert figures[0]["gain"] > 0
