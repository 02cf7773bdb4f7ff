"""Errors that a command reports in one line, each with its exit code."""

from __future__ import annotations


class OslrauError(Exception):
    """The base of all errors of this project that users see; the message says what to do."""

    exit_code = 1


class SettingsError(OslrauError):
    """A setting is unknown or its value is invalid."""

    exit_code = 2


class BrokerError(OslrauError):
    """A Kafka broker cannot be started or reached, or has died."""

    exit_code = 3


class TopicError(OslrauError):
    """A topic is missing, cannot be created, or has the wrong configuration."""

    exit_code = 4
