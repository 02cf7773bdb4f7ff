"""The demonstration's made-up machines, and a user's file."""

from itertools import islice

import numpy as np
import pytest

from faust_oslrau.app.demo.faults import FAULTS, MALFORMATIONS, OTHER_MACHINE
from faust_oslrau.app.demo.feed import (
    WARM_UP,
    WARM_UP_READINGS,
    Message,
    sensor_messages,
)
from faust_oslrau.app.demo.sensors import FIELDS
from faust_oslrau.topics import FeatureDecoder

PARTITIONS = 3


def messages(count: int, seed: int = 0, machines: int | None = None) -> list[Message]:
    return list(islice(sensor_messages(PARTITIONS, seed, machines), count))


@pytest.fixture(scope="module")
def many() -> list[Message]:
    return messages(60_000)


def test_every_kind_of_fault_occurs_once_the_models_are_warm(many: list[Message]) -> None:
    labels = {message.label for message in many} - {None}
    assert labels == FAULTS.keys() - {OTHER_MACHINE} | MALFORMATIONS.keys()
    assert not any(message.label in FAULTS for message in many[: WARM_UP * PARTITIONS])
    values = [message.value for message in many if message.label in FAULTS]
    rows = FeatureDecoder(FIELDS, 10_000).decode(values).rows
    assert len(rows) == len(values)
    assert not np.isnan(rows).any()


def test_malformed_messages_are_rejected_for_the_right_reason(many: list[Message]) -> None:
    malformed = [message for message in many if message.label in MALFORMATIONS]
    decoded = FeatureDecoder(FIELDS, 10_000).decode([message.value for message in malformed])
    assert decoded.positions == []
    for position, rejection in decoded.rejected:
        assert rejection.reason == MALFORMATIONS[malformed[position].label or ""][1]


def test_the_reading_of_another_machine_is_one_of_the_anomalies_of_machines_that_differ() -> None:
    labels = [message.label for message in messages(30_000, machines=90)]
    assert OTHER_MACHINE in labels
    assert not set(labels[: 90 * WARM_UP_READINGS]) & FAULTS.keys()
