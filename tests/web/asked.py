"""A page asked without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from moorage.apiserver.http.messages import Request, Response, StreamingResponse
from moorage.web.feed import Feed
from moorage.web.page import EVERYTHING, Access, Page

HOST = "127.0.0.1:8080"
POST = {"x-moor-ui": "1", "content-type": "application/json"}


async def nobody() -> None:
    return None


class Visitor:
    """A browser at a page: it keeps its cookie."""

    def __init__(
        self, page: Page[Any], authenticate: Callable[[], Awaitable[Any]] = nobody
    ) -> None:
        self.page = page
        self._authenticate = authenticate
        self.cookie = ""

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response | StreamingResponse:
        path, _, query = path.partition("?")
        fields = dict(part.split("=", 1) for part in query.split("&")) if query else {}
        sent = {"host": HOST, "cookie": self.cookie, **(headers or {})}
        data = body if isinstance(body, bytes) else msgspec.json.encode(body) if body else b""
        return await self.page.answer(
            Request(method, f"/ui{path}", fields, sent, data), self._authenticate
        )

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        answer = await self.send("GET", path, headers=headers)
        assert isinstance(answer, Response)
        return answer.status, msgspec.json.decode(answer.body)

    async def ask(self, path: str, body: Any) -> tuple[int, Any]:
        answer = await self.send("POST", path, body, POST)
        assert isinstance(answer, Response)
        return answer.status, msgspec.json.decode(answer.body)

    async def sign_in(self, user: Any = "you") -> None:
        token = self.page.logins.link_token(user)
        answer = await self.send("GET", f"/login?token={token}")
        assert isinstance(answer, Response)
        assert answer.status == 303
        self.cookie = dict(answer.headers)["Set-Cookie"].partition(";")[0]

    async def events(self, since: int) -> AsyncIterator[tuple[str, Any]]:
        """Yield events as (name, data), without comments."""
        answer = await self.send("GET", f"/events?since={since}")
        assert isinstance(answer, StreamingResponse)
        async for chunk in answer.chunks:
            lines = dict(
                line.split(": ", 1) for line in chunk.decode().splitlines() if line[:1] not in ":"
            )
            if lines:
                yield lines["event"], msgspec.json.decode(lines["data"])


def at_page(
    feed: Feed, scenario: Callable[[Visitor], Awaitable[None]], access: Access[Any] = EVERYTHING
) -> None:
    """Run a scenario with somebody signed in."""

    async def run() -> None:
        page: Page[Any] = Page(feed, access)
        try:
            async with asyncio.timeout(60):
                visitor = Visitor(page)
                await visitor.sign_in()
                await scenario(visitor)
        finally:
            await page.close()

    asyncio.run(run())
