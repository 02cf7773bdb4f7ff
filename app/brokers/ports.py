"""Free TCP ports of the loopback interface."""

from __future__ import annotations

import random
import socket

LOOPBACK = "127.0.0.1"
# Below Linux's ephemeral range (32768 and up), so that no outgoing connection takes the port of a
# node while it is down.
_CANDIDATES = range(20_000, 32_768)


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        # As the Java broker does: connections that linger in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen()
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    """Distinct ports, free at the moment of asking."""
    shuffled = random.SystemRandom().sample(_CANDIDATES, len(_CANDIDATES))
    free = (port for port in shuffled if is_free(port))
    return [next(free) for _ in range(count)]
