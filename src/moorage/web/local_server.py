"""Serves the page alone, on a loopback address, to users who have its link."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

from moorage.apiserver.http.app import Application
from moorage.apiserver.http.messages import Request, Response, StreamingResponse
from moorage.apiserver.http.metrics import Metrics
from moorage.apiserver.settings import Limits
from moorage.kit.system import on_stop
from moorage.web.errors import PageError
from moorage.web.messages import BODY_BYTES_MAX, error_response
from moorage.web.page import PREFIX, Page

LOG = logging.getLogger(__name__)
U = TypeVar("U")
ADDRESS: Final = "127.0.0.1"
LIMITS = Limits(body_bytes_max=BODY_BYTES_MAX, watches_max=1000)


class _FaultError(PageError):
    """A fault of the page itself."""


class PageHandler(Generic[U]):
    """Handles the requests of a page, and no others."""

    def __init__(self, page: Page[U]) -> None:
        self.metrics = Metrics()
        self._page = page

    async def handle(self, request: Request) -> Response | StreamingResponse:
        """Return the response to a request; never raises."""
        if request.path != PREFIX and not request.path.startswith(f"{PREFIX}/"):
            headers = (("Location", f"{PREFIX}/"),)
            return Response(b"", 302, "text/plain; charset=utf-8", headers)
        try:
            return await self._page.answer(request, _nobody)
        except Exception:
            LOG.exception("%s %s", request.method, request.path)
            return error_response(_FaultError("The request failed; see the log of the server."))


async def _nobody() -> None:
    return None


@asynccontextmanager
async def listening_page(page: Page[U], port: int = 0) -> AsyncIterator[str]:
    """Serve a page on loopback during a `with` block; yield its address."""
    from moorage.apiserver.http.uvicorn_server import NetworkServer

    application = Application(PageHandler(page), LIMITS)
    server = NetworkServer(application, ADDRESS, port, handles_signals=False)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if serving.done():
            serving.result()  # raises OSError if it cannot listen
        yield f"http://{ADDRESS}:{server.port}"
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)


async def serve_page(
    page: Page[str], *, port: int, on_start: Callable[[str], None], user: str = "you"
) -> None:
    """Serve a page until a signal stops it. `on_start` gets its link, and a new one on SIGHUP."""
    stopped = asyncio.Event()
    on_stop(stopped.set)
    try:
        async with listening_page(page, port) as url:
            page.public_url = url

            def give_link() -> None:
                on_start(link(url, page.logins.link_token(user)))

            give_link()
            if hasattr(signal, "SIGHUP"):  # Windows has none
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, give_link)
            await stopped.wait()
    finally:
        await page.close()


def link(url: str, token: str) -> str:
    """Return a link that signs in its first user."""
    return f"{url}{PREFIX}/login?token={token}"
