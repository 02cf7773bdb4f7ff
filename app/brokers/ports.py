"""Finds free TCP ports of the loopback interface."""

from __future__ import annotations

import random
import socket

LOOPBACK = "127.0.0.1"
# Below Linux's ephemeral range (32768 and up), so that no outgoing connection can occupy the port
# of a stopped node.
_CANDIDATES = range(20_000, 32_768)


def is_free(port: int) -> bool:
    """Tell whether a server can listen on the port now."""
    with socket.socket() as probe:
        # Like the Java broker, ignore connections in TIME_WAIT.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen()
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    """Return distinct ports that are free at this moment and that nobody has reserved."""
    shuffled = random.SystemRandom().sample(_CANDIDATES, len(_CANDIDATES))
    free = (port for port in shuffled if _is_unused(port))
    return [next(free) for _ in range(count)]


def reserve(port: int) -> socket.socket:
    """Keep a port from `free_ports` of all processes until the socket that is returned is closed.

    The socket does not listen: who knows the port can still open a server on it.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        reserved.bind((LOOPBACK, port))
    except OSError:
        reserved.close()
        raise
    return reserved


def _is_unused(port: int) -> bool:
    # Without SO_REUSEADDR, so that a port that is only reserved counts as used.
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
