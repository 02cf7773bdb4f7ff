"""Machines that differ: what entities find, and one model for all misses."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray

from faust_oslrau.app.demo.faults import MALFORMATIONS, OTHER_MACHINE
from faust_oslrau.app.demo.feed import Message, sensor_messages
from faust_oslrau.app.demo.sensors import FIELDS
from faust_oslrau.learner import StackedSPN, StreamScorer
from faust_oslrau.topics import FeatureDecoder

MACHINES = 50


@pytest.fixture(scope="module")
def sent() -> list[Message]:
    """The well-formed messages of a partition."""
    messages = islice(sensor_messages(1, 0, MACHINES), 40_000)
    return [message for message in messages if message.label not in MALFORMATIONS]


@pytest.fixture(scope="module")
def rows(sent: list[Message]) -> NDArray[np.float64]:
    return FeatureDecoder(FIELDS, 10_000).decode([message.value for message in sent]).rows


def found(block_is_anomaly: NDArray[np.bool_], sent: list[Message]) -> list[bool]:
    """Tell of each reading of another machine whether it raised an alarm."""
    pairs = zip(block_is_anomaly.tolist(), sent, strict=True)
    return [is_anomaly for is_anomaly, message in pairs if message.label == OTHER_MACHINE]


def test_readings_of_another_machine_are_found_with_entities_only(
    sent: list[Message], rows: NDArray[np.float64]
) -> None:
    keys = [message.key for message in sent]
    with_entities = StreamScorer(StackedSPN(), max_entities=1000).process(rows, keys)
    one_for_all = StreamScorer(StackedSPN()).process(rows)
    caught = found(with_entities.is_anomaly, sent)
    assert len(caught) > 1
    assert np.mean(caught) > 0.6
    assert not any(found(one_for_all.is_anomaly, sent))
