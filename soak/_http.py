"""HTTP/1.1 as campaigns and benchmarks need it: cheap, and nothing is tried twice.

A connection that breaks raises LostError: whether the server carried out the request is then
unknown.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import msgspec

ANSWER_S_MAX = 60.0
READ_BYTES = 2**18
LIMIT_BYTES = 2**26

JSON = "application/json"


class LostError(Exception):
    """The connection broke before the answer was there."""


class Address(NamedTuple):
    """Where a server listens on this machine, and how it is reached: with TLS or without."""

    port: int
    context: ssl.SSLContext | None = None


class Reply(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]  # with names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        """The tree of the body."""
        return msgspec.json.decode(self.body)


class Connection:
    """One connection, for one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: Address) -> Connection:
        """Return a connection, or raise LostError."""
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                streams = await asyncio.open_connection(
                    "127.0.0.1", address.port, ssl=address.context, limit=LIMIT_BYTES
                )
        except (OSError, TimeoutError) as error:
            raise LostError(str(error)) from None
        return cls(*streams)

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = JSON,
        accept: str = JSON,
        more: str = "",
    ) -> Reply:
        """Return the answer to a request."""
        self.send(request(method, path, encoded(body), media=media, accept=accept, more=more))
        return await self.answer(has_body=method != "HEAD")

    def send(self, data: bytes) -> None:
        """Send bytes, whatever they are."""
        self._writer.write(data)

    async def answer(self, *, has_body: bool = True) -> Reply:
        """Return the next answer."""
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                return await self._answer(has_body=has_body)
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            raise self._lost(error) from None

    async def _answer(self, *, has_body: bool) -> Reply:
        status, headers = await self.head()
        while status < 200:  # "100 Continue" is not the answer yet
            status, headers = await self.head()
        if not has_body or status in (204, 304):
            return Reply(status, headers, b"")
        if "content-length" in headers:
            body = await self._reader.readexactly(int(headers["content-length"]))
            return Reply(status, headers, body)
        if headers.get("transfer-encoding") == "chunked":
            return Reply(status, headers, b"".join([part async for part in self._parts()]))
        return Reply(status, headers, await self._reader.read())

    async def head(self) -> tuple[int, dict[str, str]]:
        """Return the status and the headers of the next answer."""
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines if line)
        return int(first.split(" ", 2)[1]), {k.lower(): v.strip() for k, _, v in fields}

    # --- watches ------------------------------------------------------------------------------

    async def watch(self, path: str) -> tuple[int, bytes]:
        """Begin a watch; return its status, and the body if it is refused."""
        self.send(request("GET", path))
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                status, headers = await self.head()
                if status != 200:
                    body = await self._reader.readexactly(int(headers["content-length"]))
                    return status, body
        except (OSError, EOFError, TimeoutError) as error:
            raise self._lost(error) from None
        return status, b""

    async def lines(self) -> AsyncIterator[list[bytes]]:
        """Yield the whole lines that have come, until the server ends the watch or is lost."""
        rest = b""
        try:
            async for part in self._parts():
                *lines, rest = (rest + part).split(b"\n")
                if lines:
                    yield lines
        except (OSError, EOFError) as error:
            raise self._lost(error) from None

    async def _parts(self) -> AsyncIterator[bytes]:
        """Yield the content of chunks, as much as there is at a time."""
        data = bytearray()
        while True:
            more = await self._reader.read(READ_BYTES)
            if not more:
                raise EOFError("in the midst of chunks")
            data += more
            content, used, is_end = _chunks(data)
            del data[:used]
            if content:
                yield content
            if is_end:
                return

    async def rest(self) -> AsyncIterator[bytes]:
        """Yield all bytes that come, as they are, until the server closes the connection."""
        try:
            while part := await self._reader.read(READ_BYTES):
                yield part
        except (OSError, EOFError) as error:
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> LostError:
        self.cut()
        return LostError(str(error))

    def close(self) -> None:
        """Close it, without waiting: also not until a server that reads nothing takes the rest."""
        if self._writer.transport.get_write_buffer_size():
            self.cut()
        else:
            self._writer.close()

    def cut(self) -> None:
        """Close it at once, whatever is under way."""
        self._writer.transport.abort()


def _chunks(data: bytearray) -> tuple[bytes, int, bool]:
    """Return the content of whole chunks, how many bytes they take, and whether one was last."""
    parts: list[bytes] = []
    place = 0
    while (end := data.find(b"\r\n", place)) >= 0:
        size = int(data[place:end], 16)
        after = end + 2 + size + 2
        if after > len(data):
            break
        place = after
        if size == 0:
            return b"".join(parts), place, True
        parts.append(bytes(data[end + 2 : end + 2 + size]))
    return b"".join(parts), place, False


def encoded(body: Any) -> bytes:
    """Return a body as bytes."""
    if body is None:
        return b""
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


def request(
    method: str,
    path: str,
    body: bytes = b"",
    *,
    media: str = JSON,
    accept: str = JSON,
    more: str = "",
) -> bytes:
    """Return the bytes of a request, with more lines of the head, if there are."""
    content = f"Content-Type: {media}\r\n" if body else ""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n{content}"
        f"{more}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("latin-1", "replace") + body
