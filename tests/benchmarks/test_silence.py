"""The benchmark of silences runs in small and leaves its figures."""

import json

from benchmarks import silence


def test_silences_of_regular_entities_are_found_and_none_is_false(tmp_path):
    silence.run(tmp_path, quick=True)
    figures = json.loads((tmp_path / "silence.md").read_text().splitlines()[-1])["figures"]
    of = {figure["arrivals"]: figure for figure in figures}
    assert len(of) == 12
    assert (of["regular"]["false"], of["regular"]["found"]) == (0, 1.0)
    assert 3.0 < of["regular"]["delay"] < 5.0
