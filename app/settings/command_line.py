"""The options of commands that choose settings."""

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
    """Add the options of `chosen_settings`."""
    options = (
        click.option("--settings", "settings_file", metavar="FILE",
                     type=click.Path(path_type=Path),
                     help="Settings in TOML; the environment (OSLRAU_...) wins over it."),
        click.option("--broker", metavar="HOST:PORT", help="Kafka to talk to."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def chosen_settings(settings_file: Path | None, **overrides: Any) -> Settings:
    """Return the settings of file, environment and command line."""
    return load_settings(settings_file, os.environ, **overrides)
