"""The page as an extension of the API server: its users, and what they may see.

API server ─ /ui/… ─► PageDoor ─► Page ─ rights of the user ─► what they may list
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from moorage.api.catalogue import KINDS
from moorage.api.core.namespace import Event
from moorage.apiserver.auth.access import Allowed, Authorizer, ResourceAccess
from moorage.apiserver.auth.users import ANONYMOUS, User
from moorage.apiserver.http.messages import Request, Response, StreamingResponse
from moorage.insight.snapshot.snapshot import FIELDS
from moorage.kit.lru import LRU
from moorage.web.feed import Feed
from moorage.web.page import PREFIX, Access, Page
from moorage.web.rights import Rights

RIGHTS_S: Final = 10.0  # how long rights are cached
USERS_MAX: Final = 1000
NAMESPACES_MAX: Final = 2000
CHECKS_AT_ONCE: Final = 100  # before other requests go on
_SHOWN: Final = {*FIELDS, Event}
# A kind in several versions is one resource.
_KINDS: Final = {
    (kind.group, kind.plural): kind for kind in KINDS if kind.struct in _SHOWN and kind.plural
}


class PageDoor:
    """Serves the page to users of the API server."""

    prefix = PREFIX

    def __init__(self, page: Page[User], *, is_secure: bool) -> None:
        self.page = page
        self._is_secure = is_secure  # whether the server speaks TLS

    async def answer(
        self, request: Request, authenticate: Callable[[], Awaitable[User | None]]
    ) -> Response | StreamingResponse:
        """Return the response to a request below /ui/."""

        async def known() -> User | None:
            user = await authenticate()
            return None if user is None or user.name == ANONYMOUS.name else user

        return await self.page.answer(request, known, is_secure=self._is_secure)


class UserRights:
    """Asks the API server's authorizer what users may list, and caches the answers briefly."""

    def __init__(
        self, authorizer: Authorizer, feed: Feed, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._authorizer, self._feed, self._clock = authorizer, feed, clock
        self._known: LRU[Hashable, tuple[float, Rights]] = LRU(USERS_MAX)
        self._finding: dict[Hashable, asyncio.Task[Rights]] = {}

    @property
    def access(self) -> Access[User]:
        """How the page authorizes users."""
        return Access(name_of=lambda user: user.name, rights_of=self.rights_of)

    async def rights_of(self, user: User) -> Rights:
        """Return what a user may see."""
        key = (user.name, user.groups, user.uid, tuple(sorted(user.extra.items())))
        known = self._known.get(key)
        if known is not None and known[0] > self._clock():
            return known[1]
        self._feed.wanted.set()
        await self._feed.is_ready.wait()  # for its namespaces
        finding = self._finding.get(key)
        if finding is None:
            finding = self._finding[key] = asyncio.create_task(self._rights(user))
            finding.add_done_callback(lambda _: self._finding.pop(key))
        found = await asyncio.shield(finding)
        self._known.put(key, (self._clock() + RIGHTS_S, found))
        return found

    async def _rights(self, user: User) -> Rights:
        """Ask for each kind, and for each namespace where a kind may not be listed everywhere."""
        limited: dict[str, frozenset[str]] = {}
        everywhere: set[str] = set()
        namespaces: list[str] | None = None
        for kind in _KINDS.values():
            if kind.name in everywhere:
                continue
            if self._may_list(user, kind.group, kind.plural):
                everywhere.add(kind.name)
                limited.pop(kind.name, None)
                continue
            spaces: set[str] = set()
            if kind.namespaced:
                namespaces = self._namespaces() if namespaces is None else namespaces
                for begin in range(0, len(namespaces), CHECKS_AT_ONCE):
                    spaces |= {
                        space
                        for space in namespaces[begin : begin + CHECKS_AT_ONCE]
                        if self._may_list(user, kind.group, kind.plural, space)
                    }
                    await asyncio.sleep(0)
            limited[kind.name] = limited.get(kind.name, frozenset()) | spaces
        return Rights(tuple(sorted(limited.items())))

    def _namespaces(self) -> list[str]:
        names = [name for kind, _, name in self._feed.objects if kind == "Namespace"]
        return names[:NAMESPACES_MAX]

    def _may_list(self, user: User, group: str, resource: str, namespace: str = "") -> bool:
        access = ResourceAccess(user, "list", group, resource, namespace=namespace)
        return isinstance(self._authorizer.authorize(access), Allowed)
