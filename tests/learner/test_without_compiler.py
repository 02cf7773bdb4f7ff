"""The kernels as plain Python give what the compiled ones give."""

import json
import os
import subprocess
import sys

import numpy as np
from interpreter import needs_compiler
from streams import clusters

from faust_oslrau.learner import OSLRAU

PROGRAM = """
import json, sys
import numpy as np
from faust_oslrau.learner import OSLRAU
rows = np.array(json.loads(sys.stdin.read()))
model = OSLRAU(min_count=20, memory=200).partial_fit(rows, batch_size=25)
print(json.dumps([model.n_nodes_, model.score_samples(rows[:40]).tolist(),
                  model.contributions(rows[:5]).tolist()]))
"""


@needs_compiler("compares with compiled kernels")
def test_the_kernels_are_plain_python_too():
    rows = clusters(81, 300, 3)
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(rows.tolist()),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=True,
        timeout=600,
    )  # fmt: skip
    nodes, scores, contributions = json.loads(answer.stdout)
    model = OSLRAU(min_count=20, memory=200).partial_fit(rows, batch_size=25)
    assert nodes == model.n_nodes_ > 20
    np.testing.assert_allclose(scores, model.score_samples(rows[:40]), rtol=1e-9)
    np.testing.assert_allclose(contributions, model.contributions(rows[:5]), rtol=1e-7, atol=1e-9)
