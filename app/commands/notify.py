"""`faust-oslrau notify`: tell people of events."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from pathlib import Path

import click

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.logs import set_up_logging
from faust_oslrau.app.notify.notifier import notify_all
from faust_oslrau.app.settings import secrets
from faust_oslrau.app.settings.command_line import chosen_settings, settings_options


@click.command()
@settings_options
def notify(settings_file: Path | None, broker: str | None) -> None:
    """Post events to an Alertmanager and webhooks, incidents as they open, get worse and close.

    The settings notify.alertmanager and notify.webhook say where, notify.events and others of
    which. Incidents that overlap in time and blame a common field are one notice. Runs until
    Ctrl-C; run one for each anomalies topic.
    """
    settings = chosen_settings(settings_file, broker=broker)
    if settings.notify.alertmanager is None and settings.notify.webhook is None:
        raise SettingsError("setting notify: expected alertmanager or webhook, got neither")
    set_up_logging(settings.log_level, secrets(settings))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the first process of a container
    with suppress(KeyboardInterrupt):
        asyncio.run(notify_all(settings))
