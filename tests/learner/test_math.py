"""Exponential and logarithm against those of the platform."""

import math
import re

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreter import needs_compiler
from scipy.stats import norm

from faust_oslrau.learner.vector.lanes import WIDTH, aligned_stack, load, store
from faust_oslrau.learner.vector.math import LEAST_EXPONENT as LEAST
from faust_oslrau.learner.vector.math import exp_bounded, gaussian_tail, log_positive


@given(st.floats(LEAST, 700))
def test_the_exponential_is_right_to_ten_digits(x):
    assert math.isclose(exp_bounded(x), math.exp(x), rel_tol=6e-11)


@given(st.floats(1e-300, 1e300))
def test_the_logarithm_is_right_to_thirteen_digits(x):
    assert math.isclose(log_positive(x), math.log(x), rel_tol=4e-14, abs_tol=1e-300)


@given(st.floats(0, 37))
def test_the_mass_beyond_a_value_is_right_to_eight_digits(z):
    tail, height = gaussian_tail(z)
    assert math.isclose(tail, norm.sf(z), rel_tol=2e-9)
    assert math.isclose(height, math.exp(-0.5 * z * z), rel_tol=6e-11)


def test_the_ends_of_the_range_are_exact_or_next_to_nothing():
    assert 0 < gaussian_tail(1e300)[0] == gaussian_tail(40.0)[0] < 1e-300
    least = exp_bounded(LEAST)
    assert exp_bounded(0.0) == exp_bounded(-0.0) == 1.0
    assert 0 < least == exp_bounded(-1e300) == exp_bounded(-math.inf) < 1e-300
    assert log_positive(1.0) == 0.0


@numba.njit  # not cached: what comes from the cache cannot be looked at
def on_its_stack(result):
    aligned_stack()
    result[0] = 1.0


@needs_compiler("looks at compiled code")
def test_the_stack_of_the_kernel_that_asks_for_it_is_aligned():
    result = np.zeros(1)
    on_its_stack(result)
    (code,) = on_its_stack.inspect_llvm().values()
    groups = re.findall(r"^define .*on_its_stack.*(#\d+)", code, re.MULTILINE)
    aligned = re.findall(r"^attributes (#\d+) = .*alignstack=64", code, re.MULTILINE)
    assert set(groups) & set(aligned)


def test_without_the_compiler_lanes_do_not_reach_beyond_a_matrix():
    X = np.zeros((1, WIDTH + 1))
    load(X, 0, 1)
    with pytest.raises(IndexError, match=f"columns 2 to {WIDTH + 2} of {WIDTH + 1}"):
        load(X, 0, 2)
    with pytest.raises(IndexError, match="columns -1 to"):
        store(X, 0, -1, 0.0)
