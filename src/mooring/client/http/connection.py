"""One HTTP/1.1 connection: a request at a time, and its answer whole or in parts.

The head of an answer is bounded, and so is its body unless it is taken in parts; then reading
stops while too much waits to be taken. Nothing that a server sends can make us keep more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, cast

import httptools

from mooring.client.errors import ClientError, UnavailableError, UnreadableError
from mooring.client.transport import Answer

HEAD_BYTES_MAX = 64 * 1024
WAITING_BYTES_MAX = 1024 * 1024  # of a stream, before reading stops


class Bounds(NamedTuple):
    """How much an answer may be, and how long it may take."""

    body_bytes_max: int = 512 * 1024 * 1024
    error_bytes_max: int = 1024 * 1024
    connect_s: float = 10.0
    request_s: float = 60.0
    idle_stream_s: float = 150.0  # servers send a bookmark a minute
    idle_connection_s: float = 45.0  # less than servers wait, so that we close first


class Stream:
    """The parts of an answer, as they come."""

    def __init__(self, connection: Connection, bounds: Bounds) -> None:
        self._connection = connection
        self._idle_s = bounds.idle_stream_s
        self._loop = asyncio.get_running_loop()
        self._parts: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_paused = False
        self._has_ended = False
        self._error: ClientError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(self._idle_s, self._look)

    def __aiter__(self) -> Stream:
        """Return itself."""
        return self

    async def __anext__(self) -> bytes:
        """Return all that has come; what came before an error is still given."""
        while not self._parts:
            if self._error is not None:
                raise self._error
            if self._has_ended:
                raise StopAsyncIteration
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._waiting_bytes = 0
        if self._is_paused:
            self._is_paused = False
            self._connection.resume_reading()
        return data

    def feed(self, data: bytes) -> None:
        """Take a part."""
        self._parts.append(data)
        self._waiting_bytes += len(data)
        self._heard_at = self._loop.time()
        if self._waiting_bytes > WAITING_BYTES_MAX and not self._is_paused:
            self._is_paused = True
            self._connection.pause_reading()
        self._wake()

    def end(self, error: ClientError | None = None) -> None:
        """Take that no more comes."""
        self._has_ended = True
        self._error = self._error or error
        self._timer.cancel()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self) -> None:
        """End a stream on which nothing comes any more."""
        left_s = self._heard_at + self._idle_s - self._loop.time()
        if left_s > 0 or self._is_paused:
            self._timer = self._loop.call_later(max(left_s, 1.0), self._look)
            return
        self.end(UnavailableError(f"nothing came for {self._idle_s:g} s"))
        self._connection.abort()


class Connection(asyncio.Protocol):
    """A connection; whoever has it asks one thing at a time."""

    def __init__(self, bounds: Bounds, on_free: Callable[[Connection], None]) -> None:
        self._bounds = bounds
        self._on_free = on_free
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Answer] | None = None
        self._opening: asyncio.Future[Stream] | None = None
        self._stream: Stream | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.is_open = False
        self.is_reused = False
        self.has_heard = False  # of the answer that is awaited
        self.free_since = 0.0
        self._reset()

    def _reset(self) -> None:
        self._status = 0
        self._parts: list[bytes] = []
        self._body_bytes = 0
        self._head_bytes = 0
        self._retry_after = ""
        self._warnings: tuple[str, ...] = ()
        self._has_length = False
        self._is_last = False

    # --- asking -----------------------------------------------------------------------------------

    def ask(self, head: bytes) -> asyncio.Future[Answer]:
        """Send a request, and return what will be its answer."""
        self._reset()
        self.has_heard = False
        answer = self._answer = self._loop.create_future()
        self._timer = self._loop.call_later(self._bounds.request_s, self._on_timeout)
        assert self._transport is not None
        self._transport.write(head)
        return answer

    def open_stream(self, head: bytes) -> asyncio.Future[Stream]:
        """Send a request, and return what will be the parts of its answer."""
        self._reset()
        self.has_heard = False
        opening = self._opening = self._loop.create_future()
        self._timer = self._loop.call_later(self._bounds.request_s, self._on_timeout)
        assert self._transport is not None
        self._transport.write(head)
        return opening

    def abort(self) -> None:
        """Close at once."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        """Have the server wait."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take more of what the server sends."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # --- what asyncio tells -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take that the connection is there."""
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        self.has_heard = True
        if self._status == 0:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(UnreadableError(f"the answer is no HTTP: {error}"))
        if self._status == 0 and self._head_bytes > HEAD_BYTES_MAX:
            self._fail(UnreadableError(f"the head of the answer is beyond {HEAD_BYTES_MAX} bytes"))

    def eof_received(self) -> bool:
        """Take that the server sends no more; an answer without a length ends so."""
        if self._answer is not None and self._status and not self._has_length:
            self._is_last = True
            self.on_message_complete()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Take that the connection is gone."""
        self.is_open = False
        why = f": {error}" if error else ""
        self._fail(UnavailableError(f"the connection was closed{why}"))
        self._on_free(self)

    # --- what the parser tells --------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        match name.lower():
            case b"content-length" | b"transfer-encoding":
                self._has_length = True
            case b"retry-after":
                self._retry_after = value.decode("latin-1")
            case b"warning" if len(self._warnings) < 16:
                self._warnings += (value.decode("latin-1"),)
            case b"connection":
                self._is_last = value.lower() == b"close"

    def on_headers_complete(self) -> None:
        """Take that the head is over."""
        self._status = self._parser.get_status_code()
        self._head_bytes = 0
        if self._opening is not None and self._status == 200:
            self._stop_timer()
            self._stream = Stream(self, self._bounds)
            if not self._opening.done():
                self._opening.set_result(self._stream)
            self._opening = None

    def on_body(self, data: bytes) -> None:
        """Take a part of the body."""
        if self._stream is not None:
            self._stream.feed(data)
            return
        self._parts.append(data)
        self._body_bytes += len(data)
        bounds = self._bounds
        most = bounds.body_bytes_max if self._status < 400 else bounds.error_bytes_max
        if self._body_bytes > most:
            self._fail(UnreadableError(f"the answer is beyond {most} bytes"))

    def on_message_complete(self) -> None:
        """Take that the answer is whole."""
        if self._status < 200:  # there is another one to come
            self._reset()
            return
        if self._stream is not None:
            self._stream.end()
            self._stream = None
        else:
            body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            answer = Answer(self._status, body, self._retry_after, self._warnings)
            self._settle(answer)
        self._stop_timer()
        if self._is_last:
            self.abort()
        else:
            self.is_reused = True
            self.free_since = self._loop.time()
            self._on_free(self)

    # --- within -----------------------------------------------------------------------------------

    def _settle(self, answer: Answer) -> None:
        waiting, self._answer = self._answer, None
        opening, self._opening = self._opening, None
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
        elif opening is not None and not opening.done():
            opening.set_exception(RefusedError(answer))

    def _fail(self, error: ClientError) -> None:
        self._stop_timer()
        if self._stream is not None:
            self._stream.end(error)
            self._stream = None
        waiting, self._answer = self._answer, None
        opening, self._opening = self._opening, None
        for future in (waiting, opening):
            if future is not None and not future.done():
                future.set_exception(error)
        self.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timeout(self) -> None:
        self._fail(UnavailableError(f"no answer within {self._bounds.request_s:g} s", code=504))


class RefusedError(Exception):
    """A stream was refused with an answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer
