"""What entities gain: one network behind levels and scales, against others for all or each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import process_time

import click
import numpy as np
import orjson
from sklearn.metrics import average_precision_score, roc_auc_score

from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.topics import Record

from . import entity_parts
from .datasets import Array
from .entity_parts import VARIANTS, left_out
from .keyed import DEVELOPMENT, HELD_OUT, Family, KeyedStream, generate
from .report import markdown, prose, write_report

AGES = {"1": (0, 1), "2-10": (1, 10), "11-30": (10, 30), "31-100": (30, 100), "> 100": (100, 2**40)}
"""Records by their number within their entity."""

WARM_UP = 2000
"""First records of a stream, which do not count."""

ALARM_RATE = 0.01

FREQUENT = 1000
"""Records from which on an entity's alarms are counted one by one."""

AS_IT_IS, SEEDS = "as it is", 3

CHUNK = 4096
"""Records that a pipeline is given at a time."""

TEXT = """\
Each record is scored before it is learned; the first 2,000 do not count. Mean log-likelihood of the
usual records, by how many records of its entity there were: the first, the second to tenth, and so
on. *One for each* is a scorer of its own for each entity, which says nothing about an entity's
first 16 records. Area under the ROC curve and average precision are those of p-values, for
anomalies that are unusual for their entity only, 0.5 % of the records each: one field off by six of
its entity's deviations (*spike*), or each field from another record of the entity (*broken*).
Alarms are at a nominal rate of 0.01, of all records: the realised rate, the rate among the first 20
records of an entity, and, of the entities with 1,000 records, the share whose own rate is within a
factor of 2 of nominal."""

COSTS = """\
## Cost

CPU microseconds per record of one partition's pipeline in one thread, without Kafka: decode, score,
learn and encode records of 16 fields, after each entity was seen once or more. *Ratio* is the
throughput with the setting `entity = "key"` over that without it."""

Scores = tuple[Array, Array]
"""Log-likelihoods and p-values (n,) of a stream."""


def one_for_all(stream: KeyedStream) -> Scores:
    block = StreamScorer(OSLRAU()).process(stream.x)
    return block.log_likelihood, block.p_value


def with_entities(stream: KeyedStream) -> Scores:
    block = StreamScorer(OSLRAU(), max_entities=100_000).process(stream.x, stream.names)
    return block.log_likelihood, block.p_value


def one_for_each(stream: KeyedStream) -> Scores:
    scores = np.full((2, len(stream.x)), np.nan)
    for entity in np.unique(stream.key):
        rows = stream.key == entity
        block = StreamScorer(OSLRAU()).process(stream.x[rows])
        scores[:, rows] = block.log_likelihood, block.p_value
    return scores[0], scores[1]


MODELS: Mapping[str, Callable[[KeyedStream], Scores]] = {
    "one for all": one_for_all,
    "one for each": one_for_each,
    "entities": with_entities,
}


def run(out: Path, quick: bool) -> None:
    """Entities of one network against one network for all, and one for each."""
    n = 4000 if quick else 40_000
    tables, figures = [], []
    for title, families in (("Held-out streams", HELD_OUT), ("Development streams", DEVELOPMENT)):
        found = list(measured(families, n, len(tables)))
        figures += found
        tables += [f"## {title}", markdown([shown(figure) for figure in found])]
        click.echo(tables[-1], err=True)
    brought = parts(n, 1 if quick else SEEDS)
    costs = [cost(k, 2 if quick else 20) for k in ((100,) if quick else (10_000, 100_000))]
    blocks = ["What entities gain", prose(TEXT), *tables]
    blocks += [prose(entity_parts.TEXT), markdown(brought), prose(COSTS)]
    write_report(out, "entities", blocks, [shown(figure) for figure in costs], [*figures, *costs])


def measured(families: Mapping[str, Family], n: int, seed: int) -> Iterator[dict[str, object]]:
    """Yield the figures of each model on a stream of each family."""
    for number, (name, family) in enumerate(families.items()):
        stream = family(np.random.default_rng([seed, number]), n)
        for model, scores in MODELS.items():
            if model == "one for each" and len(np.unique(stream.key)) > 500:
                continue  # too few records of each, and hours
            yield {"stream": name, "model": model, **quality(stream, *scores(stream))}


