"""A small HTTP server for the status pages of a program.

    /healthz, /livez, /readyz             anybody: whether it works, without names
    /metrics …, /readyz?verbose           users whom the API server allows (`status_access`)

Tokens travel with requests, so beyond this machine the pages need TLS. Requests are bounded in
size, time and number.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from moorage.cluster.status_access import AccessRefusal
from moorage.kit.bulkhead import FAULTS
from moorage.kit.connections import ConnectionLimits, Listener, StreamConnections, listen
from moorage.kit.http_head import Head, HeadError, read_head, response
from moorage.kit.metrics import OPENMETRICS, PROMETHEUS

PLAIN = "text/plain; charset=utf-8"
REQUEST_BYTES_MAX = 16 * 1024
REQUEST_S_MAX = 10.0
BACKLOG = 32
RELOAD_EVERY_S = 3600.0
LIMITS = ConnectionLimits(connections_max=128, handshake_s=5.0, head_s=5.0)

VERBOSE_HINT = "/readyz?verbose says why, to users who may read it\n"


class StatusPage(NamedTuple):
    """The response of a status page."""

    text: str
    code: int = 200
    type: str = PLAIN


class StatusPages(NamedTuple):
    """Pages by path; `guarded` ones are for users whom the API server allows."""

    open: Mapping[str, Callable[[], StatusPage]]
    guarded: Mapping[str, Callable[[], StatusPage]]
    verbose: Mapping[str, Callable[[], StatusPage]]  # guarded, with `?verbose`
    openmetrics: Mapping[str, Callable[[], StatusPage]] = {}  # guarded ones, if asked for


_BAD = StatusPage("400 bad request\n", 400)
_GONE = StatusPage("404 page not found\n", 404)
_NOT_ALLOWED = StatusPage("405 method not allowed\n", 405)
_FAILED = StatusPage("internal error\n", 500)
_TOO_LARGE = StatusPage("431 the headers are too large\n", 431)


class PageAccess(Protocol):
    """Decides who may read guarded pages."""

    async def refusal(
        self, path: str, *, certificate: Any, authorization: str
    ) -> AccessRefusal | None:
        """Return why a page is not shown; None if it is."""


class StatusTls(NamedTuple):
    """The certificate and key to serve with, and the authority of clients' certificates."""

    certificate: Path
    key: Path
    client_authority: Path | None = None


