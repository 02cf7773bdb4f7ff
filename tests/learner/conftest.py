"""Fixtures of the learner's tests."""

import pytest
from interpreter import needs_compiler
from subjects import MODELS, WITH_MIXTURES

from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner.entities import watch


@pytest.fixture(params=[OSLRAU, pytest.param(WITH_MIXTURES, marks=needs_compiler("long streams"))])
def kind(request):
    """Each kind of model that a scorer may have."""
    return request.param


@pytest.fixture(scope="module")
def sooner():
    """Let entities be told of, and their places run out, on a stream that is short and narrow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch, "YOUNG", 800)
        patch.setattr(watch, "EVERY", 128)
        patch.setattr("faust_oslrau.learner.rates.layer.MOST_ENTITIES", 5)
        yield


@pytest.fixture
def blocks_of_three(request, monkeypatch):
    """Let three fields be many, where a model is to have many."""
    name = request.getfixturevalue("name") if "name" in request.fixturenames else None
    if name in MODELS and MODELS[name].wide:
        monkeypatch.setattr("faust_oslrau.learner.algorithm.start.WIDEST_BACKGROUND", 3)
