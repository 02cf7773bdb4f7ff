"""Fixtures of the learner's tests."""

import pytest
from interpreter import needs_compiler

from faust_oslrau.learner import OSLRAU, StackedSPN


@pytest.fixture(params=[OSLRAU, pytest.param(StackedSPN, marks=needs_compiler("long streams"))])
def kind(request):
    """Each kind of model that a scorer may have."""
    return request.param
