"""The page of a cluster, in the process of its API server.

    browser ──HTTP, loopback──► page ◄── /ui/ ── API server ◄──HTTPS── everybody
                                 │
                                 └─ informers ─► objects ─► what each viewer may see

The API server has the page at /ui/, for its own users. Browsers warn about its certificate, because
the cluster's own CA has signed it. So the page also listens on a port of its own, on this machine
only and without TLS, where only links sign in. Informers run only while there are viewers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Final

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.credentials import ADMIN, admin_token
from moorage.apiserver.auth.users import User
from moorage.apiserver.direct_client import direct_client
from moorage.apiserver.server import Assembled, assembled, serving
from moorage.apiserver.settings import Settings
from moorage.client.client_factory import Token
from moorage.client.contract import Client
from moorage.insight.history import History
from moorage.kit.bulkhead import keep_running
from moorage.validation.strategy import Context
from moorage.web.cluster_feed import ClusterFeed
from moorage.web.door import PageDoor, UserRights
from moorage.web.feed import Feed, SourceFacts
from moorage.web.local_server import listening_page
from moorage.web.messages import LOOPBACK
from moorage.web.page import Page
from moorage.web.store_past import read_past

AGENT: Final = "moorage-page"
IDLE_S: Final = 300.0  # without viewers until informers stop
LOOK_EVERY_S: Final = 15.0


@asynccontextmanager
async def page_beside(made: Assembled, settings: Settings) -> AsyncIterator[Page[User]]:
    """Serve the page of an assembled server during a `with` block."""
    context = Context(gates=settings.gates, now=_now())
    feed = Feed(
        SourceFacts(f"cluster in {settings.data_dir.name}", "cluster", is_live=True),
        context,
        now=_now,
        history=History(),
        reads_past=True,
    )
    router = made.application.router
    rights = UserRights(router.authorizer, feed)
    hosts = LOOPBACK | {settings.address, settings.advertised, *settings.names}
    page = Page(feed, rights.access, hosts=hosts)
    door = PageDoor(page, is_secure=made.credentials is not None)
    server = made.context
    past = partial(read_past, feed, server.registry, server.resources)
    follow = partial(_follow, feed, page, partial(_client, made, settings), past)
    following = asyncio.create_task(keep_running("the page", follow))
    router.extensions.append(door)
    try:
        async with listening_page(page) as url:
            page.public_url = url
            yield page
    finally:
        router.extensions.remove(door)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await page.close()


async def serve_with_page(settings: Settings, tell: Callable[[str], None]) -> None:
    """Run a server with its page until a signal stops it; report its URL."""
    async with (
        assembled(settings) as made,
        page_beside(made, settings),
        serving(made, settings) as (url, task),
    ):
        tell(url)
        await task


async def _follow(
    feed: Feed,
    page: Page[User],
    client_of: Callable[[], Client],
    past: Callable[[], Coroutine[None, None, None]],
) -> None:
    """Follow the cluster while somebody looks; its past is read once the present is shown."""
    while True:
        await feed.wanted.wait()
        client = client_of()
        running = asyncio.create_task(ClusterFeed(client, feed, _now).run())
        reading = asyncio.create_task(past())
        try:
            idle_s = 0.0
            while idle_s < IDLE_S and not running.done():
                await asyncio.wait([running], timeout=LOOK_EVERY_S)
                await page.views.prune()
                idle_s = 0.0 if feed.followers else idle_s + LOOK_EVERY_S
            if running.done():
                await running
        finally:
            running.cancel()
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(running, reading, return_exceptions=True)
            feed.forget()


def _client(made: Assembled, settings: Settings) -> Client:
    """Return the client of the page, which reads everything; viewers see what they may list."""
    if made.credentials is not None:
        certificate = made.credentials.client_certificate(ADMIN)
        return direct_client(made.application, manager=AGENT, certificate=certificate)
    if settings.allows_all:
        return direct_client(made.application, manager=AGENT)

    async def tokens() -> Token:
        return Token(admin_token(settings.data_dir))

    return direct_client(made.application, manager=AGENT, tokens=tokens)


def _now() -> Timestamp:
    return Timestamp(datetime.now(UTC))
