"""Directions and least deviations, from the settings to the alarms."""

import dataclasses

import numpy as np
from as_records import as_records

from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.pipeline.snapshot import settings_digest
from faust_oslrau.app.settings import Settings

RNG = np.random.default_rng(4)
ROWS = RNG.normal(50.0, 1.0, size=(5000, 2))
ABOVE, BELOW = np.arange(2000, 5000, 200), np.arange(2100, 5000, 200)
ROWS[ABOVE, 0], ROWS[BELOW, 0] = 70.0, 30.0
RECORDS = as_records({"other": other, "latency": latency} for latency, other in ROWS.tolist())
SETTINGS = Settings(features=["other", "latency"], directions={"latency": "high"})


def alarms(settings):
    anomalies = PartitionPipeline("features", 0, settings).process(RECORDS).anomalies
    return {message.offset for message in anomalies}


def test_only_deviations_on_the_side_that_matters_and_of_at_least_the_setting_are_anomalies():
    found = alarms(SETTINGS)
    assert found >= set(ABOVE.tolist()) and found.isdisjoint(BELOW.tolist())
    least = dataclasses.replace(SETTINGS, directions=(), least=(("latency", 25.0),))
    assert alarms(least).isdisjoint([*ABOVE.tolist(), *BELOW.tolist()])


def test_the_alarm_rate_is_part_of_a_model_that_ranks_by_it():
    ranked = [dataclasses.replace(SETTINGS, alarm_rate=rate) for rate in (0.001, 0.003)]
    plain = [dataclasses.replace(settings, directions=()) for settings in ranked]
    assert settings_digest(ranked[0]) != settings_digest(ranked[1])
    assert settings_digest(plain[0]) == settings_digest(plain[1])
