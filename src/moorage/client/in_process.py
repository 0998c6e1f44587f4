"""The transport to a server in this process: calls its ASGI application, without sockets.

A watch is a call that goes on; its events are queued up to a bound, then the server waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

from moorage.client.contract import Request, Response
from moorage.client.errors import UnavailableError, error_of
from moorage.client.http.credentials import Credentials, StaticCredentials
from moorage.kit.bulkhead import FAULTS

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

PARTS_MAX = 256  # pending parts of a stream


class InProcessTransport:
    """Carries requests by calling an application.

    Every request has `headers`, which authenticate it, and those of `credentials`; `scope` is added
    to every ASGI scope.
    """

    def __init__(
        self,
        application: Application,
        *,
        headers: Mapping[str, str] | None = None,
        scope: Mapping[str, Any] | None = None,
        agent: str = "moorage",
        credentials: Credentials | None = None,
    ) -> None:
        self._application = application
        self._credentials = credentials or StaticCredentials()
        fixed = {"user-agent": agent, "accept": "application/json", **(headers or {})}
        self._headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in fixed.items()
        ]
        self._scope = dict(scope or {})
        self._calls: set[asyncio.Task[None]] = set()

    async def send(self, request: Request) -> Response:
        """Return the response to a request."""
        status, retry_after = 0, ""
        warnings: tuple[str, ...] = ()
        parts: list[bytes] = []

        is_sent = False

        async def receive() -> Message:
            nonlocal is_sent
            if is_sent:  # a streaming server checks whether the client is gone
                await asyncio.get_running_loop().create_future()
            is_sent = True
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status, retry_after, warnings
            if message["type"] == "http.response.start":
                status = message["status"]
                for name, value in message.get("headers", ()):
                    if name == b"retry-after":
                        retry_after = value.decode("latin-1")
                    elif name == b"warning":
                        warnings += (value.decode("latin-1"),)
            else:
                parts.append(message.get("body", b""))

        await self._application(await self._scope_of(request), receive, send)
        if not status:
            raise UnavailableError("the server did not answer")
        return Response(
            status, parts[0] if len(parts) == 1 else b"".join(parts), retry_after, warnings
        )

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Return the parts of a response as they arrive."""
        parts = _Parts()
        scope = await self._scope_of(request)
        call = asyncio.create_task(
            self._called(self._application(scope, parts.receive, parts.send), parts)
        )
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        try:
            status = await parts.status
            if status != 200:
                body = b"".join([part async for part in parts])
                raise error_of(status, body, parts.retry_after)
            yield parts
        finally:
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

    async def renew(self) -> bool:
        """Get new credentials, if there are any."""
        return await self._credentials.renew()

    async def close(self) -> None:
        """End all streams."""
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def _called(self, call: Awaitable[None], parts: _Parts) -> None:
        try:
            await call
        except asyncio.CancelledError:
            parts.end(UnavailableError("the client is closed"))
            raise
        except Exception as error:
            FAULTS.note("serving in this process", "a stream", error, "ends")
            parts.end(UnavailableError("the server failed"))
        else:
            parts.end()

    async def _scope_of(self, request: Request) -> dict[str, Any]:
        headers = self._headers
        auth = self._credentials.current or await self._credentials.fetch()
        if auth.headers:
            headers = [*headers, *_headers_of(auth.headers)]
        if request.method != "GET":
            headers = [*headers, (b"content-type", request.content_type.encode("latin-1"))]
        path = request.path
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "http",
            "path": unquote(path) if "%" in path else path,
            "raw_path": path.encode("latin-1"),
            "query_string": request.query.encode("latin-1"),
            "headers": headers,
            **self._scope,
        }


def _headers_of(lines: str) -> list[tuple[bytes, bytes]]:
    """Return header lines as ASGI has them."""
    pairs = (line.split(": ", 1) for line in lines.split("\r\n") if line)
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs]


class _Parts:
    """The pending parts of a stream."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.status: asyncio.Future[int] = loop.create_future()
        self.retry_after = ""
        self._parts: list[bytes] = []
        self._has_more = asyncio.Event()  # or has ended
        self._has_space = asyncio.Event()
        self._has_ended = False
        self._error: UnavailableError | None = None
        self._is_requested = False

    def __aiter__(self) -> _Parts:
        return self

    async def __anext__(self) -> bytes:
        await self._has_more.wait()
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            self._has_space.set()
            if not self._has_ended:
                self._has_more.clear()
            return data
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    async def receive(self) -> Message:
        if self._is_requested:
            await asyncio.Future()  # the client disconnects by cancelling
        self._is_requested = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            for name, value in message.get("headers", ()):
                if name == b"retry-after":
                    self.retry_after = value.decode("latin-1")
            if not self.status.done():
                self.status.set_result(message["status"])
        elif message.get("body"):
            while len(self._parts) >= PARTS_MAX:
                self._has_space.clear()
                await self._has_space.wait()
            self._parts.append(message["body"])
            self._has_more.set()

    def end(self, error: UnavailableError | None = None) -> None:
        self._has_ended = True
        self._error = error
        if not self.status.done():
            self.status.set_exception(error or UnavailableError("the server did not answer"))
        self._has_more.set()
