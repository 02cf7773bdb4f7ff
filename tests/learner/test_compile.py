"""A worker compiles before records flow, and nothing while they do."""

import subprocess
import sys

from interpreter import needs_compiler

SCRIPT = """
import sys
import numpy as np
from faust_oslrau.learner import OSLRAU, StreamScorer, compile_kernels

def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith("faust_oslrau.")]
    kernels = {id(k): k for module in modules for k in vars(module).values()
               if hasattr(k, "signatures") and hasattr(k, "py_func")}
    return {k.py_func.__qualname__: len(k.signatures) for k in kernels.values()}

compile_kernels()
before = compiled()
rng = np.random.default_rng(1)
rows = rng.normal(size=(4000, 6)) @ rng.normal(size=(6, 6))
rows[rng.random(rows.shape) < 0.02] = np.nan
rows[rng.random(4000) < 0.01] *= 5
rows[3500:] += 200.0
for transforms in ({}, {1: "asinh"}):
    scorer = StreamScorer(OSLRAU(memory=2000.0), transforms=transforms)
    for block in np.split(rows, [1, 3, 100, 2000, 2001]):
        scorer.process(block)
    scorer = StreamScorer.from_bytes(scorer.to_bytes())
    scorer.process(rows[:300])
print(sorted(name for name, n in compiled().items() if n > before.get(name, 0)))
"""


@needs_compiler("counts compiled kernels")
def test_nothing_is_left_to_compile_once_records_flow():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
