"""Tells a broker that refuses the credentials from one that is unavailable."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from aiokafka.conn import AIOKafkaConnection, collect_hosts, create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.admin import ApiVersionRequest

from faust_oslrau.app.errors import BrokerError

# Brokers delay the refusal of a password, to slow down guessing.
_TIMEOUT_MILLISECONDS = 10_000
_TOKEN = "sasl_oauth_token_provider"
_UNSUPPORTED = (IllegalSaslStateError, UnsupportedSaslMechanismError)
_REFUSED = (AuthenticationFailedError, SaslAuthenticationFailed)


async def check_access(client_arguments: Mapping[str, Any]) -> None:
    """Try to connect to each broker; return if none refuses the connection.

    aiokafka's clients raise the same error for a wrong password and an unavailable broker.

    Raises
    ------
    BrokerError
        A broker refuses the credentials, or its certificate is not accepted.
    """
    arguments = dict(client_arguments)
    for host, port, _ in collect_hosts(arguments.pop("bootstrap_servers")):
        reason = await _refusal(host, port, arguments)
        if reason is not None:
            raise BrokerError(f"no access to the Kafka broker at {host}:{port}: {reason}")


async def _refusal(host: str, port: int, arguments: Mapping[str, Any]) -> str | None:
    try:
        connection = await create_conn(
            host, port, request_timeout_ms=_TIMEOUT_MILLISECONDS, **arguments
        )
    except _UNSUPPORTED as error:
        return f"{type(error).__name__} for {arguments['sasl_mechanism']}"
    except _REFUSED as error:
        return f"{error.args[0] if error.args else 'the password is refused'}"
    except (TimeoutError, KafkaError, OSError) as error:
        # A broker that rejects our certificate may send its alert after the handshake.
        return _tls_refusal(error) or _tls_refusal(error.__cause__)
    try:
        return await _token_refusal(connection) if _TOKEN in arguments else None
    finally:
        connection.close()


async def _token_refusal(connection: AIOKafkaConnection) -> str | None:
    """Return whether the broker answers: aiokafka does not read what it says of a token."""
    answer = await connection.send(ApiVersionRequest())
    return "the token is refused, or has expired" if answer.error_code else None


def _tls_refusal(error: BaseException | None) -> str | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted, {error.verify_message}"
    return f"TLS fails, {error.reason or error}" if isinstance(error, ssl.SSLError) else None
