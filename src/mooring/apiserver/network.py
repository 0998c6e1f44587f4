"""The application on the network, by uvicorn; the only module but tls that imports it."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from mooring.apiserver.app import Application
from mooring.apiserver.tls import PeerProtocol

STOP_S = 5
BACKLOG = 1024
KEEP_ALIVE_S = 75


class NetworkServer(uvicorn.Server):
    """Listens, until it is told to stop; then answers what was begun, and returns."""

    def __init__(self, application: Application, address: str, port: int) -> None:
        self._application = application
        super().__init__(
            uvicorn.Config(
                application,
                host=address,
                port=port,
                http=PeerProtocol,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                ws="none",
                proxy_headers=False,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=STOP_S,
            )
        )

    @property
    def port(self) -> int:
        """The port that it listens at."""
        listening = self.servers[0].sockets[0]
        number: int = listening.getsockname()[1]
        return number

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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all watches first, as they would not end by themselves."""
        self._application.stop_streams()
        await super().shutdown(sockets)
