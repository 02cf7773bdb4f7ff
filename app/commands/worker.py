"""`faust-oslrau worker`: score the source topics until SIGTERM."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from faust_oslrau.app.errors import OslrauError
from faust_oslrau.app.logs import is_readable
from faust_oslrau.app.settings.command_line import chosen_settings, settings_options

logger = logging.getLogger(__name__)


@click.command()
@click.option("--topic", "topics", multiple=True, help="Source topic; may be repeated.")
@click.option("--web-port", type=int, help="Port of the web pages.")
@click.option("--log-level", help="DEBUG, INFO, WARNING or ERROR.")
@settings_options
def worker(
    topics: tuple[str, ...],
    web_port: int | None,
    log_level: str | None,
    settings_file: Path | None,
    broker: str | None,
) -> None:
    """Score and learn the records of the source topics until SIGTERM or Ctrl-C.

    Options override the environment, which overrides the settings file. Several workers share the
    partitions; on one machine each needs its own web port. Exit code: 0 after a stop, 3 if no
    broker acknowledged the last records.
    """
    with _exit_on_signals():
        settings = chosen_settings(
            settings_file,
            broker=broker,
            source_topics=topics or None,
            web_port=web_port,
            log_level=log_level,
        )
        from faust_oslrau.app.worker import run_worker

        try:
            raise SystemExit(run_worker(settings))
        except OslrauError as error:
            if is_readable():
                raise
            logger.critical("%s", error)  # every line of a JSON log is JSON
            raise SystemExit(error.exit_code) from error


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Exit with 0 at SIGTERM or SIGINT until the worker handles them itself.

    Importing the worker's libraries takes a second or more, and there is nothing to finish yet.
    """
    numbers = (signal.SIGTERM, signal.SIGINT)
    former = {number: signal.signal(number, lambda *_: os._exit(0)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
