"""The HTTP server: uvicorn, with bounds on slow clients, TLS and upgrades.

Only this module imports uvicorn.

headers         must arrive within a time and a size (431), with one Host (400)
bodies          that go on after the response end the connection
responses       must be read; a client that reads nothing for a while is cut off
certificates    of clients go into the scope of each request, because uvicorn drops them
upgrades        hand the connection over to another protocol

TLS verifies client certificates, which are optional. It ignores their validity period: an expired
one is refused by authentication with 401, as in Kubernetes. A certificate of another authority ends
the handshake, because Python's TLS cannot accept it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
import threading
from asyncio import TimerHandle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from moorage.apiserver.http.app import PEER, RESPOND, TAKE_OVER, Application
from moorage.apiserver.http.response_writer import WriteBuffer, respond
from moorage.kit.connections import ConnectionLimits, Listener, listen
from moorage.kit.extras import optional_imports

with optional_imports():
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

TOO_LARGE = b"431 Request Header Fields Too Large"
NO_HOST = b"400 Bad Request: missing required Host header"
MANY_HOSTS = b"400 Bad Request: too many Host headers"


RAW_BYTES_MAX = 64 * 1024  # buffered until they are read


class Connection(HttpToolsProtocol):
    """One HTTP connection."""

    def __init__(self, manners: ConnectionLimits, **given: Any) -> None:
        super().__init__(**given)
        self._manners = manners
        self._peer: bytes | None = None
        self._head_timer: TimerHandle | None = None
        self._stalled_timer: TimerHandle | None = None
        self._has_head_begun = False
        self._head_bytes = 0
        self._is_refused = False
        self.timeout_keep_alive = manners.idle_s  # type: ignore[assignment]  # any number will do

    # --- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection, after the TLS handshake."""
        super().connection_made(WriteBuffer(transport))  # type: ignore[arg-type]
        connection: Any = transport.get_extra_info("ssl_object")
        self._peer = None if connection is None else connection.getpeercert(binary_form=True)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        self._end_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take data of the client."""
        if self._is_refused or self.transport.is_closing():
            return
        super().data_received(data)
        if not self._is_between_requests():
            self._head_bytes = 0
            self._end_head_timer()
            return
        self._head_bytes += len(data)
        if self._head_bytes > self._manners.head_bytes_max:
            self._refuse_head(TOO_LARGE)
        else:
            self._await_head()

    def on_response_complete(self) -> None:
        """End a request; end the connection too if the body is incomplete."""
        if self.cycle is not None and self.cycle.more_body and not self.pipeline:
            self.transport.close()
        super().on_response_complete()
        if self._has_head_begun:  # Its first bytes came with the previous request.
            self._await_head()

    def take_over(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return the connection itself, after an upgrade."""
        self._end_timers()
        transport: asyncio.Transport = self.transport.bare  # type: ignore[attr-defined]
        reader = asyncio.StreamReader(limit=RAW_BYTES_MAX)
        protocol = _TakenOver(reader, self)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        return reader, asyncio.StreamWriter(transport, protocol, reader, self.loop)

    # --- the head of a request

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._has_head_begun = True
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope[PEER] = self._peer
        scope[TAKE_OVER] = self.take_over

    def on_headers_complete(self) -> None:
        """Answer a request, unless its headers are too large or have not one Host, as in Go."""
        self._has_head_begun = False
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        hosts = sum(name == b"host" for name, _ in self.headers)
        if size > self._manners.head_bytes_max:
            self._refuse_head(TOO_LARGE)
        elif hosts > 1:
            self._refuse_head(MANY_HOSTS)
        elif not hosts and self.parser.get_http_version() == "1.1":
            self._refuse_head(NO_HOST)
        else:
            super().on_headers_complete()
            scope: dict[str, Any] = self.scope  # type: ignore[assignment]
            scope[RESPOND] = partial(respond, self.cycle)

    def on_body(self, body: bytes) -> None:
        """Take a chunk of a body."""
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is complete."""
        if not self._is_refused:
            super().on_message_complete()

    def _is_between_requests(self) -> bool:
        return not self._is_refused and (self.cycle is None or self.cycle.response_complete)

    def _refuse_head(self, why: bytes) -> None:
        self._is_refused = True
        self._end_timers()
        lines = (
            b"HTTP/1.1 " + why,
            b"Content-Type: text/plain; charset=utf-8",
            b"Connection: close",
            b"",
            why,
        )
        self.transport.write(b"\r\n".join(lines))
        self.transport.close()

    # --- time

    def _await_head(self) -> None:
        if self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self._manners.head_s, self.transport.close)

    def pause_writing(self) -> None:
        """Wait for a slow client, up to a bound."""
        super().pause_writing()
        if self._stalled_timer is None:
            after_s = self._manners.stalled_s
            self._stalled_timer = self.loop.call_later(after_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Resume writing."""
        if self._stalled_timer is not None:
            self._stalled_timer.cancel()
            self._stalled_timer = None
        super().resume_writing()

    def _end_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_timers(self) -> None:
        self._end_head_timer()
        self._unset_keepalive_if_required()
        if self._stalled_timer is not None:
            self._stalled_timer.cancel()
            self._stalled_timer = None


class _TakenOver(asyncio.StreamReaderProtocol):
    """The streams of an upgraded connection; its end counts as the end of the HTTP connection."""

    def __init__(self, reader: asyncio.StreamReader, before: Connection) -> None:
        super().__init__(reader)
        self._before = before

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        super().connection_lost(exc)
        self._before.connection_lost(exc)


# --- listening ------------------------------------------------------------------------------------

with optional_imports():
    import uvicorn

BACKLOG = 1024
OTHER_FILES = 256  # besides connections


def allow_files(wanted: int) -> None:
    """Raise the limit of open files, as far as the system allows."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class NetworkServer(uvicorn.Server):
    """Listens until it is stopped; then answers pending requests and returns.

    A second stop does not wait for pending requests.
    """

    def __init__(
        self,
        application: Application,
        address: str,
        port: int,
        *,
        context: ssl.SSLContext | None = None,
        manners: ConnectionLimits = ConnectionLimits(),  # noqa: B008
        handles_signals: bool = True,
    ) -> None:
        """One server of a process handles its signals."""
        self._handles_signals = handles_signals
        self._application = application
        self._where = (address, port)
        self.context = context
        self._manners = manners
        # Clients that send nonsense get an error; they must not fill our log.
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
    def door(self) -> Listener:
        """The listener."""
        door: Any = self.servers[0]
        assert isinstance(door, Listener)
        return door

    @property
    def port(self) -> int:
        """The port of the listener."""
        number: int = self.door.sockets[0].getsockname()[1]
        return number

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, or raise OSError."""
        await self.lifespan.startup()
        allow_files(self._manners.connections_max + OTHER_FILES)
        listeners = sockets or await listen(*self._where, BACKLOG)
        connections = self.server_state.connections
        door: Any = Listener(
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
        """Let signals stop the server, and nothing else, so that callers can clean up."""
        is_main = threading.current_thread() is threading.main_thread()
        if not (is_main and self._handles_signals):
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
        """Stop; at once if it is stopping already."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all watches first, because they would not end by themselves."""
        self._application.stop_streams()
        await super().shutdown(sockets)


# --- TLS ------------------------------------------------------------------------------------------

NO_CHECK_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME


def tls_context(folder: Path) -> ssl.SSLContext:
    """Return the TLS context of a listener with the credentials in a folder."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    context.load_verify_locations(folder / "ca.crt")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags |= NO_CHECK_TIME
    context.set_alpn_protocols(["http/1.1"])
    return context
