"""Connections before they speak HTTP: who is let in, and what is expected of them.

    listener ─ accepted ─ too many? ─ first byte ─ TLS within its time ─ protocol
                                         │
                                         └ plain HTTP to a port with TLS: told so, as Go does

Nothing here waits for a client without a bound. A peer that is gone without a word is found by
TCP's own probes.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

LOG = logging.getLogger(__name__)

PAUSE_S = 0.5  # before accepting again, when files or memory are short
FAREWELL_S = 1.0  # for a client to say goodbye in its turn
HANDSHAKE = 0x16  # how a record of a TLS handshake begins
UNREAD_BYTES_MAX = 64 * 1024
PLAIN_HTTP = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"

# Each connection with TLS has a buffer of this size; asyncio's own are so large that a thousand
# watches that only wait would take a quarter of a gigabyte.
BUFFER_BYTES = 32 * 1024
sslproto.SSLProtocol.max_size = BUFFER_BYTES

_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Manners(NamedTuple):
    """What is expected of connections; times as kube-apiserver has them, where it has any."""

    connections_max: int = 20_000
    handshake_s: float = 10.0
    head_s: float = 32.0  # for the headers of a request
    head_bytes_max: int = 128 * 1024
    idle_s: float = 90.0  # between requests
    stalled_s: float = 60.0  # without taking anything of an answer
    probe_s: int = 30  # of silence, before TCP asks whether the peer is there
    stop_s: float = 10.0  # for requests that were begun when the server is told to stop


class Door:
    """Lets connections in, until it is closed; stands in for asyncio's server."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        protocol: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext | None,
        manners: Manners,
        count: Callable[[], int],
    ) -> None:
        self.sockets = tuple(sockets)
        self.turned_away = 0
        self._protocol = protocol
        self._context = context
        self._manners = manners
        self._count = count  # of connections that are let in
        self._entering: set[asyncio.Task[None]] = set()
        self._accepting = [asyncio.create_task(self._accept(listener)) for listener in sockets]

    def close(self) -> None:
        """Let nobody in any more; who is in stays."""
        for task in (*self._accepting, *self._entering):
            task.cancel()
        for listener in self.sockets:
            listener.close()

    async def wait_closed(self) -> None:
        """Return when nobody is on the doorstep."""
        await asyncio.gather(*self._accepting, *self._entering, return_exceptions=True)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno in _SHORT:
                    LOG.warning("no connection can be accepted: %s", error.strerror)
                    await asyncio.sleep(PAUSE_S)
                continue
            if self._count() + len(self._entering) >= self._manners.connections_max:
                self.turned_away += 1
                connection.close()
                continue
            task = loop.create_task(self._enter(connection))
            self._entering.add(task)
            task.add_done_callback(self._entering.discard)

    async def _enter(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            prepare(connection, self._manners)
            if self._context is None:
                await loop.connect_accepted_socket(self._protocol, connection)
                return
            async with asyncio.timeout(self._manners.handshake_s):
                first = await _first_byte(connection)
            if first and first[0] != HANDSHAKE and first.isalpha():
                _tell_plain_http(connection)
                connection.close()
                return
            await loop.connect_accepted_socket(
                self._protocol,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._manners.handshake_s,
                ssl_shutdown_timeout=FAREWELL_S,
            )
        except (OSError, TimeoutError):  # It is gone, too slow, or not trusted.
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise


async def _first_byte(connection: socket.socket) -> bytes:
    """Return the first byte that a client sends, and leave it there; nothing if it goes away."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)


def _tell_plain_http(connection: socket.socket) -> None:
    with suppress(OSError):  # What is not read makes the answer be lost.
        connection.recv(UNREAD_BYTES_MAX)
    with suppress(OSError):
        connection.send(PLAIN_HTTP)
        connection.shutdown(socket.SHUT_WR)


def prepare(connection: socket.socket, manners: Manners) -> None:
    """Have TCP notice a peer that is gone."""
    connection.setblocking(False)
    options = [
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    ]
    for name, value in (
        ("TCP_KEEPIDLE", manners.probe_s),
        ("TCP_KEEPINTVL", max(manners.probe_s // 3, 1)),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 2000 * manners.probe_s),
    ):
        if hasattr(socket, name):  # not every system has them
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    for level, option, value in options:
        with suppress(OSError):
            connection.setsockopt(level, option, value)


async def listen(address: str, port: int, backlog: int) -> list[socket.socket]:
    """Return sockets that listen at all addresses of a name, at one port; raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[socket.socket] = []
    try:
        for family, _, _, _, where in dict.fromkeys(found):
            listener = socket.socket(family, socket.SOCK_STREAM)
            listeners.append(listener)
            listener.setblocking(False)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # :: is all addresses, of the older kind as well
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
