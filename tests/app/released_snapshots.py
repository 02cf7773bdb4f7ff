"""Snapshots of a version as it is released, so that later ones are held to read them.

python tests/app/released_snapshots.py
"""

from __future__ import annotations

import random
from importlib.metadata import version
from pathlib import Path

import orjson

from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import LearnerSettings, Settings
from faust_oslrau.topics import Record

RELEASED = Path(__file__).parent / "snapshots" / "released"
TOPIC, PARTITION = "features", 3
N = 1000
_FIRST = 1_790_000_000_000  # a Monday, in milliseconds

WITH = {
    "oslrau": Settings(),
    "stacked": Settings(learner=LearnerSettings(kind="stacked")),
    "entities": Settings(entity="machine", kinds=(("status", "ignored"),), forecasts=True),
    "categories": Settings(kinds=(("status", "category"), ("machine", "category"))),
    "history-seasons": Settings(history=("10",), seasons="UTC", transforms=(("b", "asinh"),)),
    "events": Settings(
        entity="machine", rates="1m", events=("incidents", "silences", "unusual_entities")
    ),
}


def records(first: int, last: int) -> list[Record]:
    rng = random.Random(7)
    rows = [
        {
            "a": rng.gauss(0, 1),
            "b": rng.gauss(5, 2),
            "machine": f"m{rng.randrange(5)}",
            "status": rng.choice([200, 200, 200, 404]),
        }
        for _ in range(last)
    ]
    return [
        Record(TOPIC, PARTITION, offset, _FIRST + 10_000 * offset, None, orjson.dumps(row))
        for offset, row in enumerate(rows)
    ][first:]


def write() -> None:
    folder = RELEASED / version("faust-oslrau")
    folder.mkdir(parents=True, exist_ok=True)
    for name, settings in WITH.items():
        pipeline = PartitionPipeline(TOPIC, PARTITION, settings)
        pipeline.process(records(0, N))
        (folder / f"{name}.bin").write_bytes(pipeline.snapshot(0, N).to_bytes())


if __name__ == "__main__":
    write()
