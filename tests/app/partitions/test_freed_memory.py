"""Memory that goes back to the operating system, measured in processes of their own."""

import ctypes
import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the operating system is not Linux")

_RESIDENT = """
import json, re, sys
from pathlib import Path
from faust_oslrau.app.partitions import freed_memory

def resident(kind="VmRSS"):
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"^{kind}:\\s+(\\d+) kB", status, re.MULTILINE)[1])
"""

# Blocks that the heap holds, not pages of their own; each tenth is in use as records come and go.
_FREED = """
import numpy as np
freed_memory.share_one_heap()
blocks = [np.ones(500) for _ in range(20_000)]
full = resident()
blocks = blocks[::10]
if sys.argv[1] == "return":
    freed_memory.return_freed_memory()
after = resident()
print(json.dumps([full, after, bool(all(block.all() for block in blocks))]))
"""

_COMPILED = """
import numba

@numba.njit
def double(x):
    return 2 * x

@numba.njit
def triple(x):
    return 3 * x

first = double(2)
full = resident()
if sys.argv[1] == "return":
    freed_memory.return_compiler()
after = resident()
print(json.dumps([full, after, [first, double(3), triple(3)]]))
"""


@pytest.mark.parametrize(
    ("script", "most_kept", "least_freed", "expected"),
    [
        # Of 72 MB that are free few go back by themselves: or this would show nothing.
        pytest.param(
            _FREED, 20_000, 40_000, True,
            marks=pytest.mark.skipif(
                not hasattr(ctypes.CDLL(None), "malloc_trim"),
                reason="the C library has no malloc_trim",
            ),
        ),
        (_COMPILED, 0, 20_000, [4, 6, 9]),  # the last one was compiled afterwards
    ],
    ids=["between blocks in use", "of the compiler"],
)  # fmt: skip
def test_freed_memory_goes_back_and_the_rest_still_works(script, most_kept, least_freed, expected):
    def run(how):
        command = [sys.executable, "-c", _RESIDENT + script, how]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        full, after, found = json.loads(done.stdout)
        assert found == expected
        return full - after

    assert run("keep") <= most_kept
    assert run("return") > least_freed
