"""`faust-oslrau replay`: score a file, or a range of a topic, without a worker."""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import click
import orjson

from faust_oslrau.app.offline.input_files import open_input
from faust_oslrau.app.offline.output_files import DeadLetterFile, Discard, NdjsonFile, open_scores
from faust_oslrau.app.offline.progress import progress
from faust_oslrau.app.offline.replay import Replay, Replayed, Sink, replay_file, replay_topic
from faust_oslrau.app.settings.command_line import chosen_settings, settings_options


class _End(click.ParamType):
    name = "offset"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        return None if value == "end" else click.IntRange(min=0).convert(value, param, ctx)


@click.command(short_help="Score a file, or a range of a topic, offline.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path),
              help="File for the scores: .parquet is Parquet, any other NDJSON.")  # fmt: skip
@click.option("--anomalies", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="NDJSON file for the anomalies, incidents and other events.")  # fmt: skip
@click.option("--dead-letters", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="NDJSON file for the rejected records and their reasons.")  # fmt: skip
@click.option("--partitions", type=click.IntRange(1), default=1, show_default=True,
              help="Partitions for the rows of FILE, distributed as by produce.")  # fmt: skip
@click.option("--key", metavar="COLUMN", help="Column of FILE with the message's key.")
@click.option("--topic", help="Topic to read, or topic name for the rows of FILE.  "
              "[default: the first source topic]")  # fmt: skip
@click.option("--from", "start", type=click.IntRange(0), metavar="OFFSET",
              help="First offset of each partition.  [default: the oldest]")  # fmt: skip
@click.option("--to", "end", type=_End(), default="end", show_default=True, metavar="OFFSET|end",
              help="Offset before which each partition ends.")  # fmt: skip
@click.option("--features", metavar="FIELD,...", help="Fields to score, or auto.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as a line of JSON.")
@settings_options
def replay(
    file: Path | None,
    out: Path,
    anomalies: Path | None,
    dead_letters: Path | None,
    partitions: int,
    key: str | None,
    topic: str | None,
    start: int | None,
    end: int | None,
    features: str | None,
    as_json: bool,
    settings_file: Path | None,
    broker: str | None,
) -> None:
    """Score FILE, or a topic without it, as a worker with the same settings would.

    The scores equal the worker's to the bit. Rows of a file have no timestamp.
    """
    if file is not None and (start, end) != (None, None):
        raise click.UsageError("--from and --to need a topic, not a FILE")
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())  # errors come as exceptions
    settings = chosen_settings(settings_file, broker=broker, features=features)
    topic = topic or settings.source_topics[0]
    source = None if file is None else open_input(file, key)
    began = monotonic()
    with ExitStack() as files, progress("scored") as report:
        scores = files.enter_context(open_scores(out))
        alerts: Sink = Discard()
        letters: Sink = Discard()
        if anomalies is not None:
            alerts = files.enter_context(NdjsonFile(anomalies))
        if dead_letters is not None:
            letters = files.enter_context(DeadLetterFile(dead_letters))
        run = Replay(settings, scores, alerts, letters)
        if source is not None:
            replay_file(source, topic, partitions, run, report)
        else:
            asyncio.run(replay_topic(topic, start, end, settings, run, report))
    _summarise(run.replayed, out, monotonic() - began, as_json)


def _summarise(replayed: Replayed, out: Path, seconds: float, as_json: bool) -> None:
    if as_json:
        click.echo(orjson.dumps({**replayed.as_dict(), "seconds": seconds}))
        return
    rejected = ", ".join(f"{reason} {n:,}" for reason, n in sorted(replayed.rejected.items()))
    click.echo(
        f"{replayed.records:,} records in {seconds:.1f} s: {replayed.scored:,} scored to {out}, "
        f"{replayed.anomalies:,} anomalies, {replayed.incidents:,} incidents, "
        f"{replayed.rejected.total():,} rejected" + (f" ({rejected})" if rejected else "")
    )
