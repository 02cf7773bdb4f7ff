"""Whether a broker refuses a client for good, which waiting would not change."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from faust_oslrau.app.errors import BrokerError

# Brokers take a moment to refuse a password, so that guessing is slow.
_MILLISECONDS = 10_000
_UNFIT = (IllegalSaslStateError, UnsupportedSaslMechanismError)
_REFUSED = (AuthenticationFailedError, SaslAuthenticationFailed)


async def check_access(client_arguments: Mapping[str, Any]) -> None:
    """Return where a broker lets us in, and where none answers at all.

    aiokafka's clients do not tell a wrong password from a broker that is away.

    Raises
    ------
    BrokerError
        A broker refuses the credentials, or we refuse its certificate.
    """
    arguments = dict(client_arguments)
    for host, port, _ in collect_hosts(arguments.pop("bootstrap_servers")):
        reason = await _refusal(host, port, arguments)
        if reason is not None:
            raise BrokerError(f"no access to the Kafka broker at {host}:{port}: {reason}")


async def _refusal(host: str, port: int, arguments: Mapping[str, Any]) -> str | None:
    try:
        connection = await create_conn(host, port, request_timeout_ms=_MILLISECONDS, **arguments)
    except _UNFIT as error:
        return f"{type(error).__name__} for {arguments['sasl_mechanism']}"
    except _REFUSED as error:
        return f"{error.args[0] if error.args else 'the password is refused'}"
    except (TimeoutError, KafkaError, OSError) as error:
        # Its alert may come after the handshake: a certificate of ours that it does not take.
        return _tls_refusal(error) or _tls_refusal(error.__cause__)
    connection.close()
    return None


def _tls_refusal(error: BaseException | None) -> str | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted, {error.verify_message}"
    return f"TLS fails, {error.reason or error}" if isinstance(error, ssl.SSLError) else None
