"""The page as an extension of the API server: its users, and what they may see.

API server ─ /ui/… ─► PageDoor ─► Page ─ rights of the user ─► what they may list
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Final

from mooring.api.catalogue import KINDS
from mooring.apiserver.auth.access import Allowed, Authorizer, ResourceAccess
from mooring.apiserver.auth.users import ANONYMOUS, User
from mooring.apiserver.http.messages import Request, Response, StreamingResponse
from mooring.insight.snapshot.snapshot import FIELDS
from mooring.kit.lru import LRU
from mooring.web.feed import Feed
from mooring.web.page import PREFIX, Access, Page
from mooring.web.rights import Rights

RIGHTS_S: Final = 10.0  # how long rights are cached
USERS_MAX: Final = 1000
NAMESPACES_MAX: Final = 2000
_KINDS: Final = [kind for kind in KINDS if kind.struct in FIELDS and kind.plural]


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
        found = self._rights(user)
        self._known.put(key, (self._clock() + RIGHTS_S, found))
        return found

    def _rights(self, user: User) -> Rights:
        limited: dict[str, frozenset[str]] = {}
        for kind in _KINDS:
            if self._may_list(user, kind.group, kind.plural):
                limited.pop(kind.name, None)
            elif kind.name not in limited:
                spaces = self._namespaces() if kind.namespaced else ()
                limited[kind.name] = frozenset(
                    space
                    for space in spaces
                    if self._may_list(user, kind.group, kind.plural, space)
                )
        return Rights(tuple(sorted(limited.items())))

    def _namespaces(self) -> Iterable[str]:
        names = [name for kind, _, name in self._feed.objects if kind == "Namespace"]
        return names[:NAMESPACES_MAX]

    def _may_list(self, user: User, group: str, resource: str, namespace: str = "") -> bool:
        access = ResourceAccess(user, "list", group, resource, namespace=namespace)
        return isinstance(self._authorizer.authorize(access), Allowed)
