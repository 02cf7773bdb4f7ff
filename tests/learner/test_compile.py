"""A worker compiles before records flow, and nothing while they do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from interpreter import needs_compiler

import faust_oslrau.learner
from faust_oslrau.learner.vector.compiler import drop_stale_cache

SCRIPT = """
import sys
import numpy as np
from faust_oslrau.learner import (
    OSLRAU, IncidentParameters, StackedSPN, StreamScorer, compile_kernels
)

def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith("faust_oslrau.")]
    kernels = {id(k): k for module in modules for k in vars(module).values()
               if hasattr(k, "signatures") and hasattr(k, "py_func")}
    return {k.py_func.__qualname__: len(k.signatures) for k in kernels.values()}

kind = {"OSLRAU": OSLRAU, "StackedSPN": StackedSPN}[sys.argv[1]]
compile_kernels(kind)
before = compiled()
rng = np.random.default_rng(1)
rows = rng.normal(size=(4000, 6)) @ rng.normal(size=(6, 6))
rows[rng.random(rows.shape) < 0.02] = np.nan
rows[rng.random(4000) < 0.01] *= 5
rows[3500:] += 200.0
for transforms in ({}, {1: "asinh"}):
    incidents = IncidentParameters()
    scorer = StreamScorer(kind(memory=2000.0), transforms=transforms, incidents=incidents)
    for block in np.split(rows, [1, 3, 100, 2000, 2001]):
        scorer.process(block, places=np.array([np.arange(len(block)), np.zeros(len(block))]).T)
    scorer = StreamScorer.from_bytes(scorer.to_bytes(), kind)
    scorer.process(rows[:300])
scorer = StreamScorer(kind(), history=("10", "5m"), seasons="UTC")
for some in np.split(np.arange(4000), [1, 3, 100, 2000]):
    scorer.process(rows[some], None, np.array([some, 600_000 * some]).T)
    scorer = StreamScorer.from_bytes(scorer.to_bytes(), kind)
scorer = StreamScorer(kind(), max_entities=30, forecasting=True)
for some in np.split(np.arange(4000), [1, 3, 100, 2000, 2001]):
    scorer.process(rows[some], [b"%d" % (row % 40) for row in some])
    scorer.forecast([b"1", b"unknown"])
    scorer = StreamScorer.from_bytes(scorer.to_bytes(), kind)
    scorer.forecasting = True
rows[2000:, :3] *= -1.0
scorer = StreamScorer(kind(), alarm_rate=0.05, forecasting=True)
for some in np.split(rows[:2800], [500, 2001, 2600]):  # a sudden change
    scorer.process(some)
    scorer.forecast()
assert len(scorer.learner.shares) == (2 if kind is StackedSPN else 1)
print(sorted(name for name, n in compiled().items() if n > before.get(name, 0)))
"""


@needs_compiler("counts compiled kernels")
@pytest.mark.parametrize("kind", ["OSLRAU", "StackedSPN"])
def test_nothing_is_left_to_compile_once_records_flow(kind):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, kind], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


@pytest.mark.parametrize("edited", ["vector/math.py", "network/layout.py"])
def test_an_edit_in_one_folder_drops_the_kernels_of_all(tmp_path, edited):
    cached = [tmp_path / folder / "__pycache__" / "kernel.nbc" for folder in ("network", "scoring")]
    sources = [tmp_path / "vector/math.py", tmp_path / "network/layout.py", tmp_path / "stream.py"]
    for age, files in ((300, sources), (200, cached), (100, [tmp_path / "stream.py"])):
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
            os.utime(file, (1e9 - age, 1e9 - age))
    drop_stale_cache(tmp_path)
    assert all(file.exists() for file in cached)  # no kernel depends on the top level
    os.utime(tmp_path / edited, (1e9, 1e9))
    drop_stale_cache(tmp_path)
    assert not any(file.exists() for file in cached)


def test_no_kernel_is_defined_at_the_top_level():
    top = Path(faust_oslrau.learner.__file__).parent
    assert not [file for file in top.glob("*.py") if "@kernel" in file.read_text()]
    assert [file for file in top.glob("*/*.py") if "@kernel" in file.read_text()]
