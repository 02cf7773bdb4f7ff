"""Models and scorers of the contract, taken through their streams."""

import functools
import json
from itertools import pairwise

import pytest
from interpreter import needs_compiler
from subjects import MODELS, SUBJECTS

from faust_oslrau.learner.state import unpack

LONG = needs_compiler("whole streams, again and again")
NETWORKS = [name for name in MODELS if "Density" not in name]
QUICK = ("plain", "OSLRAU", "OSLRAU of one component", "EntityDensity")


def of_each(names):
    """Parametrize by names of subjects, of which a few are quick without the compiler."""
    marked = [pytest.param(name, marks=() if name in QUICK else LONG) for name in names]
    return pytest.mark.parametrize("name", marked)


def run(subject, cuts=(), *, restart=False, until=None):
    """Return what goes through the stream in pieces, and all that it answers."""
    n = until or subject.n
    ends = sorted({0, *(cut // subject.batch * subject.batch for cut in cuts if cut < n), n})
    taught, said = subject.new(), []
    for start, stop in pairwise(ends):
        if restart:
            taught = subject.read(taught.to_bytes())
        said.append(subject.go_on(taught, slice(start, stop)))
    return taught, said


@functools.cache
def at_once(name):
    taught, said = run(SUBJECTS[name])
    return taught.to_bytes(), SUBJECTS[name].answers(taught, said), said


def whole(name):
    return at_once(name)[:2]


@functools.cache
def state_at(name, at):
    return run(SUBJECTS[name], until=at)[0].to_bytes() if at else SUBJECTS[name].new().to_bytes()


def unpacked(name, at):
    values, arrays = unpack(state_at(name, at), SUBJECTS[name].kind)
    return json.loads(json.dumps(values)), arrays


def learned(name, n=60):
    """Return a model after its stream, and what it is asked: some rows, with the entities."""
    subject = MODELS[name]
    keys = () if subject.keys is None else (subject.keys[:n],)
    return subject.read(whole(name)[0]), subject.rows[:n].copy(), keys
