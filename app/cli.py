"""The command line `faust-oslrau COMMAND`; each command is a module of `commands`."""

from __future__ import annotations

import os
import pkgutil
from importlib import import_module

import click

from . import commands
from .errors import OslrauError
from .processor import check_processor, choose_level


class Commands(click.Group):
    """A group whose commands are the modules of `commands`, imported on demand.

    The module `name` defines the command `name`. An `OslrauError` ends a command with its message
    and exit code.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return sorted(module.name for module in pkgutil.iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is no such command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"{commands.__name__}.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

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


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="faust-oslrau")
def main() -> None:
    """Continuous density estimation and anomaly scoring on Kafka streams.

    Exit codes: 0 success, 1 failure, 2 wrong usage or settings, 3 broker, 4 topic.
    """
