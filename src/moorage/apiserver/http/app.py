"""The ASGI application: bounded bodies, gzip, streams and timeouts."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    MutableMapping,
)
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, Protocol
from urllib.parse import parse_qsl

from msgspec.structs import replace

from moorage.apiserver.http.deadlines import Deadlines
from moorage.apiserver.http.flow_control import SharedBytes
from moorage.apiserver.http.messages import Request, Response, StreamingResponse
from moorage.apiserver.http.metrics import Metrics
from moorage.apiserver.http.response_encoder import error_response
from moorage.apiserver.http.router import Router
from moorage.apiserver.http.status import (
    StatusError,
    bad_request,
    timed_out,
    too_large,
    too_many_requests,
)
from moorage.apiserver.settings import Limits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Upstream = Callable[[bytes], Awaitable[None]]

GZIP_FROM_BYTES = 128 * 1024
GZIP_LEVEL = 1
QUERY_FIELDS_MAX = 100
REPEATED_QUERY_BYTES_MAX = 256
REPEATED_HEADER_BYTES_MAX = 128  # less than tokens have

TakeOver = Callable[[], tuple[asyncio.StreamReader, asyncio.StreamWriter]]

PEER = "moorage.peer"  # the key of the client's certificate in a scope
TAKE_OVER = "moorage.take_over"  # the key of the function that hands over the connection
# The key of a function that sends a whole response at once: (status, headers, body) -> success. It
# fails while the client is slow.
RESPOND = "moorage.respond"
READ_BYTES = 64 * 1024
PIECE_BYTES = 64 * 1024
STALLED_S = 60.0


class Handler(Protocol):
    """Something that handles requests: the router, or the page alone."""

    metrics: Metrics

    async def handle(self, request: Request) -> Response | StreamingResponse:
        """Return the response to a request; never raises."""
        ...


class Application:
    """Serves a handler over ASGI."""

    def __init__(self, handler: Handler, limits: Limits = Limits()) -> None:  # noqa: B008
        self.handler = handler
        self.limits = limits
        self._metrics = handler.metrics
        self._stopping = asyncio.Event()
        self._bodies_bytes = 0
        self.deadlines = Deadlines(limits.request_s)
        self.unsent = SharedBytes(limits.unsent_bytes_max)

    @property
    def router(self) -> Router:
        """The router of an API server."""
        assert isinstance(self.handler, Router)
        return self.handler

    def stop_streams(self) -> None:
        """End all watches, so that a stopping server need not wait for them."""
        self._stopping.set()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return None
        # They lead back to the scope, which would stay until garbage is collected.
        respond, take_over = scope.pop(RESPOND, None), scope.pop(TAKE_OVER, None)
        request = _head(scope)
        answer = await self._answer(request, receive)
        if not isinstance(answer, StreamingResponse):
            return await self._send(answer, request, respond, send)
        if self._metrics.watches >= self.limits.watches_max:
            await _close(answer.chunks)
            answer = error_response(too_many_requests(5), request)
            return await self._send(answer, request, respond, send)
        if answer.upstream is not None:
            return await self._tunnel(answer, answer.upstream, take_over)
        return await self._stream(answer, receive, send)

    async def _answer(self, request: Request, receive: Receive) -> Response | StreamingResponse:
        try:
            with self.deadlines.begin():
                body = await self._body(request, receive)
                return await self.handler.handle(
                    replace(request, body=body, gone=partial(_gone, receive))
                )
        except TimeoutError:
            return error_response(timed_out(), request)
        except StatusError as error:
            return error_response(error, request)

    async def _body(self, request: Request, receive: Receive) -> bytes:
        bytes_max = self.limits.body_bytes_max
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length[:18]) > bytes_max:
            raise too_large(bytes_max)
        parts: list[bytes] = []
        size = 0
        try:
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise bad_request("the client went away")
                part = message.get("body", b"")
                size += len(part)
                self._bodies_bytes += len(part)
                if size > bytes_max:
                    raise too_large(bytes_max)
                if self._bodies_bytes > self.limits.bodies_bytes_max:
                    raise too_many_requests(1)
                parts.append(part)
                if not message.get("more_body", False):
                    return _unpacked(b"".join(parts), request, bytes_max)
        finally:
            self._bodies_bytes -= size

    async def _send(self, answer: Response, request: Request, respond: Any, send: Send) -> None:
        """Send a response, if there is room for what its client does not read at once."""
        user = answer.user
        if not self.unsent.has_room(user, len(answer.body)):
            answer = error_response(too_many_requests(1), request)
        body, headers = answer.body, [*answer.headers, ("Content-Type", answer.content_type)]
        if len(body) <= PIECE_BYTES and respond is not None:
            shown = b"" if request.method == "HEAD" else body
            headers.append(("Content-Length", str(len(body))))
            if respond(answer.status, _encoded(headers), shown):
                return
            headers.pop()
        with self.unsent.held(user, len(body)) as held:
            wants_gzip = "gzip" in request.headers.get("accept-encoding", "")
            is_packed = any(name == "Content-Encoding" for name, _ in answer.headers)
            if wants_gzip and not is_packed and len(body) >= GZIP_FROM_BYTES:
                body = await asyncio.to_thread(gzip.compress, body, GZIP_LEVEL)
                headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
            headers.append(("Content-Length", str(len(body))))
            if request.method == "HEAD":
                body = b""
            await send(_start(answer.status, headers))
            # In pieces, each of which waits until the client has read most of those before.
            for end in range(PIECE_BYTES, len(body), PIECE_BYTES):
                piece = body[end - PIECE_BYTES : end]
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                held.sent(len(piece))
            rest = body[(len(body) - 1) // PIECE_BYTES * PIECE_BYTES :] if body else body
            await send({"type": "http.response.body", "body": rest})

    # --- streams ------------------------------------------------------------------------------

    async def _stream(self, answer: StreamingResponse, receive: Receive, send: Send) -> None:
        await self._until_over(answer, self._send_chunks(answer, send), _gone(receive))
        if self._stopping.is_set():
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_chunks(self, answer: StreamingResponse, send: Send) -> None:
        """Send chunks, as long as there is room for what clients of the user do not read.

        A watch that finds none ends, as watches do at times: a client that reads goes on after the
        last event that it got.
        """
        headers = [*answer.headers, ("Content-Type", answer.content_type)]
        await send(_start(200, headers))
        # Clients wait for the headers before they wait for events.
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        async for chunk in answer.chunks:
            if not self.unsent.has_room(answer.user, len(chunk)):
                break
            with self.unsent.held(answer.user, len(chunk)):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tunnel(
        self, answer: StreamingResponse, upstream: Upstream, take_over: TakeOver
    ) -> None:
        """Copy bytes both ways until one side ends."""
        reader, writer = take_over()
        try:
            down, up = _carry_down(answer.chunks, writer), _carry_up(reader, upstream)
            await self._until_over(answer, down, up)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _until_over(
        self,
        answer: StreamingResponse,
        down: Coroutine[Any, Any, None],
        up: Coroutine[Any, Any, None],
    ) -> None:
        """Run both directions until one ends or the server stops."""
        self._metrics.watches += 1
        stopping = asyncio.create_task(self._stopping.wait())
        tasks = {asyncio.create_task(down), asyncio.create_task(up), stopping}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._metrics.watches -= 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await _close(answer.chunks)


def _head(scope: MutableMapping[str, Any]) -> Request:
    headers = tuple([_header(header) for header in scope["headers"]])
    text: bytes = scope.get("query_string", b"")
    query = _query(text) if len(text) > REPEATED_QUERY_BYTES_MAX else _repeated_query(text)
    return Request(
        scope["method"],
        scope["path"],
        query,
        dict(headers),
        certificate=scope.get(PEER),
        all_headers=headers,
        uri=_uri(scope),
        client=(scope.get("client") or ("",))[0],
    )


def _header(header: tuple[bytes, bytes]) -> tuple[str, str]:
    if len(header[0]) + len(header[1]) > REPEATED_HEADER_BYTES_MAX:
        return _decoded_header(header)
    return _repeated_header(header)


def _decoded_header(header: tuple[bytes, bytes]) -> tuple[str, str]:
    name, value = header
    return name.decode("latin-1").lower(), value.decode("latin-1")


# Clients repeat their headers.
_repeated_header = lru_cache(maxsize=1024)(_decoded_header)


def _query(text: bytes) -> Mapping[str, str]:
    """Return the fields of a query; of repeated fields the first one."""
    if not text:
        return {}
    fields = parse_qsl(text.decode("latin-1"), keep_blank_values=True, max_num_fields=None)
    return dict(reversed(fields[:QUERY_FIELDS_MAX]))


# Clients repeat their queries; cached values are never changed.
_repeated_query = lru_cache(maxsize=256)(_query)


def _uri(scope: MutableMapping[str, Any]) -> str:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string", b"")
    return (path + b"?" + query if query else path).decode("latin-1")


def _unpacked(body: bytes, request: Request, bytes_max: int) -> bytes:
    """Return a body, decompressed if it is gzip; the bound holds for the result."""
    if request.headers.get("content-encoding", "").lower() != "gzip":
        return body
    unpacking = zlib.decompressobj(wbits=31)
    try:
        whole = unpacking.decompress(body, bytes_max + 1)
    except zlib.error as error:
        raise bad_request(f"the body is not valid gzip: {error}") from None
    if len(whole) > bytes_max:
        raise too_large(bytes_max)
    if not unpacking.eof:
        raise bad_request("the body is not valid gzip: it is incomplete")
    if unpacking.unused_data:
        raise bad_request("the body is not valid gzip: something follows its end")
    return whole


async def _carry_down(chunks: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    async for chunk in chunks:
        writer.write(chunk)
        async with asyncio.timeout(STALLED_S):
            await writer.drain()


async def _carry_up(reader: asyncio.StreamReader, upstream: Upstream) -> None:
    while data := await reader.read(READ_BYTES):
        try:
            await upstream(data)
        except TimeoutError:
            return
        except OSError:
            continue  # The node takes no more, but its last bytes must still reach the client.


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _close(chunks: AsyncIterator[bytes]) -> None:
    close = getattr(chunks, "aclose", None)
    if close is not None:
        with suppress(RuntimeError):
            await close()


def _start(status: int, headers: list[tuple[str, str]]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": _encoded(headers)}


def _encoded(headers: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [
        _encoded_header(header) if len(header[1]) <= REPEATED_HEADER_BYTES_MAX else _plain(header)
        for header in headers
    ]


def _plain(header: tuple[str, str]) -> tuple[bytes, bytes]:
    name, value = header
    return name.lower().encode("latin-1"), value.encode("latin-1", "replace")


_encoded_header = lru_cache(maxsize=1024)(_plain)
