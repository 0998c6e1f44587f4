"""One HTTP/1.1 connection: one request at a time, and its response as a whole or as a stream.

The head of a response is bounded, and so is a whole body. A stream stops reading while too much is
pending. Nothing that a server sends can make us keep more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, cast

import httptools

from moorage.client.contract import Response
from moorage.client.errors import ClientError, UnavailableError, UnreadableError

HEAD_BYTES_MAX = 64 * 1024
WAITING_BYTES_MAX = 1024 * 1024  # of a stream, before reading stops


class ClientBounds(NamedTuple):
    """Bounds on the size and duration of responses."""

    body_bytes_max: int = 512 * 1024 * 1024
    error_bytes_max: int = 1024 * 1024
    connect_s: float = 10.0
    request_s: float = 60.0
    idle_stream_s: float = 150.0  # servers send a bookmark every minute
    idle_connection_s: float = 45.0  # shorter than servers wait, so that we close first


class ResponseStream:
    """The parts of a response as they arrive."""

    def __init__(self, connection: Connection, bounds: ClientBounds) -> None:
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
        self._timer = self._loop.call_later(self._idle_s, self._check_idle)

    def __aiter__(self) -> ResponseStream:
        return self

    async def __anext__(self) -> bytes:
        """Return the pending parts, also those before an error."""
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
        """Receive a part."""
        self._parts.append(data)
        self._waiting_bytes += len(data)
        self._heard_at = self._loop.time()
        if self._waiting_bytes > WAITING_BYTES_MAX and not self._is_paused:
            self._is_paused = True
            self._connection.pause_reading()
        self._wake()

    def end(self, error: ClientError | None = None) -> None:
        """End the stream."""
        self._has_ended = True
        self._error = self._error or error
        self._timer.cancel()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _check_idle(self) -> None:
        """End a stream on which nothing arrived for too long."""
        left_s = self._heard_at + self._idle_s - self._loop.time()
        if left_s > 0 or self._is_paused:
            self._timer = self._loop.call_later(max(left_s, 1.0), self._check_idle)
            return
        self.end(UnavailableError(f"no data for {self._idle_s:g} s"))
        self._connection.abort()


class Connection(asyncio.Protocol):
    """A connection for one request at a time."""

    def __init__(self, bounds: ClientBounds, on_free: Callable[[Connection], None]) -> None:
        self._bounds = bounds
        self._on_free = on_free
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._response: asyncio.Future[Response] | None = None
        self._opening: asyncio.Future[ResponseStream] | None = None
        self._stream: ResponseStream | None = None
        # One timer for many requests: it looks whether the one of now is late.
        self._timer: asyncio.TimerHandle | None = None
        self._due_s: float | None = None  # of the pending response
        self.is_open = False
        self.is_reused = False
        self.has_heard = False  # any byte of the pending response
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

    # --- requests ---------------------------------------------------------------------------------

    def send(self, head: bytes) -> asyncio.Future[Response]:
        """Send a request and return the future response."""
        response = self._response = self._loop.create_future()
        self._send(head)
        return response

    def open_stream(self, head: bytes) -> asyncio.Future[ResponseStream]:
        """Send a request and return the future stream of its response."""
        opening = self._opening = self._loop.create_future()
        self._send(head)
        return opening

    def _send(self, head: bytes) -> None:
        self._reset()
        self.has_heard = False
        self._due_s = self._loop.time() + self._bounds.request_s
        if self._timer is None:
            self._timer = self._loop.call_at(self._due_s, self._check_late)
        assert self._transport is not None
        self._transport.write(head)

    def abort(self) -> None:
        """Close immediately."""
        self.is_open = False
        self._due_s = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        """Let the server wait."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # --- asyncio's callbacks ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the connection."""
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """Parse bytes."""
        self.has_heard = True
        if self._status == 0:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(UnreadableError(f"the answer is no HTTP: {error}"))
        if self._status == 0 and self._head_bytes > HEAD_BYTES_MAX:
            self._fail(UnreadableError(f"the response head exceeds {HEAD_BYTES_MAX} bytes"))

    def eof_received(self) -> bool:
        """End a response without a length."""
        if self._response is not None and self._status and not self._has_length:
            self._is_last = True
            self.on_message_complete()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Fail the pending request."""
        self.is_open = False
        why = f": {error}" if error else ""
        self._fail(UnavailableError(f"the connection was closed{why}"))
        self._on_free(self)

    # --- the parser's callbacks -------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header."""
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
        """Open the stream, if one was requested."""
        self._status = self._parser.get_status_code()
        self._head_bytes = 0
        if self._opening is not None and self._status == 200:
            self._due_s = None
            self._stream = ResponseStream(self, self._bounds)
            if not self._opening.done():
                self._opening.set_result(self._stream)
            self._opening = None

    def on_body(self, data: bytes) -> None:
        """Receive a part of the body."""
        if self._stream is not None:
            self._stream.feed(data)
            return
        self._parts.append(data)
        self._body_bytes += len(data)
        bounds = self._bounds
        bytes_max = bounds.body_bytes_max if self._status < 400 else bounds.error_bytes_max
        if self._body_bytes > bytes_max:
            self._fail(UnreadableError(f"the response exceeds {bytes_max} bytes"))

    def on_message_complete(self) -> None:
        """Deliver the response and free the connection."""
        if self._status < 200:  # the final response is still to come
            self._reset()
            return
        if self._stream is not None:
            self._stream.end()
            self._stream = None
        else:
            body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._settle(Response(self._status, body, self._retry_after, self._warnings))
        self._due_s = None
        if self._is_last:
            self.abort()
        else:
            self.is_reused = True
            self.free_since = self._loop.time()
            self._on_free(self)

    # --- internals --------------------------------------------------------------------------------

    def _settle(self, response: Response) -> None:
        waiting, self._response = self._response, None
        opening, self._opening = self._opening, None
        if waiting is not None and not waiting.done():
            waiting.set_result(response)
        elif opening is not None and not opening.done():
            opening.set_exception(StreamRefusedError(response))

    def _fail(self, error: ClientError) -> None:
        if self._stream is not None:
            self._stream.end(error)
            self._stream = None
        waiting, self._response = self._response, None
        opening, self._opening = self._opening, None
        for future in (waiting, opening):
            if future is not None and not future.done():
                future.set_exception(error)
        self.abort()

    def _check_late(self) -> None:
        """Fail a request that has waited for too long; look again later at one that has not."""
        self._timer = None
        if self._due_s is None:
            return
        if self._loop.time() < self._due_s:
            self._timer = self._loop.call_at(self._due_s, self._check_late)
            return
        self._fail(UnavailableError(f"no response within {self._bounds.request_s:g} s", code=504))


class StreamRefusedError(Exception):
    """The server responded to a stream request with an error."""

    def __init__(self, answer: Response) -> None:
        super().__init__()
        self.answer = answer
