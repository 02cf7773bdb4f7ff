"""`faust-oslrau broker`: run a real Apache Kafka on the loopback interface."""

from __future__ import annotations

import json
import signal
from contextlib import suppress
from pathlib import Path

import click

from faust_oslrau.app.brokers import KafkaBroker
from faust_oslrau.app.brokers.jars import jars_folder


@click.command()
@click.option("--port", type=click.IntRange(0, 65_000), default=9092, show_default=True,
              help="Port of the first node, the others follow; 0 picks free ports.")  # fmt: skip
@click.option("--data", type=click.Path(file_okay=False, path_type=Path),
              help="Folder for the data; without it the data is deleted at the end.")  # fmt: skip
@click.option("--nodes", type=click.IntRange(1, 9), default=1, show_default=True,
              help="Nodes of the cluster; with 3 or more, topics have 3 replicas.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the address as a line of JSON.")
def broker(port: int, data: Path | None, nodes: int, as_json: bool) -> None:
    """Run a real Apache Kafka (KRaft) until Ctrl-C or SIGTERM.

    Needs Java 17 or newer, and Maven, which fetches Kafka's jars (about 45 MB) once. Prints the
    address when clients can connect. Exit code: 0 after a stop, 3 if a node did not start or died.
    """
    # SIGINT too, which a shell disables for background processes
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, signal.default_int_handler)
    if not jars_folder().is_dir():
        click.echo("Fetching Kafka's jars through Maven, once ...", err=True)
    with KafkaBroker(data, port=port, nodes=nodes) as kafka, suppress(KeyboardInterrupt):
        _announce(kafka, as_json)
        kafka.watch()


def _announce(kafka: KafkaBroker, as_json: bool) -> None:
    if as_json:
        address = {"bootstrap_servers": kafka.bootstrap_servers, "data": str(kafka.data_dir)}
        click.echo(json.dumps(address))
    else:
        click.echo(f"Kafka is ready at {kafka.bootstrap_servers}, its data in {kafka.data_dir}.")
        click.echo("Ctrl-C stops it.")
