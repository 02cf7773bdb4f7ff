"""The worker's web server: Faust's, with bounds on connections.

Each connection costs the event loop time and takes a file descriptor, which Kafka and snapshots
need as well, even if its client never sends a request.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket

from aiohttp.web import AppRunner, BaseSite
from faust.types import AppT
from faust.web.drivers.aiohttp import Web

from faust_oslrau.app.errors import SettingsError

from .limits import Turns

logger = logging.getLogger(__name__)

# Far more than probes, Prometheus and people need.
_MOST_CONNECTIONS = 256
_NEW_PER_SECOND = 150
_RETRY_SECONDS = 1.0


class BoundedWeb(Web):
    """Faust's web server on a `BoundedSite`."""

    logger = logging.getLogger("faust.web")  # otherwise one of this module's name

    def __init__(self, app: AppT) -> None:
        super().__init__(app)
        # No page reads what a request brings, so the rest of it is not waited for.
        self._runner = AppRunner(self.web_app, access_log=None, lingering_time=0)

    def _new_transport_tcp(self) -> BaseSite:
        return BoundedSite(self._runner, self.app.conf.web_bind, self.app.conf.web_port)


class BoundedSite(BaseSite):
    """Accepts connections one by one, and no more each second than the worker can spare time for.

    If there are too many, the oldest is closed: idle ones must not keep probes out.
    """

    def __init__(self, runner: AppRunner, host: str, port: int) -> None:
        super().__init__(runner)
        self._host = host
        self._port = port
        self._turns = Turns(_NEW_PER_SECOND)
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []

    @property
    def name(self) -> str:
        """The address."""
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        """Listen; raises SettingsError if the address cannot be used."""
        await super().start()
        try:
            await self._listen()
        except OSError as error:
            raise SettingsError(self._refusal(error)) from None
        self._accepting = [asyncio.create_task(self._accept(each)) for each in self._sockets]

    async def stop(self) -> None:
        """Accept no more connections."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for listening in self._sockets:
            listening.close()
        await super().stop()

    async def _listen(self) -> None:
        for family, address in await _addresses(self._host, self._port):
            listening = socket.create_server(address, family=family, backlog=self._backlog)
            listening.setblocking(False)
            self._sockets.append(listening)

    def _refusal(self, error: OSError) -> str:
        address = f"{self._host}:{self._port}"
        if error.errno == errno.EADDRINUSE:
            return f"setting web_port: expected a free port, {address} is taken"
        return f"setting web_host: expected an address to listen on, {address}: {error.strerror}"

    async def _accept(self, listening: socket.socket) -> None:
        loop, server = asyncio.get_running_loop(), self._runner.server
        if server is None:
            raise RuntimeError("the runner has not been set up")
        while True:
            await asyncio.sleep(self._turns.take())
            try:
                connection, _ = await loop.sock_accept(listening)
                await loop.connect_accepted_socket(server, connection)
            except OSError as error:
                logger.warning("no connection to the pages can be accepted: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
            self._close_oldest()

    def _close_oldest(self) -> None:
        """Close the oldest connections beyond the most that are allowed."""
        connections = self._runner.server.connections if self._runner.server else []
        if len(connections) <= _MOST_CONNECTIONS:
            return
        transports = [each.transport for each in connections]
        live = [each for each in transports if each is not None and not each.is_closing()]
        for transport in live[: max(0, len(live) - _MOST_CONNECTIONS)]:
            transport.abort()


async def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    """Return the addresses of a host, each once."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list({(family, (str(address[0]), port)): None for family, *_, address in found})
