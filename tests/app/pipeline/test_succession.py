"""When a pipeline with changed settings follows the one that was there."""

from dataclasses import replace

import numpy as np
import pytest
from as_records import as_records

from faust_oslrau.app.pipeline import PartitionPipeline, Successor
from faust_oslrau.app.pipeline.succession import BLOCK, TAKES_OVER_AFTER
from faust_oslrau.app.settings import Settings

OLD = Settings(features=("x",), batch_size=64)
START = 15 * BLOCK
X = np.random.default_rng(0).normal(size=60 * BLOCK).tolist()


def records(first, last, entities):
    """Records with times, of entities by turns."""
    rows = ({"x": X[i], "of": f"e{i % entities}"} for i in range(first, last))
    return as_records(rows, first=first, time=lambda i: 1_790_000_000_000 + 60_000 * i)


class Both:
    """A pipeline and its successor, which read the same records."""

    def __init__(self, old, entities=1, **changed):
        self.former = PartitionPipeline("features", 0, old)
        self.former.process(records(0, START, entities))
        new = PartitionPipeline("features", 0, replace(old, adapt_after=50, **changed))
        self.successor = Successor(new, START, "")
        self.end = START

    def read(self, blocks, entities=1):
        """Read blocks of records; tell whether the successor takes over after them."""
        found = records(self.end, self.end + blocks * BLOCK, entities)
        self.former.process(found)
        self.successor.learn(found, None)
        self.end += blocks * BLOCK
        return self.successor.takes_over(self.former, self.end - 1, self.end)


ENOUGH = -(-TAKES_OVER_AFTER // BLOCK)


def test_with_seasons_as_many_days_have_to_be_learned_as_are_known():
    both = Both(replace(OLD, seasons="UTC"))
    days = both.former.known.days
    assert days == 10
    assert not both.read(ENOUGH) and both.successor.records_left == 0
    learned = both.successor.pipeline.known.days
    assert both.successor.awaits(both.former) == {"days": both.former.known.days - 2 * learned}
    while not both.read(1):
        assert both.successor.pipeline.known.days <= days
    assert days <= both.successor.pipeline.known.days <= days + 1  # it began within a day


@pytest.mark.parametrize("changed", [{"seasons": None}, {"time": "of"}])
def test_days_that_are_others_are_not_waited_for(changed):
    both = Both(replace(OLD, seasons="UTC"), **changed)
    assert both.read(ENOUGH)


def test_most_entities_that_are_known_have_to_come_again(monkeypatch):
    old = replace(OLD, entity="of")
    both = Both(old, 300)
    assert not both.read(ENOUGH, 260)
    assert both.successor.awaits(both.former) == {"entities": 10}
    monkeypatch.setattr("faust_oslrau.app.pipeline.succession.MOST_RECORDS", (ENOUGH + 2) * BLOCK)
    assert not both.read(1, 260) and both.read(1, 260)  # it waits no longer
    assert Both(old, 300).read(ENOUGH, 280)
