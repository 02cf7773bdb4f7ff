"""`faust-oslrau demo`: score simulated machines, and account for every record."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import click
import orjson
from rich.console import Console

from faust_oslrau.app.demo.feed import MACHINES_PER_PARTITION
from faust_oslrau.app.demo.report import print_summary
from faust_oslrau.app.demo.run import Plan, run_demo
from faust_oslrau.app.demo.view import open_view
from faust_oslrau.app.settings.command_line import settings_option

_SECONDS = 30.0


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help=f"How long to send.  [default: {_SECONDS:.0f}; a file is sent completely]",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    default=2000,
    show_default=True,
    help="Records a second.",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, 64),
    metavar="N",
    default=4,
    show_default=True,
    help="Partitions; each has its own model.",
)
@click.option(
    "--machines",
    type=click.IntRange(2, 10_000),
    metavar="N",
    help=f"Simulate so many machines.  [default: {MACHINES_PER_PARTITION} in each partition]",
)
@click.option(
    "--no-entities", is_flag=True, help="Score all machines of a partition alike, to compare."
)
@click.option(
    "--broker",
    metavar="HOST:PORT",
    help="Kafka to use, with new topics.  [default: an embedded broker]",
)
@click.option(
    "--csv",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Send this file instead: CSV, NDJSON, Parquet or npz.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    show_default=True,
    help="Random seed of the simulated machines.",
)
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as a line of JSON.")
def demo(
    seconds: float | None,
    rate: float,
    partitions: int,
    machines: int | None,
    no_entities: bool,
    broker: str | None,
    csv: Path | None,
    seed: int,
    settings_file: Path | None,
    as_json: bool,
) -> None:
    """Stream simulated machine sensors through Kafka and a worker, and watch the scores.

    The machines have regimes, drift, missing fields, injected anomalies and malformed messages.
    They differ, so each is scored by what is usual for itself.
    Settings of a file, such as `faust-oslrau advise` writes, and of the environment (OSLRAU_...)
    hold, but for broker and topics. Exit code: 0 if every record was scored or dead-lettered
    exactly once, and any was scored, else 1.
    """
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())  # errors come as exceptions
    if machines is not None and csv is not None:
        raise click.UsageError("--machines and --csv exclude each other.")
    if no_entities and csv is not None:
        raise click.UsageError("--no-entities and --csv exclude each other.")
    machines = machines or MACHINES_PER_PARTITION * partitions
    if seconds is None and csv is None:
        seconds = _SECONDS
    plan = Plan(
        seconds, rate, partitions, machines, not no_entities, broker, csv, seed, settings_file
    )
    summary = asyncio.run(run_demo(plan, open_view(Console(stderr=True))))
    if as_json:
        click.echo(orjson.dumps(summary.to_json()))
    else:
        print_summary(Console(), summary)
        if broker is not None:
            click.echo(f"The topics stay on {broker}: {', '.join(summary.topics)}")
    raise SystemExit(0 if summary.is_good else 1)
