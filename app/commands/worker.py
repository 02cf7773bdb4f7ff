"""`faust-oslrau worker`: score the source topics until told to stop."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from faust_oslrau.app.errors import OslrauError
from faust_oslrau.app.settings.command_line import chosen_settings, settings_options

logger = logging.getLogger(__name__)


@click.command(short_help="Score the source topics until SIGTERM.")
@click.option("--topic", "topics", multiple=True, help="Source topic; several may be given.")
@click.option("--web-port", type=int, help="Port of the pages.")
@click.option("--log-level", help="DEBUG, INFO, WARNING or ERROR.")
@click.option("--log-format", help="readable, or json: an object a line.")
@settings_options
def worker(
    topics: tuple[str, ...],
    web_port: int | None,
    log_level: str | None,
    log_format: str | None,
    settings_file: Path | None,
    broker: str | None,
) -> None:
    """Score the records of the source topics, and learn from them, until SIGTERM or Ctrl-C.

    Options win over the environment, which wins over the file. More workers with other web ports
    share the partitions. Ends with 0 when it was stopped, with 3 when no broker answered then.
    """
    settings = chosen_settings(
        settings_file,
        broker=broker,
        source_topics=topics or None,
        web_port=web_port,
        log_level=log_level,
        log_format=log_format,
    )
    from faust_oslrau.app.worker import run_worker

    try:
        raise SystemExit(run_worker(settings))
    except OslrauError as error:
        if settings.log_format == "readable":
            raise
        logger.critical("%s", error)  # what reads JSON shall not find other lines
        raise SystemExit(error.exit_code) from error
