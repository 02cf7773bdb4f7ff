"""What records of other formats than JSON cost."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import orjson

from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record
from faust_oslrau.topics.formats import (
    KINDS,
    Acceptance,
    Schema,
    Translator,
    codec,
    framed,
    message_schema,
    message_writer,
)

from .datasets import Array
from .report import prose, write_report

BLOCK = 4096
UNTIMED = 4
"""Blocks before the first that is timed."""
WRITTEN = "json, scores as avro"
FORMATS = ("json", *KINDS, WRITTEN)
# As a worker sets it: records form no reference cycles.
_COLLECT_AFTER = 100_000
_ID = 1

TEXT = f"""\
CPU microseconds to decode, score, learn and encode a record in blocks of {BLOCK:,}, after
{UNTIMED * BLOCK:,} records, *decode* those of decoding alone, and the throughput as a multiple of
that with JSON (the median over blocks, each compared with the same block of JSON). Every format
gives the same scores. *{WRITTEN}* are records of JSON whose scores become Avro. The goal is at
least 0.8 with Avro."""

Row = dict[str, Any]


def numbers(count: int) -> Callable[[Array], Row]:
    """Return what makes a record of so many numbers."""
    return lambda row: {f"x{i}": value for i, value in enumerate(row[:count].tolist())}


def mixed(row: Array) -> Row:
    """Return a record of numbers, whole and missing ones, a category, an object."""
    first, second, *rest = row.tolist()
    return {
        "service": "search" if first > 0 else "checkout",
        "x": first + second,
        "count": int(100 * abs(first)),
        "load": None if second > 1 else second,
        "inner": {f"y{i}": value for i, value in enumerate(rest[:4])},
    }


STREAMS: Mapping[str, Callable[[Array], Row]] = {
    "8 numbers": numbers(8),
    "30 numbers": numbers(30),
    "mixed": mixed,
}


def run(out: Path, quick: bool) -> None:
    """What records of other formats than JSON cost."""
    gc.collect()
    before = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    rows = [row for name in STREAMS for row in cost(name, 2 if quick else 20)]
    gc.set_threshold(*before)
    shown = [
        {key: f"{value:.2f}" if isinstance(value, float) else value for key, value in row.items()}
        for row in rows
    ]
    write_report(out, "formats", ["Cost of formats", prose(TEXT)], shown, rows)


def cost(stream: str, blocks: int) -> Iterator[dict[str, object]]:
    """Yield the CPU time per record in each format."""
    decoding, seconds = timed(STREAMS[stream], blocks)
    multiple = np.median(seconds[:, :1] / seconds, axis=0)
    for at, name in enumerate(FORMATS):
        yield {
            "record": stream,
            "format": name,
            "microseconds": float(np.median(seconds[:, at]) / BLOCK * 1e6),
            "decode": float(np.median(decoding[:, at]) / BLOCK * 1e6),
            "throughput": float(multiple[at]),
        }


def timed(make: Callable[[Array], Row], blocks: int) -> tuple[Array, Array]:
    """Return the seconds (blocks, k) of each format, by turns: of decoding, and of all."""
    x = np.random.default_rng(0).normal(size=((UNTIMED + blocks) * BLOCK, 30))
    x += np.roll(x, 1, axis=1)
    written = [encoder(name, make(x[0])) for name in FORMATS]
    pipelines = list(map(pipeline, FORMATS, [make(x[0])] * len(FORMATS)))
    write = message_writer(message_schema("scores"), _ID)
    decoding, seconds = (np.empty((UNTIMED + blocks, len(FORMATS))) for _ in range(2))
    for number, block in enumerate(np.split(x, UNTIMED + blocks)):
        documents, scores = list(map(make, block)), []
        for at, (encode, own) in enumerate(zip(written, pipelines, strict=True)):
            records = [
                Record("t", 0, offset, 0, None, encode(document))
                for offset, document in enumerate(documents, number * BLOCK)
            ]
            began = process_time()
            own.needed_schemas(records)
            processed = own.process(records)
            if FORMATS[at] == WRITTEN:
                list(map(write, [message.value or b"" for message in processed.scores]))
            seconds[number, at] = process_time() - began
            decoding[number, at] = processed.seconds["decode"]
            scores.append([message.value for message in processed.scores])
        if scores.count(scores[0]) != len(scores):
            raise ValueError("expected the same scores of each format")
    return decoding[UNTIMED:], seconds[UNTIMED:]


def pipeline(name: str, example: Row) -> PartitionPipeline:
    """Return a pipeline of a format that knows the schema of a record."""
    settings = Settings()
    made = PartitionPipeline("t", 0, settings)
    if name in KINDS:
        made.translator = Translator(name, settings.max_message_bytes)
        made.translator.accept([Acceptance(_ID, schema(name, example), 0, None)])
    return made


def encoder(name: str, example: Row) -> Callable[[Row], bytes]:
    """Return what writes records in a format."""
    if name not in KINDS:
        return orjson.dumps
    encode = codec(name, schema(name, example)).encode
    return lambda document: framed(_ID, encode(document))


def schema(name: str, example: Row) -> Schema:
    """Return the schema of records like this one."""
    texts = {"avro": json.dumps(avro("R", example)), "protobuf": protobuf(example)}
    return Schema(KINDS[name], texts.get(name, "{}"))


def avro(name: str, example: Row) -> dict[str, Any]:
    """Return the schema of records like this one; of all fields, `load` may be missing."""
    kinds: dict[type, str] = {str: "string", int: "long"}
    fields: list[dict[str, Any]] = []
    for field, content in example.items():
        kind: Any = kinds.get(type(content), "double")
        if isinstance(content, dict):
            kind = avro(field, content)
        fields.append({"name": field, "type": ["null", kind] if field == "load" else kind})
    return {"type": "record", "name": name, "fields": fields}


def protobuf(example: Row) -> str:
    """Return the same schema for Protobuf."""
    return 'syntax = "proto3";\n' + message("R", example)


def message(name: str, example: Row) -> str:
    """Return the definition of a message."""
    kinds: dict[type, str] = {str: "string", int: "int64"}
    inside, fields = "", ""
    for number, (field, content) in enumerate(example.items(), start=1):
        kind = kinds.get(type(content), "double")
        if isinstance(content, dict):
            kind = field.title()
            inside += message(kind, content)
        fields += f"{'optional ' if field == 'load' else ''}{kind} {field} = {number};\n"
    return f"message {name} {{\n{inside}{fields}}}\n"
