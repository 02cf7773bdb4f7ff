"""Converts the settings of the connection to arguments of Kafka clients."""

from __future__ import annotations

import ssl
from typing import Any

from aiokafka.abc import AbstractTokenProvider

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.files import LARGEST_PEM, read_file
from faust_oslrau.app.settings import SecuritySettings, Settings

# Far more than a token has.
_MAX_TOKEN_BYTES = 65_536


class TokenFile(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """A file with a token; it is read for each connection, as somebody else renews it."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def token(self) -> str:
        """Return the token."""
        return self.read()

    def read(self) -> str:
        """Return the token; raises OSError."""
        return read_file(self._path, _MAX_TOKEN_BYTES).decode("ascii", "replace").strip()


def client_arguments(settings: Settings) -> dict[str, Any]:
    """Return the connection arguments that all aiokafka clients share."""
    security = settings.security
    arguments: dict[str, Any] = {
        "bootstrap_servers": settings.broker.split(","),
        "security_protocol": security.protocol,
    }
    if security.uses_tls:
        arguments["ssl_context"] = _ssl_context(security)
    if security.uses_token:
        arguments["sasl_mechanism"] = security.sasl_mechanism
        arguments["sasl_oauth_token_provider"] = _token_file(security)
    elif security.uses_sasl:
        arguments["sasl_mechanism"] = security.sasl_mechanism
        arguments["sasl_plain_username"] = security.sasl_username
        arguments["sasl_plain_password"] = security.sasl_password
    return arguments


def producer_arguments(settings: Settings) -> dict[str, Any]:
    """Return the arguments that all of aiokafka's producers share."""
    kind = None if settings.compression == "none" else settings.compression
    return client_arguments(settings) | {"compression_type": kind}


def faust_credentials(security: SecuritySettings) -> Any:
    """Return Faust's `broker_credentials`; None for a plaintext connection."""
    import faust  # takes a second to import, which produce and replay need not wait for
    from faust.auth import OAuthCredentials

    context = _ssl_context(security) if security.uses_tls else None
    if security.uses_token:
        return OAuthCredentials(oauth_cb=_token_file(security), ssl_context=context)
    if security.uses_sasl:
        return faust.SASLCredentials(
            username=security.sasl_username,
            password=security.sasl_password,
            mechanism=security.sasl_mechanism,
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context else None


def _ssl_context(security: SecuritySettings) -> ssl.SSLContext:
    for name in ("ca_file", "cert_file", "key_file"):
        _check_readable(name, getattr(security, name))
    try:
        context = ssl.create_default_context(cafile=security.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise _unusable("ca_file", "PEM", security.ca_file, error) from None
    if security.cert_file is not None:
        try:
            # An empty password fails for an encrypted key; None would prompt on the terminal.
            context.load_cert_chain(security.cert_file, security.key_file, password="")
        except (OSError, ssl.SSLError) as error:
            raise _unusable("cert_file", "PEM", security.cert_file, error) from None
    return context


def _check_readable(name: str, path: str | None) -> None:
    """Refuse a file that cannot be read, before OpenSSL waits for somebody who writes to a pipe."""
    try:
        if path is not None:
            read_file(path, LARGEST_PEM)
    except OSError as error:
        raise _unusable(name, "PEM", path, error) from None


def _token_file(security: SecuritySettings) -> TokenFile:
    file = TokenFile(security.sasl_token_file or "")
    try:
        file.read()
    except OSError as error:
        raise _unusable("sasl_token_file", "token", security.sasl_token_file, error) from None
    return file


def _unusable(name: str, content: str, path: str | None, error: OSError) -> SettingsError:
    reason = error.strerror or error
    return SettingsError(
        f"setting security.{name}: expected a readable {content}, got {path!r}: {reason}"
    )
