"""The page: answers to its requests, for whoever may see what.

request ─ host, origin ─ who is it ─ rights ─► view ─► fleet, events
                            │                  └─► questions ─► object, device, explain, …
                            └─ login: a link that works once becomes a cookie
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Container, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from mooring import __version__
from mooring.apiserver.http.messages import Request, Response, StreamingResponse
from mooring.hardware.catalogue import Catalogue
from mooring.web.errors import (
    BadRequestError,
    MethodError,
    NotFoundError,
    NotSignedInError,
    PageError,
)
from mooring.web.feed import Feed
from mooring.web.login import Logins, cookie_header
from mooring.web.messages import (
    LOOPBACK,
    NO_STORE,
    SAFE,
    check_origin,
    error_response,
    file_response,
    json_response,
    message_page,
)
from mooring.web.rights import ALL, Rights
from mooring.web.static_files import INDEX, StaticFile, static_files
from mooring.web.view import Body, View, Views

LOG = logging.getLogger(__name__)
U = TypeVar("U")
PREFIX: Final = "/ui"
LINK_HELP: Final = (
    "A link works once and for ten minutes. Run `moor ui` where the cluster runs: it prints a "
    "new one."
)
Answer = Response | StreamingResponse


class Access(NamedTuple, Generic[U]):
    """Who looks, and what they may see."""

    name_of: Callable[[U], str]
    rights_of: Callable[[U], Awaitable[Rights]]


async def _all_rights(_: str) -> Rights:
    return ALL


EVERYTHING: Final = Access[str](name_of=str, rights_of=_all_rights)


class Page(Generic[U]):
    """Answers requests below /ui/."""

    def __init__(
        self,
        feed: Feed,
        access: Access[U],
        *,
        hosts: Container[str] = LOOPBACK,
        is_secure: bool = False,
        files: Mapping[str, StaticFile] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.logins: Logins[U] = Logins(clock)
        self.views = Views(feed)
        self._feed = feed
        self._access = access
        self._hosts = hosts
        self._is_secure = is_secure
        self._files = static_files() if files is None else files

    async def answer(
        self, request: Request, authenticate: Callable[[], Awaitable[U | None]]
    ) -> Answer:
        """Return the response to a request; `authenticate` knows other credentials than cookies."""
        try:
            check_origin(request, self._hosts)
            return await self._answer(request, authenticate)
        except PageError as error:
            return error_response(error)

    async def _answer(
        self, request: Request, authenticate: Callable[[], Awaitable[U | None]]
    ) -> Answer:
        path = request.path.removeprefix(PREFIX)
        if path == "/login":
            return self._login(request)
        if path in ("", "/") or path.startswith("/static/"):
            return self._static(path, request)
        user = self.logins.user(request.headers.get("cookie", ""))
        if user is None:
            user = await authenticate()
        if user is None:
            raise NotSignedInError("Nobody is signed in. Run `moor ui`: it prints a new link.")
        name = path.removeprefix("/")
        view = await self.views.get(await self._access.rights_of(user))
        if request.method == "POST":
            raise NotFoundError(f"There is nothing to ask at {path[:100]}.")
        return await self._get(name, request, view, user)

    async def _get(self, name: str, request: Request, view: View, user: U) -> Answer:
        if request.method not in ("GET", "HEAD"):
            raise MethodError(f"The page does not take {request.method[:20]}.")
        match name:
            case "session":
                return _json(await self._session(user), request)
            case "fleet":
                body = await view.body()
                return json_response(body.plain, body.packed, request)
            case "events":
                since = _number(request, "since")
                return StreamingResponse(view.events(since), "text/event-stream", NO_STORE)
        raise NotFoundError(f"There is no {name[:100]!r} here.")

    # --- signing in ---------------------------------------------------------------------------

    def _login(self, request: Request) -> Response:
        if request.method != "GET":
            raise MethodError("A link is opened with GET.")
        cookie = self.logins.redeem(request.query.get("token", ""))
        if cookie is None:
            return message_page("This link does not work any more", LINK_HELP, 403)
        headers = (
            ("Location", f"{PREFIX}/"),
            ("Set-Cookie", cookie_header(cookie, is_secure=self._is_secure)),
            *NO_STORE,
        )
        return Response(b"", 303, "text/plain; charset=utf-8", headers)

    # --- the page itself ----------------------------------------------------------------------

    def _static(self, path: str, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise MethodError(f"The page does not take {request.method[:20]}.")
        if not path:
            headers = (("Location", f"{PREFIX}/"), *SAFE)
            return Response(b"", 308, "text/plain; charset=utf-8", headers)
        name = path.removeprefix("/static/") if path != "/" else INDEX
        file = self._files.get(name)
        if file is None:
            raise NotFoundError("The page has no such file.")
        return file_response(file, request)

    async def _session(self, user: U) -> dict[str, Any]:
        facts = self._feed.facts
        rights = await self._access.rights_of(user)
        return {
            "user": self._access.name_of(user),
            "title": facts.title,
            "source": facts.source,
            "live": facts.is_live,
            "history": self._feed.history is not None,
            "readOnly": True,
            "version": __version__,
            "profiles": list(Catalogue().names),
            "forbidden": rights.forbidden,
            "whatIf": True,
            "now": str(self._feed.context.now),
        }


def _json(tree: Any, request: Request) -> Response:
    body = Body.of(tree)
    return json_response(body.plain, body.packed, request)


def _number(request: Request, name: str) -> int:
    text = request.query.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise BadRequestError(f"{name}: {text[:40]!r} is not a revision.")
    return int(text)
