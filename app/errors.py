"""The errors that end a command with one line and an exit code of their own."""

from __future__ import annotations


class OslrauError(Exception):
    """Something went wrong that the message explains; the base of all errors here."""

    exit_code = 1


class SettingsError(OslrauError):
    """A setting is unknown or has a value that does not fit."""

    exit_code = 2


class BrokerError(OslrauError):
    """A Kafka broker cannot be started or reached, or it died."""

    exit_code = 3


class TopicError(OslrauError):
    """A topic is missing, cannot be created or does not fit."""

    exit_code = 4
