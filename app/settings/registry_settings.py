"""The settings of the connection to a schema registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

from faust_oslrau.app.errors import SettingsError

from .section import Section, setting
from .value_types import ADDRESS, TEXT, TOPIC, optional


@dataclass(frozen=True, slots=True)
class RegistrySettings(Section):
    """Where the schemas of the records are, and who asks for them."""

    prefix: ClassVar[str] = "registry."

    url: str | None = setting(None, optional(ADDRESS))
    ca_file: str | None = setting(None, optional(TEXT))
    username: str | None = setting(None, optional(TEXT))
    password: str | None = setting(None, optional(TEXT), secret=True)
    password_file: str | None = setting(None, optional(TEXT))
    schemas_topic: str = setting("oslrau-schemas", TOPIC)

    def __post_init__(self) -> None:
        """Check the fields, then their combination."""
        Section.__post_init__(self)  # super() fails, as dataclass slots create a new class
        parts = urlsplit(self.url or "")
        if parts.username is not None or parts.password is not None:  # it would be logged
            raise SettingsError(
                "setting registry.url: expected an address without a user name and a password, "
                "which are registry.username and registry.password"
            )
        if self.ca_file is not None and parts.scheme != "https":
            raise SettingsError(
                "setting registry.ca_file: expected no value unless registry.url begins with "
                f"https://, got {self.ca_file!r}"
            )
        if self.password is not None and self.password_file is not None:
            raise SettingsError(
                "setting registry.password_file: expected it or registry.password, got both"
            )
        if self.username is not None and self.password is self.password_file is None:
            raise SettingsError(
                f"setting registry.password: expected the password of {self.username!r}, got none"
            )
