"""The application on the network, by uvicorn; only this module and `protocol` import it."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from mooring.apiserver.app import Application
from mooring.apiserver.protocol import Connection
from mooring.kit.connections import Door, Manners, listen
from mooring.kit.extras import optional_imports

with optional_imports():
    import uvicorn

BACKLOG = 1024
OTHER_FILES = 256  # besides connections


def allow_files(wanted: int) -> None:
    """Have this process open so many files, or as many as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class NetworkServer(uvicorn.Server):
    """Listens, until it is told to stop; then answers what was begun, and returns.

    Told a second time, it does not wait for what was begun.
    """

    def __init__(
        self,
        application: Application,
        address: str,
        port: int,
        *,
        context: ssl.SSLContext | None = None,
        manners: Manners = Manners(),  # noqa: B008
    ) -> None:
        self._application = application
        self._where = (address, port)
        self.context = context
        self._manners = manners
        # Whoever sends nonsense is told so; they must not fill our log with it.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        super().__init__(
            uvicorn.Config(
                application,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                ws="none",
                proxy_headers=False,
                timeout_graceful_shutdown=manners.stop_s,  # type: ignore[arg-type]
            )
        )

    @property
    def door(self) -> Door:
        """Where connections come in."""
        door: Any = self.servers[0]
        assert isinstance(door, Door)
        return door

    @property
    def port(self) -> int:
        """The port that it listens at."""
        number: int = self.door.sockets[0].getsockname()[1]
        return number

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; raises OSError if that cannot be."""
        await self.lifespan.startup()
        allow_files(self._manners.connections_max + OTHER_FILES)
        listeners = sockets or await listen(*self._where, BACKLOG)
        connections = self.server_state.connections
        door: Any = Door(
            listeners, self._connection, self.context, self._manners, connections.__len__
        )
        self.servers = [door]
        self.started = True

    def _connection(self) -> Connection:
        return Connection(
            self._manners,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Have signals stop the server, and nothing else: what is open is closed after it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop; at once, if that was asked for before."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all watches first, as they would not end by themselves."""
        self._application.stop_streams()
        await super().shutdown(sockets)
