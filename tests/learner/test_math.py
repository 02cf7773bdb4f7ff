"""Exponential and logarithm against those of the platform."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.learner._jit import kernel
from faust_oslrau.learner._math import NEGLIGIBLE, choose, exp_nonpositive, log_positive


@given(st.floats(NEGLIGIBLE, 0))
def test_the_exponential_is_right_to_the_last_digits(x):
    assert math.isclose(exp_nonpositive(x), math.exp(x), rel_tol=3e-15)


@given(st.floats(1e-300, 1e300))
def test_the_logarithm_is_right_to_the_last_digits(x):
    assert math.isclose(log_positive(x), math.log(x), rel_tol=5e-16, abs_tol=1e-300)


def test_ends_of_the_range():
    assert exp_nonpositive(0.0) == exp_nonpositive(-0.0) == 1.0
    assert exp_nonpositive(-61.0) == exp_nonpositive(-1e300) == exp_nonpositive(-math.inf) == 0.0
    assert log_positive(1.0) == 0.0


@kernel
def apply(x, result):
    for i in range(len(x)):
        e = exp_nonpositive(x[i])
        result[i] = log_positive(choose(e > 0.0, e, -x[i]))


def test_the_bits_in_a_vector_are_those_of_one_value_alone():
    x = -np.random.default_rng(0).exponential(40.0, 1003)
    together, alone = np.empty_like(x), np.empty_like(x)
    apply(x, together)
    for i in range(len(x)):
        apply(x[i : i + 1], alone[i : i + 1])
    assert together.tobytes() == alone.tobytes()
