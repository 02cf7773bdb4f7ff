"""What is wrong with a schema, or with a record of it."""

from __future__ import annotations


class SchemaError(ValueError):
    """A schema cannot be used."""


class ContentError(ValueError):
    """A record does not follow its schema."""
