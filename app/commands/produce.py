"""`faust-oslrau produce`: send a file to a topic."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import asdict
from pathlib import Path

import click
import orjson

from faust_oslrau.app.offline.command_line import tell_of_left_out
from faust_oslrau.app.offline.input_files import open_input
from faust_oslrau.app.offline.partitioner import MOST_PARTITIONS
from faust_oslrau.app.offline.produce import produce as send
from faust_oslrau.app.offline.progress import progress
from faust_oslrau.app.settings.command_line import chosen_settings, settings_options


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--topic", help="Topic to send to.  [default: the first source topic]")
@click.option("--key", metavar="COLUMN", help="Column with the message's key.")
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Schema of the rows, which is registered.  "
              "[default: the latest one of the topic]")  # fmt: skip
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N",
              help="At most N records a second.")  # fmt: skip
@click.option("--create-topic", is_flag=True, help="Create the topic first.")
@click.option("--partitions", type=click.IntRange(1, MOST_PARTITIONS), metavar="N",
              help="Partitions of the new topic.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the summary as a line of JSON.")
@settings_options
def produce(
    file: Path,
    topic: str | None,
    key: str | None,
    schema_file: Path | None,
    rate: float | None,
    create_topic: bool,
    partitions: int | None,
    as_json: bool,
    settings_file: Path | None,
    broker: str | None,
) -> None:
    """Send each row of FILE to a topic, in the setting format: as a JSON object by default.

    CSV needs a header; an empty cell is null. NDJSON lines are sent byte for byte. Of npz the array
    x is sent. Without --key, row i goes to partition i modulo the number of partitions.
    """
    if create_topic != (partitions is not None):
        raise click.UsageError("expected both --create-topic and --partitions, or neither")
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())  # errors come as exceptions
    settings = chosen_settings(settings_file, broker=broker)
    if schema_file is not None and not settings.uses_registry:
        raise click.UsageError("--schema needs a format with schemas, the setting is json")
    source = open_input(file, key)
    with progress("produced") as report:
        produced = asyncio.run(
            send(
                source,
                topic or settings.source_topics[0],
                settings,
                rate=rate,
                create_partitions=partitions,
                schema_file=schema_file,
                report=report,
            )
        )
    tell_of_left_out(produced.left_out)
    if as_json:
        summary = asdict(produced)
        del summary["left_out"]
        click.echo(orjson.dumps(summary))
    else:
        click.echo(
            f"{produced.records:,} records ({produced.bytes:,} bytes) sent to {produced.topic}, "
            f"{produced.partitions} partitions, in {produced.seconds:.1f} s"
        )
    if produced.expired:
        click.echo(
            f"warning: {produced.expired:,} of them are older than the topic's "
            f"retention.ms={produced.retention}: Kafka deletes them soon",
            err=True,
        )
