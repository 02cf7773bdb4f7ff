"""The learner's tests without the compiler, as `make test-interpreted` runs them.

Kernels are plain Python then and some hundred times slower. So property tests try fewer examples,
and tests that need long streams, large grids or the compiler itself are skipped with a reason.
"""

import numba
import pytest

INTERPRETED = bool(numba.config.DISABLE_JIT)


def needs_compiler(reason):
    """Mark a test that is skipped without the compiler."""
    return pytest.mark.skipif(INTERPRETED, reason=f"needs the compiler: {reason}")


def examples(n):
    """Return the number of examples of a property test that tries ``n`` with the compiler."""
    return max(2, n // 20) if INTERPRETED else n
