"""Asks a broker how many brokers it knows, which tells whether a cluster is ready."""

from __future__ import annotations

import socket
import struct

from .ports import LOOPBACK

_METADATA, _VERSION, _CORRELATION = 3, 1, 77
_NO_CLIENT_ID, _NO_TOPICS = -1, 0


def known_brokers(port: int, timeout: float = 2.0) -> int:
    """Return how many brokers the broker on this port knows, including itself; 0 if it is down."""
    request = struct.pack(">hhihi", _METADATA, _VERSION, _CORRELATION, _NO_CLIENT_ID, _NO_TOPICS)
    try:
        with socket.create_connection((LOOPBACK, port), timeout) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as reply:
                _size, correlation, brokers = struct.unpack(">iii", reply.read(12))
    except (OSError, struct.error):
        return 0
    # Another server may have taken the port of a stopped broker, and answers something else.
    return int(brokers) if correlation == _CORRELATION else 0
