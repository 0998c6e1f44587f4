"""HTTP/1.1 by uvicorn, with bounds on what a client may take its time for.

headers         must be there within a time, and not be larger than a bound (431)
bodies          end the connection if they go on after the answer
answers         must be taken; who takes nothing for a while is cut off
certificates    go into the scope of each request, for uvicorn keeps them to itself
other protocols take the connection over, once a request was answered by an upgrade
"""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from typing import Any

from mooring.apiserver.app import PEER, TAKE_OVER
from mooring.apiserver.corking import CorkedTransport
from mooring.kit.connections import Manners
from mooring.kit.extras import optional_imports

with optional_imports():
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

TOO_LARGE = b"431 Request Header Fields Too Large"


RAW_BYTES_MAX = 64 * 1024  # that wait to be read


class Connection(HttpToolsProtocol):
    """One connection."""

    def __init__(self, manners: Manners, **given: Any) -> None:
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
        """Begin a connection; the handshake is over by now."""
        super().connection_made(CorkedTransport(transport))  # type: ignore[arg-type]
        connection: Any = transport.get_extra_info("ssl_object")
        self._peer = None if connection is None else connection.getpeercert(binary_form=True)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        self._end_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what a client sends."""
        if self._is_refused or self.transport.is_closing():
            return
        super().data_received(data)
        if not self._is_between_requests():
            self._head_bytes = 0
            self._end_head_timer()
            return
        self._head_bytes += len(data)
        if self._head_bytes > self._manners.head_bytes_max:
            self._refuse_head()
        else:
            self._await_head()

    def on_response_complete(self) -> None:
        """End a request; one whose body is still coming ends the connection, too."""
        if self.cycle is not None and self.cycle.more_body and not self.pipeline:
            self.transport.close()
        super().on_response_complete()
        if self._has_head_begun:  # It came together with the request before it.
            self._await_head()

    def take_over(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return the connection itself; no HTTP is spoken on it any more."""
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
        """Have a request answered, unless its headers are too large."""
        self._has_head_begun = False
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self._manners.head_bytes_max:
            self._refuse_head()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is there as a whole."""
        if not self._is_refused:
            super().on_message_complete()

    def _is_between_requests(self) -> bool:
        return not self._is_refused and (self.cycle is None or self.cycle.response_complete)

    def _refuse_head(self) -> None:
        self._is_refused = True
        self._end_timers()
        lines = (
            b"HTTP/1.1 " + TOO_LARGE,
            b"Content-Type: text/plain; charset=utf-8",
            b"Connection: close",
            b"",
            TOO_LARGE,
        )
        self.transport.write(b"\r\n".join(lines))
        self.transport.close()

    # --- time

    def _await_head(self) -> None:
        if self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self._manners.head_s, self.transport.close)

    def pause_writing(self) -> None:
        """Wait for the client to take what was written, but not for ever."""
        super().pause_writing()
        if self._stalled_timer is None:
            after_s = self._manners.stalled_s
            self._stalled_timer = self.loop.call_later(after_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
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
    """Streams of a connection; who counts connections is told of its end as of any other."""

    def __init__(self, reader: asyncio.StreamReader, before: Connection) -> None:
        super().__init__(reader)
        self._before = before

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        super().connection_lost(exc)
        self._before.connection_lost(exc)
