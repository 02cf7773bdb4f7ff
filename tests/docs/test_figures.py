"""docs/delivery.md and docs/pages.md against the code."""

import json
import logging
import re
import sys

import numpy as np
from doc_pages import code, rows, section

from faust_oslrau.app.logs import JsonFormatter, at
from faust_oslrau.app.settings import Settings
from faust_oslrau.learner import OSLRAU, StreamScorer


def test_the_model_learns_after_the_documented_numbers_of_records():
    promise = section("docs/delivery.md", "The promise")
    (first, then) = re.findall(r"learns after ([\d, and]+) records, and .* every (\d+)", promise)[0]
    boundaries = [int(number) for number in re.findall(r"\d+", first)]
    assert int(then) == Settings().batch_size
    boundaries += [boundaries[-1] + int(then)]
    X = np.random.default_rng(0).normal(size=(boundaries[-1] + 1, 2))
    block = StreamScorer(OSLRAU()).process(X)
    assert np.unique(block.n_learned).tolist() == [0, *boundaries]


def test_the_members_of_a_line_are_the_documented_ones():
    documented = {
        name for row in rows(section("docs/pages.md", "The log"), 2) for name in code(row[0])
    }
    try:
        raise ValueError
    except ValueError:
        error = sys.exc_info()
    record = logging.LogRecord("worker", logging.INFO, "", 0, "text", None, error)
    vars(record).update(at(("features", 1), 7, reason="not_json", records=1, reasons={}))
    assert json.loads(JsonFormatter().format(record)).keys() == documented