def quality(stream: KeyedStream, log_likelihood: Array, p_value: Array) -> dict[str, float | None]:
    """Return the figures of one model on one stream."""
    number, late = stream.number, np.arange(len(stream.x)) >= WARM_UP
    usual = late & ~(stream.spike | stream.broken)
    figures: dict[str, float | None] = {}
    for name, (first, last) in AGES.items():
        rows = usual & (number >= first) & (number < last) & ~np.isnan(log_likelihood)
        whole = np.count_nonzero(rows) > 20
        figures[name] = float(log_likelihood[rows].mean()) if whole else None
    surprise = -np.log(np.where(np.isnan(p_value), 1.0, p_value))
    for name, anomalies in (("spike", stream.spike), ("broken", stream.broken)):
        rows = late & (anomalies | usual)
        figures[f"{name}: area"] = float(roc_auc_score(anomalies[rows], surprise[rows]))
        figures["AP" if name == "spike" else "its AP"] = float(
            average_precision_score(anomalies[rows], surprise[rows])
        )
    alarm = p_value <= ALARM_RATE
    young = late & (number < 20)
    figures["alarms"] = float(alarm[late].mean())
    figures["of young"] = float(alarm[young].mean()) if young.any() else None
    counts = np.bincount(stream.key[late])
    rates = np.bincount(stream.key[late], alarm[late])[counts >= FREQUENT]
    rates = rates / counts[counts >= FREQUENT] / ALARM_RATE
    within = (rates >= 0.5) & (rates <= 2.0)
    figures["within 2x"] = float(within.mean()) if len(rates) else None
    return figures


def parts(n: int, seeds: int) -> list[dict[str, str]]:
    """Return what each mechanism brings, on new streams of all families."""
    families = [*HELD_OUT.items(), *DEVELOPMENT.items()]
    found = {}
    for variant in (AS_IT_IS, *VARIANTS):
        with left_out(VARIANTS.get(variant, ())):
            found[variant] = {
                name: [
                    quality(stream, *with_entities(stream))
                    for seed in range(seeds)
                    for stream in [family(np.random.default_rng([2, seed, number]), n)]
                ]
                for number, (name, family) in enumerate(families)
            }
    return list(entity_parts.rows(found, AS_IT_IS))


def shown(figure: Mapping[str, object]) -> dict[str, object]:
    """Return a row of a table."""
    row = {}
    for name, value in figure.items():
        digits = 4 if name in ("alarms", "of young") else 2
        row[name] = f"{value:.{digits}f}" if isinstance(value, float) else value
        if value is None:
            row[name] = "-"
    return row


def cost(k: int, chunks: int) -> dict[str, object]:
    """Return the CPU time per record with ``k`` entities and without any, and their ratio."""
    known = 2 * k if k > CHUNK else 4 * CHUNK
    stream = generate(np.random.default_rng(k), known + chunks * CHUNK, k=k, d=16, kinds=1)
    fields = [f"f{column}" for column in range(16)]
    records = [
        Record("features", 0, offset, 0, key, orjson.dumps(dict(zip(fields, row, strict=True))))
        for offset, (key, row) in enumerate(zip(stream.names, stream.x.tolist(), strict=True))
    ]
    pipelines = [
        PartitionPipeline("features", 0, Settings(features=fields, entity=entity))
        for entity in (None, "key")
    ]
    for start in range(0, known, CHUNK):
        for pipeline in pipelines:
            pipeline.process(records[start : min(start + CHUNK, known)])
    seconds = np.empty((chunks, 2))
    for chunk in range(chunks):  # by turns, as other work on the machine comes and goes
        start = known + chunk * CHUNK
        for number, pipeline in enumerate(pipelines):
            began = process_time()
            pipeline.process(records[start : start + CHUNK])
            seconds[chunk, number] = process_time() - began
    without, with_them = (np.median(seconds, axis=0) / CHUNK * 1e6).tolist()
    began = process_time()
    state = pipelines[1].snapshot(0, len(records))
    size = len(state.to_bytes())
    saved = process_time()
    PartitionPipeline.restored(state, Settings(features=fields, entity="key"))
    return {
        "entities": f"{k:,}",
        "without": without,
        "with": with_them,
        "ratio": without / with_them,
        "snapshot, MB": size / 1e6,
        "to save, s": saved - began,
        "to restore, s": process_time() - saved,
    }
