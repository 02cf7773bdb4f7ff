"""The command-line options that all commands with settings share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from faust_oslrau.app.errors import SettingsError

from .definitions import Settings
from .reader import load_settings

Command = Callable[..., Any]


settings_option = click.option(
    "--settings", "settings_file", metavar="FILE", type=click.Path(path_type=Path),
    help="TOML settings; environment variables (OSLRAU_...) override them.",
)  # fmt: skip
broker_option = click.option("--broker", metavar="HOST:PORT", help="Kafka bootstrap servers.")


def settings_options(command: Command) -> Command:
    """Add the options --settings and --broker to a command."""
    return settings_option(broker_option(command))


def chosen_settings(settings_file: Path | None, **overrides: Any) -> Settings:
    """Return the settings of the file, the environment and the command line."""
    return load_settings(settings_file, os.environ, **overrides)


def settings_of_file(settings_file: Path | None, **overrides: Any) -> Settings:
    """Return the settings of one file of several; an error names the file.

    Raises
    ------
    SettingsError
        As for `load_settings`.
    """
    try:
        return chosen_settings(settings_file, **overrides)
    except SettingsError as error:
        if settings_file is None or str(settings_file) in str(error):
            raise
        raise SettingsError(f"{settings_file}: {error}") from None
