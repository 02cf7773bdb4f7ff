"""The examples in the learner's docstrings give what they show."""

import doctest
import importlib
import pkgutil

import pytest
from interpreter import needs_compiler

import faust_oslrau.learner

MODULES = [
    module.name.removeprefix("faust_oslrau.learner.")
    for module in pkgutil.walk_packages(faust_oslrau.learner.__path__, "faust_oslrau.learner.")
]
WITH_EXAMPLES = {"oslrau", "sklearn", "river", "stacked.stacked_spn", "stream.scorer"}


SLOW = pytest.param("stacked.stacked_spn", marks=needs_compiler("a long stream"))


@pytest.mark.parametrize("name", [SLOW if name in SLOW.values else name for name in MODULES])
def test_examples_give_what_they_show(name):
    result = doctest.testmod(importlib.import_module(f"faust_oslrau.learner.{name}"))
    assert result.failed == 0
    assert result.attempted > 0 or name not in WITH_EXAMPLES


def test_the_public_classes_have_examples():
    assert set(MODULES) >= WITH_EXAMPLES
