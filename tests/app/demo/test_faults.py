"""What is found among the demonstration's machines."""

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.app.demo.faults import FAULTS, MALFORMATIONS, OTHER_MACHINE
from faust_oslrau.app.demo.feed import Message, sensor_messages
from faust_oslrau.app.demo.sensors import FIELDS
from faust_oslrau.learner import StackedSPN, StreamScorer
from faust_oslrau.topics import FeatureDecoder

MACHINES = 50


def sent(machines: int | None) -> tuple[list[Message], NDArray[np.float64]]:
    """Return the well-formed messages of a partition, and their rows."""
    messages = islice(sensor_messages(1, 0, machines), 40_000)
    sent = [message for message in messages if message.label not in MALFORMATIONS]
    return sent, FeatureDecoder(FIELDS, 10_000).decode([message.value for message in sent]).rows


def test_most_injected_anomalies_are_found() -> None:
    messages, rows = sent(None)
    found = StreamScorer(StackedSPN()).process(rows).is_anomaly
    is_fault = [message.label in FAULTS for message in messages]
    assert sum(is_fault) > 5
    assert np.mean(found[is_fault]) > 0.5


def test_readings_of_another_machine_are_found_with_entities_only() -> None:
    messages, rows = sent(MACHINES)
    keys = [message.key for message in messages]
    is_fault = [message.label == OTHER_MACHINE for message in messages]
    with_entities = StreamScorer(StackedSPN(), max_entities=1000).process(rows, keys)
    one_for_all = StreamScorer(StackedSPN()).process(rows)
    assert sum(is_fault) > 1
    assert np.mean(with_entities.is_anomaly[is_fault]) > 0.6
    assert not one_for_all.is_anomaly[is_fault].any()
