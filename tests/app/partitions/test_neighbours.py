"""Partitions whose first records choose different fields are warned about."""

from types import SimpleNamespace

import pytest
from as_records import as_records
from faust.types import TP

from faust_oslrau.app.partitions.neighbours import DifferingFields
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings


def chosen_by(partition, row, number=240):
    """Return a partition with so many equal records, but for a field of events."""
    events = [(at * at) % 7 % 4 for at in range(number)]
    rows = [row | {"y": events[at]} if row["y"] == "events" else row for at in range(number)]
    pipeline = PartitionPipeline("features", partition, Settings())
    pipeline.process(as_records(rows, partition))
    return SimpleNamespace(pipeline=pipeline, following=SimpleNamespace(is_changing=False))


@pytest.mark.parametrize(
    ("row", "only"),
    [
        ({"x": 1.5, "y": "a"}, "y only in 0, y (category) only in 1"),
        ({"x": 1.5, "y": 2, "z": 3}, "none only in 0, z only in 1"),
        ({"x": 1.5, "y": "events"}, "y only in 0, y (count) only in 1"),
        ({"x": 1.5, "y": 3}, None),
    ],
)
def test_they_are_named_once(row, only, caplog):
    first = chosen_by(0, {"x": 1.5, "y": 2})
    watch = DifferingFields()
    for number in (100, 240, 240):  # after too few records nothing is chosen
        watch.look({TP("features", 0): first, TP("features", 1): chosen_by(1, row, number)})
        assert number == 240 or not caplog.messages
    assert caplog.messages == ([] if only is None else [
        f"features: partitions 0 and 1 have chosen different fields: {only}; "
        "choose them by the settings features and kinds"
    ])  # fmt: skip


@pytest.mark.parametrize("which", [0, 1])
def test_while_settings_change_nothing_is_told(which, caplog):
    held = [chosen_by(0, {"x": 1.5, "y": 2}), chosen_by(1, {"x": 1.5, "y": 2, "z": 3})]
    held[which].following.is_changing = True
    DifferingFields().look({TP("features", at): each for at, each in enumerate(held)})
    assert not caplog.messages
