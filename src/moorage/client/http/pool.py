"""The HTTP transport, with a pool of connections to one server.

A request takes the idle connection that was freed last; others close after a while. When all are in
use and the pool is full, requests wait in line. A watch has a connection of its own, outside of the
pool.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from msgspec import Struct

from moorage.client.contract import Request, Response
from moorage.client.errors import AccessError, ClientError, UnavailableError, error_of
from moorage.client.http.connection import (
    ClientBounds,
    Connection,
    ResponseStream,
    StreamRefusedError,
)
from moorage.client.http.credentials import Credentials, StaticCredentials

_ERRNO = re.compile(r"\[Errno (\d+)\]")
CONNECTIONS_MAX = 24  # each costs a handshake
KEEP_ALIVE = (
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 30),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 10),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
)


class Address(Struct, frozen=True):
    """The address of a server."""

    host: str
    port: int
    path: str = ""  # the prefix of all paths, for a server behind a proxy
    is_secure: bool = True

    @property
    def authority(self) -> str:
        """Host and port as the Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def address_of(url: str) -> Address:
    """Parse the URL of a server, or raise AccessError."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AccessError(f"server {url!r}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable():
        raise AccessError(f"server {url[:200]!r}: not a URL such as https://host:6443")
    is_secure = parts.scheme == "https"
    path = parts.path.rstrip("/")
    return Address(parts.hostname, port or (443 if is_secure else 80), path, is_secure)


class HttpTransport:
    """Carries requests to one server."""

    def __init__(
        self,
        address: Address,
        *,
        credentials: Credentials | None = None,
        server_name: str = "",
        agent: str = "moorage",
        bounds: ClientBounds = ClientBounds(),  # noqa: B008  # a value
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self._address = address
        self._credentials = credentials or StaticCredentials()
        self._server_name = server_name
        self._bounds = bounds
        self._connections_max = connections_max
        self._free: list[Connection] = []
        self._open: set[Connection] = set()
        self._streaming: set[Connection] = set()
        self._opening = 0
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._is_closed = False
        self._fixed = (
            f"Host: {address.authority}\r\nUser-Agent: {agent}\r\nAccept: application/json\r\n"
        )

    # --- requests ---------------------------------------------------------------------------------

    async def send(self, request: Request) -> Response:
        """Return the response to a request."""
        head = await self._bytes_of(request)
        while True:
            connection = await self._take()
            was_reused = connection.is_reused
            try:
                return await connection.send(head)
            except asyncio.CancelledError:
                connection.abort()  # nobody reads its response
                raise
            except UnavailableError:
                # The server may close an idle connection at any time. A safe request is sent
                # again; any other might take effect twice.
                if not (was_reused and request.is_safe and not connection.has_heard):
                    raise

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Return the parts of a response as they arrive."""
        head = await self._bytes_of(request)
        connection = await self._connect()
        self._streaming.add(connection)
        try:
            try:
                yield await connection.open_stream(head)
            except StreamRefusedError as error:
                response = error.answer
                raise error_of(response.status, response.body, response.retry_after) from None
        finally:
            self._streaming.discard(connection)
            connection.abort()

    async def renew(self) -> bool:
        """Get new credentials and close connections that used the old ones."""
        if not await self._credentials.renew():
            return False
        for connection in self._free:
            connection.abort()
        self._free.clear()
        return True

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        for connection in [*self._open, *self._streaming]:
            connection.abort()
        self._free.clear()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        await asyncio.sleep(0)  # lets asyncio close them

    async def _bytes_of(self, request: Request) -> bytes:
        auth = self._credentials.current or await self._credentials.fetch()
        path = f"{self._address.path}{request.path}"
        target = f"{path}?{request.query}" if request.query else path
        head = f"{request.method} {target} HTTP/1.1\r\n{self._fixed}{auth.headers}"
        if request.method == "GET":
            return f"{head}\r\n".encode("latin-1")
        length = f"Content-Type: {request.content_type}\r\nContent-Length: {len(request.body)}"
        return f"{head}{length}\r\n\r\n".encode("latin-1") + request.body

    # --- connections ------------------------------------------------------------------------------

    async def _take(self) -> Connection:
        """Return an idle or a new connection."""
        while True:
            if self._is_closed:
                raise UnavailableError("the client is closed")
            if self._free:
                connection = self._free.pop()
                if connection.is_open and not self._is_stale(connection):
                    return connection
                connection.abort()
            elif len(self._open) + self._opening < self._connections_max:
                return await self._open_another()
            elif (handed := await self._wait()) is not None and handed.is_open:
                return handed

    async def _open_another(self) -> Connection:
        self._opening += 1
        try:
            connection = await self._connect()
            self._open.add(connection)
            return connection
        except BaseException:
            self._hand_on(None)
            raise
        finally:
            self._opening -= 1

    async def _wait(self) -> Connection | None:
        """Wait in line for a connection; None if one may be opened instead."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[Connection | None] = loop.create_future()
        self._waiting.append(waiting)
        timer = loop.call_later(self._bounds.request_s, _give_up, waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self._hand_on(waiting.result())
            raise
        finally:
            timer.cancel()

    def _hand_on(self, connection: Connection | None) -> bool:
        """Give a free connection, or the room for one, to the first who waits, if anybody does."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(connection)
                return True
        if connection is not None:
            self._free.append(connection)
        return False

    def _on_free(self, connection: Connection) -> None:
        """Return a connection to the pool, or drop a closed one."""
        if connection not in self._open:
            return  # a stream's
        if connection.is_open and not self._is_closed:
            if not self._hand_on(connection):
                self._drop_idle()
        else:
            self._open.discard(connection)
            self._hand_on(None)

    def _drop_idle(self) -> None:
        """Close connections that were idle for too long; the oldest are in front."""
        while self._free and self._is_stale(self._free[0]):
            self._free.pop(0).abort()

    def _is_stale(self, connection: Connection) -> bool:
        """Return whether the server may be about to close an idle connection."""
        now = asyncio.get_running_loop().time()
        return connection.free_since + self._bounds.idle_connection_s < now

    async def _connect(self) -> Connection:
        if self._is_closed:
            raise UnavailableError("the client is closed")
        address, bounds = self._address, self._bounds
        auth = self._credentials.current or await self._credentials.fetch()
        context = auth.context if address.is_secure else None
        name = (self._server_name or address.host) if context is not None else None
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(bounds.connect_s):
                transport, connection = await loop.create_connection(
                    lambda: Connection(bounds, self._on_free),
                    address.host,
                    address.port,
                    ssl=context,
                    server_hostname=name,
                )
        except TimeoutError:
            raise self._unreachable(f"no connection within {bounds.connect_s:g} s") from None
        except ssl.SSLCertVerificationError as error:
            why = f"the server's certificate is not trusted: {error.verify_message}"
            raise self._unreachable(why) from None
        except OSError as error:
            raise self._unreachable(_reason(error)) from None
        _keep_alive(transport)
        return connection

    def _unreachable(self, why: str) -> ClientError:
        return UnavailableError(f"cannot reach {self._address.authority}: {why}")


def _reason(error: OSError) -> str:
    """Return why no connection is made; asyncio adds tuples, and joins several errors in a text."""
    numbers = dict.fromkeys(_ERRNO.findall(str(error)))
    return ", ".join(os.strerror(int(each)) for each in numbers) or error.strerror or str(error)


def _give_up(waiting: asyncio.Future[Connection | None]) -> None:
    if not waiting.done():
        error = UnavailableError("no connection became free in time", code=504)
        waiting.set_exception(error)


def _keep_alive(transport: asyncio.Transport) -> None:
    """Let the system notice a server that vanished."""
    found = transport.get_extra_info("socket")
    if found is None:
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for level, name, value in KEEP_ALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            found.setsockopt(level, option, value)


__all__ = ["Address", "ClientBounds", "HttpTransport", "ResponseStream", "address_of"]
