"""The profile's account of samples."""

from pathlib import Path

import aiokafka
import pytest

from benchmarks.profile import PARTS, part_of

ROOT = Path(__file__).parents[2]


def test_a_sample_counts_for_its_innermost_known_frame():
    outer = ["main (app/worker.py:1)", "score (learner/stream/row_scores.py:24)"]
    assert part_of(outer) == "scoring: other measures, p-values"
    inner = "NetworkDensity.evaluate (learner/queries/density.py:260)"
    assert part_of([*outer, inner]) == "scoring: the network"
    assert part_of(["main (worker.py:1)", "_run_once (asyncio/base_events.py:7)"]) == "the rest"


@pytest.mark.parametrize("mark", [m for marks in PARTS.values() for m in marks if m[0] != "("])
def test_marked_functions_are_those_of_the_code(mark):
    qualified, path = mark.split(" (")
    folder = Path(aiokafka.__file__).parents[1] if path.startswith("aiokafka") else ROOT
    assert f"def {qualified.split('.')[-1]}(" in (folder / path).read_text()
