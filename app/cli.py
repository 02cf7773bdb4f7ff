"""The command line `faust-oslrau COMMAND`; each command is a module of `commands`."""

from __future__ import annotations

import errno
import logging
import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from . import commands
from .errors import OslrauError
from .processor import check_processor, choose_level

COMMANDS = {
    "advise": "Advise settings for a log.",
    "broker": "Run a real Apache Kafka on this machine.",
    "compare": "Compare two settings files on a log.",
    "demo": "Score simulated machines in a live view; needs no Kafka.",
    "evaluate": "Evaluate alarms on a labelled file.",
    "fit": "Learn files offline, as an initial model.",
    "inspect": "List, export, import snapshots; reset partitions.",
    "merge": "Merge models of partitions into one.",
    "notify": "Tell Alertmanager and webhooks of events.",
    "produce": "Send a file (CSV, NDJSON, Parquet, npz) to a topic.",
    "replay": "Score a file, or a range of a topic, offline.",
    "tail": "Follow what a worker writes, a line for each message.",
    "worker": "Score the source topics until SIGTERM.",
}
"""What each command does: listing them imports none."""


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Commands(click.Group):
    """A group whose commands are the modules of `commands`, imported when they are called.

    The module `name` defines the command `name`. An `OslrauError` ends a command with its message
    and exit code.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"{commands.__name__}.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run the command line as what its process is for; `main` may be called within others."""
        try:
            return super().__call__(*args, **options)
        except SystemExit as end:
            if "obstore" in sys.modules:
                _end_at_once(end.code)
            raise

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command line; if its output cannot be written, it ends with a line that says so.

        Also if that only turns out at the end, when the last of it is written.
        """
        try:
            try:
                return super().main(*args, **options)
            finally:
                sys.stdout.flush()
        except OSError as error:
            if error.errno not in _FULL:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left of it
            click.echo(f"Error: the output: {error.strerror or error}", err=True)
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> object:
        """Run the chosen command."""
        try:
            choose_level(os.environ)
            check_processor(os.environ)
            return super().invoke(ctx)
        except OslrauError as error:
            failure = click.ClickException(str(error))
            failure.exit_code = error.exit_code
            raise failure from error


def _end_at_once(code: Any) -> NoReturn:
    """End the process without the interpreter's own end.

    Threads of obstore, which has no way to stop them, may wait for the interpreter at that moment,
    and then abort the process (https://github.com/PyO3/pyo3-async-runtimes/issues/40).
    """
    logging.shutdown()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="faust-oslrau")
def main() -> None:
    """Continuous density estimation and anomaly scoring on Kafka streams.

    Exit codes: 0 success, 1 failure, 2 wrong usage or settings, 3 broker, 4 topic.
    """
