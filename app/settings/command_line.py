"""The command-line options that all commands with settings share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .definitions import Settings
from .reader import load_settings

Command = Callable[..., Any]


def settings_options(command: Command) -> Command:
    """Add the options --settings and --broker to a command."""
    options = (
        click.option("--settings", "settings_file", metavar="FILE",
                     type=click.Path(path_type=Path),
                     help="TOML settings; environment variables (OSLRAU_...) override them."),
        click.option("--broker", metavar="HOST:PORT", help="Kafka bootstrap servers."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def chosen_settings(settings_file: Path | None, **overrides: Any) -> Settings:
    """Return the settings of the file, the environment and the command line."""
    return load_settings(settings_file, os.environ, **overrides)