class ListenAddress(NamedTuple):
    """A host and port to listen on; port 0 picks a free one."""

    host: str
    port: int
    tls: StatusTls | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def parse_listen_address(text: str) -> ListenAddress | None:
    """Parse `HOST:PORT`; "0" gives None. Raises ValueError."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is no address such as 127.0.0.1:10259")
    return ListenAddress(host.strip("[]") or "127.0.0.1", int(port))


def health_pages(
    metrics: Mapping[str, Callable[[], str]],
    troubles: Callable[[], Mapping[str, str]],
    openmetrics: Mapping[str, Callable[[], str]] | None = None,
) -> StatusPages:
    """Return the pages of a program: health, readiness, and its metrics by path.

    `troubles` are the kinds that it cannot read, and why.
    """

    def ready() -> StatusPage:
        found = troubles()
        if not found:
            return StatusPage("ok")
        return StatusPage(
            "".join(f"{kind}: cannot be read\n" for kind in found) + VERBOSE_HINT, 503
        )

    def ready_verbosely() -> StatusPage:
        found = troubles()
        lines = "".join(f"{kind}: {cause}\n" for kind, cause in found.items())
        return StatusPage(lines, 503) if found else StatusPage("ok")

    def counted(text: Callable[[], str], type_: str) -> Callable[[], StatusPage]:
        return lambda: StatusPage(text(), type=type_)

    def healthy() -> StatusPage:
        return StatusPage("ok")

    return StatusPages(
        open={"/healthz": healthy, "/livez": healthy, "/readyz": ready},
        guarded={path: counted(text, PROMETHEUS) for path, text in metrics.items()},
        verbose={"/readyz": ready_verbosely},
        openmetrics={
            path: counted(text, OPENMETRICS) for path, text in (openmetrics or {}).items()
        },
    )


@asynccontextmanager
async def serving(
    place: ListenAddress, pages: StatusPages, access: PageAccess
) -> AsyncIterator[str]:
    """Serve pages during a block and yield their URL; may raise OSError."""
    server = _StatusServer(place, pages, access)
    await server.listen()
    try:
        yield server.url
    finally:
        await server.close()


class _StatusServer:
    def __init__(self, place: ListenAddress, pages: StatusPages, access: PageAccess) -> None:
        self._place, self._pages, self._access = place, pages, access
        self._context = None if place.tls is None else _tls_context(place.tls)
        self._open = StreamConnections(self._serve, REQUEST_BYTES_MAX)
        self._listener: Listener | None = None
        self._reloading: asyncio.Task[None] | None = None
        self.url = ""

    async def listen(self) -> None:
        """Accept connections from now on; raises OSError if it cannot."""
        sockets = await listen(self._place.host, self._place.port, BACKLOG)
        host, port = sockets[0].getsockname()[:2]
        scheme = "http" if self._context is None else "https"
        self.url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        self._listener = Listener(
            sockets, self._open.protocol, self._context, LIMITS, self._open.__len__
        )
        if self._context is not None:
            self._reloading = asyncio.create_task(self._reload(self._context))

    async def close(self) -> None:
        """Stop accepting connections, and end the open ones."""
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.gather(self._reloading, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
            await self._listener.wait_closed()
        await self._open.end()

    async def _reload(self, context: ssl.SSLContext) -> None:
        """Use a renewed certificate for new connections."""
        assert self._place.tls is not None
        while True:
            await asyncio.sleep(RELOAD_EVERY_S)
            with suppress(OSError):  # The old one goes on until its files can be read again.
                context.load_cert_chain(self._place.tls.certificate, self._place.tls.key)

    # --- one connection -------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError):  # This client gets no response.
            async with asyncio.timeout(REQUEST_S_MAX):
                page = await self._answer(reader, writer)
                if page is not None:
                    writer.write(response(page.text.encode(), page.code, page.type))
                    await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> StatusPage | None:
        try:
            async with asyncio.timeout(LIMITS.head_s):
                head = await read_head(reader)
        except HeadError as error:
            return _TOO_LARGE if "too large" in str(error) else _BAD
        return None if head is None else await self._page(head, writer)

    async def _page(self, head: Head, writer: asyncio.StreamWriter) -> StatusPage:
        method, target, version = head.first
        if not version.startswith("HTTP/1."):
            return _BAD
        if method != "GET":
            return _NOT_ALLOWED
        path, _, query = target.partition("?")
        is_verbose = any(part.partition("=")[0] == "verbose" for part in query.split("&"))
        guarded = self._pages.verbose.get(path) if is_verbose else None
        if guarded is None and prefers_openmetrics(head.headers.get("accept", "")):
            guarded = self._pages.openmetrics.get(path)
        guarded = guarded or self._pages.guarded.get(path)
        if guarded is None and path in self._pages.open:
            return _made(path, self._pages.open[path])
        if guarded is None:
            return _GONE
        refusal = await self._access.refusal(
            path,
            certificate=writer.get_extra_info("peercert"),
            authorization=head.headers.get("authorization", ""),
        )
        if refusal is not None:
            return StatusPage(refusal.text, refusal.code)
        return _made(path, guarded)


def prefers_openmetrics(accept: str) -> bool:
    """Return whether an Accept header prefers OpenMetrics to plain text."""
    weights: dict[str, float] = {}
    for part in accept.split(","):
        type_, *parameters = (each.strip() for each in part.split(";"))
        quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        with suppress(ValueError):
            weights[type_.lower()] = max(weights.get(type_.lower(), 0.0), float(quality))
    asked = weights.get(OPENMETRICS.partition(";")[0], 0.0)
    return asked > 0 and asked >= weights.get(PROMETHEUS.partition(";")[0], 0.0)


def _made(path: str, make: Callable[[], StatusPage]) -> StatusPage:
    try:
        return make()
    except Exception as error:
        FAULTS.note("status pages", path, error, "cannot be shown")
        return _FAILED


def _tls_context(files: StatusTls) -> ssl.SSLContext:
    """Return the TLS settings for files, or raise OSError that names the one at fault."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(files.certificate, files.key)
    except ssl.SSLError as error:
        raise OSError(f"{files.certificate}: no certificate for this key: {error}") from None
    if files.client_authority is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(files.client_authority)
        except ssl.SSLError as error:
            raise OSError(f"{files.client_authority}: not a certificate: {error}") from None
    return context
