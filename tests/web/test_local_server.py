"""The page over a real connection: a link, the cookie, data, and events."""

from __future__ import annotations

import asyncio
import gzip
import urllib.request
from collections.abc import Awaitable, Callable
from http.cookiejar import CookieJar
from typing import Any, cast
from urllib.error import HTTPError

import msgspec
import pytest

from moorage.apiserver.http.messages import Request, Response
from moorage.kit.checkpoints import checkpoint
from moorage.web.asking import Asking
from moorage.web.local_server import link, listening_page
from moorage.web.page import EVERYTHING, Page
from tests.web.fleets import NOW, SMALL, feed_of, waiting

Scenario = Callable[[str, Page[str]], Awaitable[None]]


def served(scenario: Scenario, **more: Any) -> None:
    async def run() -> None:
        page = Page(feed_of(SMALL, **more), EVERYTHING)
        try:
            async with asyncio.timeout(60), listening_page(page) as url:
                await scenario(url, page)
        finally:
            await page.close()

    asyncio.run(run())


class Browser:
    """A client that keeps cookies and follows redirects."""

    def __init__(self) -> None:
        cookies = urllib.request.HTTPCookieProcessor(CookieJar())
        self._opener = urllib.request.build_opener(cookies)

    async def get(self, url: str, **headers: str) -> tuple[str, bytes]:
        """Return where a request led to, and the body."""
        request = urllib.request.Request(url, headers=headers)
        answer = await asyncio.to_thread(self._opener.open, request, timeout=30)
        with answer:
            body: bytes = answer.read()
            is_packed = answer.headers.get("Content-Encoding") == "gzip"
            return answer.url, gzip.decompress(body) if is_packed else body


def test_a_link_leads_to_the_page_with_its_data() -> None:
    async def scenario(url: str, page: Page[str]) -> None:
        browser = Browser()
        found, body = await browser.get(link(url, page.logins.link_token("you")))
        assert found == f"{url}/ui/"
        assert b'<div id="page">' in body
        _, session = await browser.get(f"{url}/ui/session")
        assert msgspec.json.decode(session)["user"] == "you"
        _, fleet = await browser.get(f"{url}/ui/fleet", **{"Accept-Encoding": "gzip"})
        assert msgspec.json.decode(fleet)["revision"] == 1
        with pytest.raises(HTTPError, match="401"):
            await Browser().get(f"{url}/ui/fleet")
        found, _ = await Browser().get(url)  # the page itself, which says that nobody is signed in
        assert found == f"{url}/ui/"

    served(scenario)


def test_events_arrive_and_end_with_the_server() -> None:
    async def scenario(url: str, page: Page[str]) -> None:
        cookie = page.logins.redeem(page.logins.link_token("you"))
        host, _, port = url.removeprefix("http://").partition(":")
        name = page.logins.cookie_name(f"{host}:{port}")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"GET /ui/events?since=1 HTTP/1.1\r\nHost: {host}:{port}\r\n"
        writer.write(f"{head}Cookie: {name}={cookie}\r\n\r\n".encode())
        assert b"text/event-stream" in await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b": keep-alive\n\n")
        page.feed.publish(waiting("more"), revision=2, time=NOW)
        assert b"event: fleet" in await reader.readuntil(b"\n\n")
        writer.close()

    served(scenario, is_live=True)


class Endless:
    """A page whose questions end with their askers."""

    def __init__(self) -> None:
        self.asking, self.asked = Asking(deadline_s=60), asyncio.Event()

    async def answer(self, request: Request, _: Callable[[], Awaitable[None]]) -> Response:
        self.asked.set()
        await self.asking.answer("you", self._think, request.gone)
        raise AssertionError("It has no end.")

    def _think(self) -> None:
        while True:
            checkpoint()


def test_a_question_ends_when_its_client_hangs_up() -> None:
    async def run() -> None:
        page = Endless()
        async with asyncio.timeout(30), listening_page(cast("Page[str]", page)) as url:
            _, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
            writer.write(b"POST /ui/what-if HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            await page.asked.wait()
            assert page.asking.busy
            writer.close()
            while page.asking.busy:
                await asyncio.sleep(0)
        page.asking.close()

    asyncio.run(run())
