"""The page alone, on a loopback address, for who has its link."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from mooring.apiserver.http.app import Application
from mooring.apiserver.http.messages import Request, Response, StreamingResponse
from mooring.apiserver.http.metrics import Metrics
from mooring.apiserver.settings import Limits
from mooring.web.errors import PageError
from mooring.web.messages import BODY_BYTES_MAX, error_response
from mooring.web.page import PREFIX, Page

LOG = logging.getLogger(__name__)
LIMITS = Limits(body_bytes_max=BODY_BYTES_MAX, watches_max=1000)


class _FaultError(PageError):
    """Something failed here."""


class PageHandler:
    """Answers requests for a page, and nothing else."""

    def __init__(self, page: Page[str]) -> None:
        self.metrics = Metrics()
        self._page = page

    async def handle(self, request: Request) -> Response | StreamingResponse:
        """Return the response to a request; never raises."""
        if not request.path.startswith(PREFIX):
            headers = (("Location", f"{PREFIX}/"),)
            return Response(b"", 302, "text/plain; charset=utf-8", headers)
        try:
            return await self._page.answer(request, _nobody)
        except Exception:
            LOG.exception("%s %s", request.method, request.path)
            return error_response(_FaultError("The server could not do it; its log says more."))


async def _nobody() -> None:
    return None


async def serve_page(
    page: Page[str], *, port: int, on_start: Callable[[str], None], user: str = "you"
) -> None:
    """Serve a page on loopback until cancelled or stopped by a signal; tell its link."""
    from mooring.apiserver.http.uvicorn_server import NetworkServer

    server = NetworkServer(Application(PageHandler(page), LIMITS), "127.0.0.1", port)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if not serving.done():
            on_start(link(f"http://127.0.0.1:{server.port}", page.logins.link_token(user)))
        await serving
    finally:
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await asyncio.gather(serving, return_exceptions=True)
        await page.close()


def link(url: str, token: str) -> str:
    """Return the address that signs somebody in, once."""
    return f"{url}{PREFIX}/login?token={token}"
