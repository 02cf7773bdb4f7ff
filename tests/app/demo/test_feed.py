"""The demonstration's made-up machines, and a user's file."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from faust_oslrau.app.demo.faults import FAULTS, MALFORMATIONS, OTHER_MACHINE, STUCK_READINGS
from faust_oslrau.app.demo.feed import (
    WARM_UP,
    WARM_UP_READINGS,
    Message,
    file_messages,
    sensor_messages,
)
from faust_oslrau.app.demo.sensors import FIELDS, SPANS, Plant
from faust_oslrau.app.offline.input_files import InputFileError
from faust_oslrau.topics import FeatureDecoder

PARTITIONS = 3


def messages(count: int, seed: int = 0, machines: int | None = None) -> list[Message]:
    return list(islice(sensor_messages(PARTITIONS, seed, machines), count))


@pytest.fixture(scope="module")
def many() -> list[Message]:
    return messages(60_000)


@pytest.fixture(scope="module")
def good_rows(many: list[Message]) -> NDArray[np.float64]:
    values = [message.value for message in many if message.label is None]
    decoded = FeatureDecoder(FIELDS, 10_000).decode(values)
    assert decoded.rejected == []
    return decoded.rows


def test_the_same_seed_gives_the_same_messages_and_another_seed_others() -> None:
    assert messages(3000, seed=1) == messages(3000, seed=1)
    assert messages(50, seed=1) != messages(50, seed=2)


def test_messages_take_turns_between_the_partitions(many: list[Message]) -> None:
    assert [message.partition for message in many[:7]] == [0, 1, 2, 0, 1, 2, 0]
    machines_of = {m.key: {n.partition for n in many[:600] if n.key == m.key} for m in many[:600]}
    assert all(len(partitions) == 1 for partitions in machines_of.values())


def test_every_kind_of_anomaly_and_malformation_occurs(many: list[Message]) -> None:
    labels = {message.label for message in many} - {None}
    assert labels == FAULTS.keys() - {OTHER_MACHINE} | MALFORMATIONS.keys()


def test_anomalies_are_rarer_than_alarms_so_that_mild_ones_can_be_caught(
    many: list[Message],
) -> None:
    share = sum(message.label in FAULTS for message in many) / len(many)
    assert 0.0002 < share < 0.001


def test_no_anomaly_comes_before_the_models_are_warm(many: list[Message]) -> None:
    early = many[: WARM_UP * PARTITIONS]
    assert not any(message.label in FAULTS for message in early)


def test_malformed_messages_are_rejected_for_the_reason_that_is_expected(
    many: list[Message],
) -> None:
    malformed = [message for message in many if message.label in MALFORMATIONS]
    decoded = FeatureDecoder(FIELDS, 10_000).decode([message.value for message in malformed])
    assert decoded.positions == []
    for position, rejection in decoded.rejected:
        assert rejection.reason == MALFORMATIONS[malformed[position].label or ""][1]


def test_anomalous_messages_are_valid_and_complete(many: list[Message]) -> None:
    values = [message.value for message in many if message.label in FAULTS]
    rows = FeatureDecoder(FIELDS, 10_000).decode(values).rows
    assert len(rows) == len(values)
    assert not np.isnan(rows).any()


def test_some_fields_are_sometimes_missing(good_rows: NDArray[np.float64]) -> None:
    missing = np.isnan(good_rows).mean(axis=0)
    assert (missing > 0).all()
    assert (missing < 0.01).all()


def test_load_torque_and_current_go_together_and_climate_goes_its_own_way(
    good_rows: NDArray[np.float64],
) -> None:
    rows = good_rows[~np.isnan(good_rows).any(axis=1)]
    correlation = np.corrcoef(rows.T)
    at = FIELDS.index
    assert correlation[at("torque"), at("motor.current")] > 0.95
    assert correlation[at("speed"), at("oil.pressure")] > 0.95
    assert abs(correlation[at("ambient.humidity"), at("torque")]) < 0.3


def test_the_machines_have_several_regimes(good_rows: NDArray[np.float64]) -> None:
    speed = good_rows[:, FIELDS.index("speed")]
    counts, _ = np.histogram(speed[~np.isnan(speed)], bins=20)
    peaks = (counts[1:-1] > counts[:-2]) & (counts[1:-1] > counts[2:])
    assert peaks.sum() + (counts[0] > counts[1]) + (counts[-1] > counts[-2]) >= 3


def test_the_hall_drifts_slowly() -> None:
    plant = Plant(4, np.random.default_rng(0))
    ambient = [plant.step()[:, FIELDS.index("ambient.temperature")].mean() for _ in range(5000)]
    assert np.mean(ambient[-100:]) - np.mean(ambient[:100]) > 1
    assert abs(np.mean(ambient[100:200]) - np.mean(ambient[:100])) < 0.3


def test_spans_are_about_as_wide_as_the_fields_move(good_rows: NDArray[np.float64]) -> None:
    spread = np.nanquantile(good_rows, 0.99, axis=0) - np.nanquantile(good_rows, 0.01, axis=0)
    assert ((spread / SPANS > 0.5) & (spread / SPANS < 2)).all()


def test_a_stuck_sensor_shows_one_value_for_some_readings_of_its_machine(
    many: list[Message],
) -> None:
    stuck = [message for message in many if message.label == "stuck"]
    rows = FeatureDecoder(FIELDS, 10_000).decode([message.value for message in stuck]).rows
    machine = stuck[0].key
    episode = rows[[m.key == machine for m in stuck]][:STUCK_READINGS]
    assert (np.ptp(episode, axis=0) == 0).sum() == 1


def test_kinds_of_anomalies_occur_about_equally_often(many: list[Message]) -> None:
    counts = Counter(message.label for message in many if message.label in FAULTS)
    kinds = FAULTS.keys() - {OTHER_MACHINE}
    events = [counts[kind] / (STUCK_READINGS if kind == "stuck" else 1) for kind in kinds]
    assert max(events) - min(events) <= 1


@pytest.fixture(scope="module")
def of_different_machines() -> list[Message]:
    return messages(30_000, machines=90)


def test_different_machines_take_turns_and_stay_in_their_partition(
    of_different_machines: list[Message],
) -> None:
    first, second = of_different_machines[:90], of_different_machines[90:180]
    assert len({message.key for message in first}) == 90
    assert [(m.key, m.partition) for m in first] == [(m.key, m.partition) for m in second]
    assert Counter(message.partition for message in first) == {0: 30, 1: 30, 2: 30}


def test_different_machines_differ_more_than_their_own_readings(
    of_different_machines: list[Message],
) -> None:
    usual = [message for message in of_different_machines if message.label is None]
    rows = FeatureDecoder(FIELDS, 10_000).decode([message.value for message in usual]).rows
    ratio = rows[:, FIELDS.index("oil.pressure")] / rows[:, FIELDS.index("speed")]
    means = [np.nanmean(ratio[[m.key == key for m in usual]]) for key in {m.key for m in usual}]
    assert np.std(means) > 0.05 * np.mean(means)


def test_the_reading_of_another_machine_is_one_of_the_anomalies_of_machines_that_differ(
    of_different_machines: list[Message],
) -> None:
    labels = [message.label for message in of_different_machines]
    assert OTHER_MACHINE in labels
    assert not set(labels[: 90 * WARM_UP_READINGS]) & FAULTS.keys()


def test_a_file_of_another_kind_is_refused_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "rows.xls"
    path.touch()
    with pytest.raises(InputFileError, match=r"rows\.xls: expected a name that ends in \.csv"):
        file_messages(path, 2)


def test_rows_of_a_file_are_spread_over_the_partitions_as_produce_does(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n3,\n5,6\n")
    assert list(file_messages(path, 2)) == [
        Message(0, None, b'{"a":1,"b":2}'),
        Message(1, None, b'{"a":3,"b":null}'),
        Message(0, None, b'{"a":5,"b":6}'),
    ]
