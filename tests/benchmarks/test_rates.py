"""The benchmark of rates runs in small and leaves its figures."""

import json

import pytest

from benchmarks import rates


@pytest.mark.slow
def test_large_changes_of_steady_arrivals_are_found_and_hardly_any_is_false(tmp_path):
    rates.run(tmp_path, quick=True)
    figures = json.loads((tmp_path / "rates.md").read_text().splitlines()[-1])["figures"]
    of = {(figure["arrivals"], figure["way"]): figure for figure in figures}
    assert len(of) == 14
    for arrivals in ("constant", "daily", "drifting"):
        assert of[arrivals, "rates"]["x 5"].startswith("1 of 1")
        assert of[arrivals, "rates"]["false"] < 0.2
    assert of["daily", "rates"]["false"] < of["daily", "bands"]["false"]
