"""A small HTTP server for the status pages of a program: /metrics, /healthz, /readyz, /livez.

It has no TLS, so it listens on the loopback address by default. Requests are bounded in size, time
and number.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from mooring.kit.http_head import response
from mooring.kit.metrics import PROMETHEUS

PLAIN = "text/plain; charset=utf-8"
REQUEST_BYTES_MAX = 8 * 1024
REQUEST_S_MAX = 10.0
READERS_MAX = 32


class StatusPage(NamedTuple):
    """The response of a status page."""

    text: str
    code: int = 200
    type: str = PLAIN


StatusPages = Mapping[str, Callable[[], StatusPage]]

_GONE = StatusPage("404 page not found\n", 404)


class ListenAddress(NamedTuple):
    """A host and port to listen on; port 0 picks a free one."""

    host: str
    port: int


def parse_listen_address(text: str) -> ListenAddress | None:
    """Parse `HOST:PORT`; "0" gives None. Raises ValueError."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is no address such as 127.0.0.1:10259")
    return ListenAddress(host.strip("[]") or "127.0.0.1", int(port))


def health_pages(
    metrics: Mapping[str, Callable[[], str]], troubles: Callable[[], list[str]]
) -> StatusPages:
    """Return the pages of a program: its metrics by path, health, and readiness."""

    def ready() -> StatusPage:
        found = troubles()
        return (
            StatusPage("".join(f"{each}\n" for each in found), 503) if found else StatusPage("ok")
        )

    def counted(text: Callable[[], str]) -> Callable[[], StatusPage]:
        return lambda: StatusPage(text(), type=PROMETHEUS)

    return {
        **{path: counted(text) for path, text in metrics.items()},
        "/healthz": lambda: StatusPage("ok"),
        "/livez": lambda: StatusPage("ok"),
        "/readyz": ready,
    }


@asynccontextmanager
async def serving(place: ListenAddress, pages: StatusPages) -> AsyncIterator[str]:
    """Serve pages during a block and yield their URL; may raise OSError."""
    readers = asyncio.Semaphore(READERS_MAX)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with readers, asyncio.timeout(REQUEST_S_MAX):
                await _answer(reader, writer, pages)
        except (OSError, TimeoutError, asyncio.LimitOverrunError, asyncio.IncompleteReadError):
            pass  # this client gets no response
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(handle, *place, limit=REQUEST_BYTES_MAX)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        server.close()


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pages: StatusPages
) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    page = _page(head, pages)
    writer.write(response(page.text.encode(), page.code, page.type))
    await writer.drain()


def _page(head: bytes, pages: StatusPages) -> StatusPage:
    parts = head.split(b"\r\n", 1)[0].split(b" ")
    if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
        return StatusPage("400 bad request\n", 400)
    if parts[0] != b"GET":
        return StatusPage("405 method not allowed\n", 405)
    path = parts[1].split(b"?", 1)[0].decode("latin-1")
    found = pages.get(path)
    return _GONE if found is None else found()
