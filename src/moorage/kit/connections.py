"""Connections before they speak HTTP: accept them, with bounds on what clients may do.

    listener ─ accepted ─ too many? ─ first byte ─ TLS within its time ─ protocol
                                         │
                                         └ plain HTTP to a port with TLS: answered as Go does

Nothing here waits for a client without a bound. TCP keep-alive finds peers that vanished.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

LOG = logging.getLogger(__name__)

PAUSE_S = 0.5  # before accepting again, when file descriptors or memory are short
FAREWELL_S = 1.0  # for a client to shut down TLS in its turn
HANDSHAKE = 0x16  # the first byte of a TLS handshake
UNREAD_BYTES_MAX = 64 * 1024
PLAIN_HTTP = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"

# Each TLS connection has a buffer of this size; asyncio's default is so large that a thousand idle
# watches would take a quarter of a gigabyte.
BUFFER_BYTES = 32 * 1024
sslproto.SSLProtocol.max_size = BUFFER_BYTES

_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class ConnectionLimits(NamedTuple):
    """Bounds on connections, with kube-apiserver's times where it has any."""

    connections_max: int = 20_000
    handshake_s: float = 10.0
    head_s: float = 32.0  # for the headers of a request
    head_bytes_max: int = 128 * 1024
    idle_s: float = 90.0  # between requests
    stalled_s: float = 60.0  # without reading anything of a response
    probe_s: int = 30  # of silence, before TCP probes the peer
    stop_s: float = 10.0  # for running requests when the server stops


class Listener:
    """Accepts connections until it is closed; replaces asyncio's server."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        protocol: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext | None,
        limits: ConnectionLimits,
        count: Callable[[], int],
    ) -> None:
        self.sockets = tuple(sockets)
        self.turned_away = 0
        self._protocol = protocol
        self._context = context
        self._limits = limits
        self._count = count  # of accepted connections
        self._entering: set[asyncio.Task[None]] = set()
        self._accepting = [asyncio.create_task(self._accept(listener)) for listener in sockets]

    def close(self) -> None:
        """Accept no more connections; those accepted stay open."""
        for task in (*self._accepting, *self._entering):
            task.cancel()
        for listener in self.sockets:
            listener.close()

    async def wait_closed(self) -> None:
        """Return when no connection is being accepted."""
        await asyncio.gather(*self._accepting, *self._entering, return_exceptions=True)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno in _SHORT:
                    LOG.warning("cannot accept connections: %s", error.strerror)
                    await asyncio.sleep(PAUSE_S)
                continue
            if self._count() + len(self._entering) >= self._limits.connections_max:
                self.turned_away += 1
                connection.close()
                continue
            task = loop.create_task(self._enter(connection))
            self._entering.add(task)
            task.add_done_callback(self._entering.discard)

    async def _enter(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            prepare(connection, self._limits)
            if self._context is None:
                await loop.connect_accepted_socket(self._protocol, connection)
                return
            async with asyncio.timeout(self._limits.handshake_s):
                first = await _first_byte(connection)
            if first and first[0] != HANDSHAKE and first.isalpha():
                _answer_plain_http(connection)
                connection.close()
                return
            await loop.connect_accepted_socket(
                self._protocol,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.handshake_s,
                ssl_shutdown_timeout=FAREWELL_S,
            )
        except (OSError, TimeoutError):  # The client is gone, too slow, or not trusted.
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise


async def _first_byte(connection: socket.socket) -> bytes:
    """Peek at the first byte that a client sends; return nothing if it goes away."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(connection, readable.set)
    except NotImplementedError:  # Windows: there, plain HTTP is no handshake, and gets no answer
        return bytes([HANDSHAKE])
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)


class StreamConnections:
    """The connections of a listener that are served on streams, each by a task of its own."""

    def __init__(self, serve: Serve, bytes_max: int) -> None:
        """Read at most so many bytes ahead of what is consumed."""
        self._serve, self._bytes_max = serve, bytes_max
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def protocol(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        reader = asyncio.StreamReader(limit=self._bytes_max)
        return asyncio.StreamReaderProtocol(reader, self._begin)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """End all that are open."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _answer_plain_http(connection: socket.socket) -> None:
    with suppress(OSError):  # unread data would reset it and lose the answer
        connection.recv(UNREAD_BYTES_MAX)
    with suppress(OSError):
        connection.send(PLAIN_HTTP)
        connection.shutdown(socket.SHUT_WR)


def prepare(connection: socket.socket, limits: ConnectionLimits) -> None:
    """Make a connection non-blocking and let TCP notice a peer that is gone."""
    connection.setblocking(False)
    options = [
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    ]
    for name, value in (
        ("TCP_KEEPIDLE", limits.probe_s),
        ("TCP_KEEPINTVL", max(limits.probe_s // 3, 1)),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 2000 * limits.probe_s),
    ):
        if hasattr(socket, name):  # missing on some systems
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    for level, option, value in options:
        with suppress(OSError):
            connection.setsockopt(level, option, value)


async def listen(address: str, port: int, backlog: int) -> list[socket.socket]:
    """Return sockets that listen at all addresses of a name, at one port, or raise OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[socket.socket] = []
    try:
        for family, _, _, _, where in dict.fromkeys(found):
            listener = socket.socket(family, socket.SOCK_STREAM)
            listeners.append(listener)
            listener.setblocking(False)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # :: means all addresses, IPv4 as well
                only = 0 if address == "::" else 1
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
            listener.bind((where[0], port, *where[2:]))
            port = port or listener.getsockname()[1]
            listener.listen(backlog)
    except OSError as error:
        for listener in listeners:
            listener.close()
        raise OSError(error.errno, f"{address}:{port}: {error.strerror}") from None
    return listeners
