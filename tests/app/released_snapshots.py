"""What a version keeps, as it is released, so that later ones are held to read it.

python tests/app/released_snapshots.py
"""

import random
import sys
from importlib.metadata import version
from pathlib import Path

import orjson

from faust_oslrau.app.kafka.positions import RecordedSuccessor, start_metadata
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.registry.acceptance_log import acceptance_value
from faust_oslrau.app.settings import LearnerSettings, Settings
from faust_oslrau.app.snapshots.claim import Claim
from faust_oslrau.app.snapshots.manifest import manifest_value
from faust_oslrau.topics import Record
from faust_oslrau.topics.formats import Acceptance, Schema

RELEASED = Path(__file__).parent / "snapshots" / "released"
TOPIC, PARTITION = "features", 3
N = 1000
_FIRST = 1_790_000_000_000  # a Monday, in milliseconds

WITH = {
    "oslrau": Settings(),
    "mixtures": Settings(learner=LearnerSettings(mixtures=True)),
    "entities": Settings(entity="machine", kinds=(("status", "ignored"),), forecasts=True),
    "categories": Settings(kinds=(("status", "category"), ("machine", "category"))),
    "history-seasons": Settings(history=("10",), seasons="UTC", transforms=(("b", "asinh"),)),
    "events": Settings(
        entity="machine", rates="1m", events=("incidents", "silences", "unusual_entities")
    ),
}


CLAIM = Claim("ab" * 8, (f"{N:020d}-{'cd' * 8}.snapshot",))
ACCEPTED = Acceptance(7, Schema("AVRO", '"double"', (("a.avsc", '"int"'),)), 12, None)
SUCCESSOR = RecordedSuccessor(40, "ef" * 16)
TEXTS = {
    "manifest": manifest_value(N, 900_001, "01" * 16, [5, 6], 3),
    "claim": CLAIM.to_bytes(),
    "commit": start_metadata(17, "topic-1", "23" * 16, SUCCESSOR).encode(),
    "acceptance": acceptance_value(ACCEPTED, "https://registry.example", "topic-1"),
}
"""The small messages that decide from where a partition goes on, and how it reads records."""


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
    if folder.exists() and sys.argv[1:] != ["--force"]:
        sys.exit(f"{folder} is there: write it anew with --force if it is not released yet")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in TEXTS.items():
        (folder / f"{name}.json").write_bytes(text)
    for name, settings in WITH.items():
        pipeline = PartitionPipeline(TOPIC, PARTITION, settings)
        pipeline.process(records(0, N))
        (folder / f"{name}.bin").write_bytes(pipeline.snapshot(0, N).to_bytes())


if __name__ == "__main__":
    write()
