"""The examples in the learner's docstrings give what they show."""

import doctest
import importlib
from pathlib import Path

import pytest
from interpreter import needs_compiler

import faust_oslrau.learner

TOP = Path(faust_oslrau.learner.__file__).parent
FILES = [file for file in TOP.rglob("*.py") if ">>> " in file.read_text()]
MODULES = [".".join(file.relative_to(TOP).with_suffix("").parts) for file in FILES]
SLOW = pytest.param("stacked.stacked_spn", marks=needs_compiler("a long stream"))


@pytest.mark.parametrize("name", [SLOW if name in SLOW.values else name for name in MODULES])
def test_examples_give_what_they_show(name):
    result = doctest.testmod(importlib.import_module(f"faust_oslrau.learner.{name}"))
    assert result.failed == 0 and result.attempted > 0


def test_the_public_classes_have_examples():
    public = {"oslrau", "sklearn", "river", "stacked.stacked_spn", "stream.scorer"}
    assert public <= set(MODULES)
