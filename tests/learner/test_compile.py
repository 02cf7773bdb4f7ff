"""A worker compiles before records flow, and nothing while they do."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from interpreter import needs_compiler

import faust_oslrau.learner
from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.compile import Beginner, _help
from faust_oslrau.learner.vector.compiler import KERNELS

SCRIPT = """
import sys
import numpy as np
from faust_oslrau.learner import OSLRAU, IncidentParameters, StreamScorer
from faust_oslrau.learner.compile import compile_scorer
from faust_oslrau.learner.vector.compiler import KERNELS

more = {
    "plain": {},
    "mixtures": {"transforms": {1: "asinh"}},
    "categories": {"n_categories": 2},
    "layers": {
        "history": ("10", "5m"), "seasons": "UTC", "silences": True, "rates": 60.0,
        "forecasting": True,
    },  # fmt: skip
}
more["all"] = more["layers"] | {"max_entities": 30, "entity_events": ["new", "unusual"]}
learner = {"mixtures": True, "memory": 2000.0} if sys.argv[1] == "mixtures" else {}
more = more[sys.argv[1]]

def new_scorer(alarm_rate):
    incidents = IncidentParameters()
    return StreamScorer(OSLRAU(**learner), alarm_rate=alarm_rate, incidents=incidents, **more)

def compiled():
    return {kernel: len(kernel.signatures) for kernel in KERNELS}

compile_scorer(new_scorer(0.1))
before = compiled()
rng = np.random.default_rng(1)
rows = rng.normal(size=(4000, 6)) @ rng.normal(size=(6, 6))
rows[rng.random(rows.shape) < 0.02] = np.nan
rows[rng.random(4000) < 0.01] *= 5
rows[2500:, :3] *= -1.0
rows[3500:] += 200.0
if "n_categories" in more:
    rows[:, 4:] = np.asfortranarray(rows[:, 4:].round())
scorer = new_scorer(0.001)
for some in np.split(np.arange(4000), [1, 3, 100, 2000, 2001, 2600, 3000]):
    keys = [b"%d" % (row % 40) for row in some] if "max_entities" in more else None
    scorer.process(rows[some], keys, np.array([some, 600_000 * some]).T)
    if "forecasting" in more:
        scorer.forecast([b"1", b"unknown"] if keys else None)
    settings = scorer.incidents, scorer.entity_events, scorer.silences, scorer.forecasting
    scorer = StreamScorer.from_bytes(scorer.to_bytes())
    scorer.incidents, scorer.entity_events, scorer.silences, scorer.forecasting = settings
late = [kernel for kernel, n in compiled().items() if n > before[kernel]]
print(sorted(f"{kernel.folder}.{kernel.py_func.__name__}" for kernel in late))
"""

COMPILE_ALL = """
from faust_oslrau.learner import compile_kernels
compile_kernels()
"""
# For how many combinations of types other kernels are compiled.
SEVERAL_TYPES = {
    # for vectors of rows and for single numbers
    "leaves.gaussian": 2,
    "math.exp_bounded": 2,
    "math.larger": 3,
    "math.log_positive": 3,  # and for the single precision of gaps
    "math.smaller": 2,
    "mixtures.add_component": 2,
    "editing.copy_part": 2,  # of scopes and of statistics
    # for vectors that lie in one piece, and for columns of matrices
    "missing_kernels.solve_missing": 2,
}


@needs_compiler("counts compiled kernels")
@pytest.mark.parametrize("layers", ["plain", "mixtures", "categories", "all"])
def test_nothing_is_left_to_compile_once_records_flow(layers):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, layers], capture_output=True, text=True, check=False
    )
    assert (done.stdout.split("\n"), done.returncode) == (["[]", ""], 0), done.stderr


@pytest.mark.parametrize("parameters", [{}, {"max_entities": 8}, {"history": ("10",)}], ids=str)
def test_the_second_process_comes_to_its_end(parameters):
    state = StreamScorer(OSLRAU(), **parameters).to_bytes()
    _help(StreamScorer.from_bytes(state, Beginner))


@needs_compiler("the second process compiles")
def test_the_second_process_tells_what_it_has_compiled_and_ends_with_the_one_it_helps(tmp_path):
    state = StreamScorer(OSLRAU()).to_bytes()
    with subprocess.Popen(
        [sys.executable, "-m", "faust_oslrau.learner.compile"],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as helper:
        helper.stdin.write(len(state).to_bytes(8, "big") + state)
        helper.stdin.flush()
        first = helper.stdout.readline().decode().strip()
        helper.communicate()  # closes its input, as a kill does
    assert first in {f"{kernel.py_func.__module__}.{kernel.py_func.__name__}" for kernel in KERNELS}
    assert helper.returncode == 1


def test_no_kernel_is_defined_at_the_top_level():
    top = Path(faust_oslrau.learner.__file__).parent
    assert not [file for file in top.glob("*.py") if "@kernel" in file.read_text()]
    assert [file for file in top.glob("*/*.py") if "@kernel" in file.read_text()]


@pytest.mark.slow
@needs_compiler("counts compiled kernels")
def test_a_kernel_is_compiled_for_one_combination_of_types(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", COMPILE_ALL], env=environment, check=True)
    objects = (file.name.split("-")[0] for file in tmp_path.rglob("*.nbc"))
    assert {name: n for name, n in Counter(objects).items() if n > 1} == SEVERAL_TYPES
    # a wheel brings these, and nothing more is compiled where it is installed
    before = {*tmp_path.rglob("*.nbc")}
    for layers in ("mixtures", "categories", "all"):
        subprocess.run([sys.executable, "-c", SCRIPT, layers], env=environment, check=True)
    assert {*tmp_path.rglob("*.nbc")} == before
