"""The examples in the learner's docstrings give what they show."""

import doctest
import importlib
from pathlib import Path

import pytest

import faust_oslrau.learner

TOP = Path(faust_oslrau.learner.__file__).parent
FILES = [file for file in TOP.rglob("*.py") if ">>> " in file.read_text()]
MODULES = [".".join(file.relative_to(TOP).with_suffix("").parts) for file in FILES]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name):
    result = doctest.testmod(importlib.import_module(f"faust_oslrau.learner.{name}"))
    assert result.failed == 0 and result.attempted > 0


def test_the_public_classes_have_examples():
    public = {"oslrau", "sklearn", "river", "stream.scorer"}
    assert public <= set(MODULES)
