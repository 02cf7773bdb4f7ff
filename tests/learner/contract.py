"""Models and scorers of the contract, taken through their streams."""

import functools
import json
from itertools import pairwise

from subjects import SUBJECTS

from faust_oslrau.learner.state import unpack


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
