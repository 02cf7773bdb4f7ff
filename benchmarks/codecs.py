"""What the codecs of the setting `compression` cost and save."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from aiokafka.producer.message_accumulator import BatchBuilder

from faust_oslrau.app.kafka.connection import BATCH_BYTES
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import OutMessage, Record

from .floor import microseconds
from .pipeline_topic import rows
from .report import NOISE, prose, write_report

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""The names of codecs, and their numbers in a batch."""

SIZES = (10, 250)
"""Messages in a batch: of a quiet topic, and of a busy one."""

_RECORDS = 16_384
_ALARM_RATE = 0.1  # so that there are enough anomalies

TEXT = """\
Bytes of a message in its batch, and CPU microseconds to fill and compress the batch, of scores and
of anomalies with their record and what is to blame: those of the last of 16,384 rows of the
pipeline benchmark, 16 numbers with a key. The fastest of 100 turns. The JSON is the same with every
codec, so what a codec adds to *none* is its cost."""


def run(out: Path, quick: bool) -> None:
    """What the codecs of the setting `compression` cost and save."""
    found = messages(2048 if quick else _RECORDS)
    figures = [row for kind, of in found.items() for row in costs(kind, of)]
    shown = [{**row, "bytes": f"{row['bytes']:.0f}", "µs": f"{row['µs']:.2f}"} for row in figures]
    write_report(out, "codecs", ["Cost of codecs", NOISE, prose(TEXT)], shown, figures)


def messages(count: int) -> dict[str, list[OutMessage]]:
    """Return the last scores and anomalies of so many records."""
    settings = Settings(alarm_rate=_ALARM_RATE, events=("records",))
    pipeline, scores, anomalies = PartitionPipeline("features", 0, settings), [], []
    values = [value for chunk in rows(0, count) for value in chunk]
    for first in range(0, count, 1024):
        block = pipeline.process(
            [
                Record("features", 0, at, 1_700_000_000_000 + at, b"machine-%d" % (at % 40), value)
                for at, value in enumerate(values[first : first + 1024], first)
            ]
        )
        scores += block.scores
        anomalies += block.anomalies
    return {"scores": scores[-max(SIZES) :], "anomalies": anomalies[-max(SIZES) :]}


def costs(kind: str, found: Sequence[OutMessage]) -> Iterator[dict[str, object]]:
    """Yield what each codec costs in small and in large batches."""
    for size in SIZES:
        batch = found[-size:]
        for name, codec in CODECS.items():
            yield {
                "messages": kind,
                "in a batch": len(batch),
                "codec": name,
                "bytes": len(packed(batch, codec)) / len(batch),
                "µs": microseconds(lambda b=batch, c=codec: packed(b, c)) / len(batch),
            }


def packed(found: Sequence[OutMessage], codec: int) -> bytes:
    """Return a batch of messages as the worker's producer sends it."""
    batch = BatchBuilder(BATCH_BYTES, codec)
    for message in found:
        batch.append(
            timestamp=message.timestamp,
            key=message.key,
            value=message.value,
            headers=list(message.headers),
        )
    return bytes(batch._build())
