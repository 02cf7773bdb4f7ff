"""docs/delivery.md against the scorer."""

import re

import numpy as np
from doc_pages import section

from faust_oslrau.app.settings import Settings
from faust_oslrau.learner import StackedSPN, StreamScorer


def test_the_model_learns_after_the_documented_numbers_of_records():
    promise = section("docs/delivery.md", "The promise")
    (first, then) = re.findall(r"learns after ([\d, and]+) records, and .* every (\d+)", promise)[0]
    boundaries = [int(number) for number in re.findall(r"\d+", first)]
    assert int(then) == Settings().batch_size
    boundaries += [boundaries[-1] + int(then)]
    X = np.random.default_rng(0).normal(size=(boundaries[-1] + 1, 2))
    block = StreamScorer(StackedSPN()).process(X)
    assert np.unique(block.n_learned).tolist() == [0, *boundaries]
