"""The page: routes requests, and shows each user what they may see.

request ─ host, origin ─ who is it ─ rights ─► view ─► fleet, events
                            │                  └─► questions ─► object, device, explain, …
                            └─ login: a link that works once becomes a cookie
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from mooring import __version__
from mooring.apiserver.http.messages import JSON, Request, Response, StreamingResponse
from mooring.hardware.catalogue import Catalogue
from mooring.web.asking import Asking
from mooring.web.errors import (
    BadQuestionError,
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
    Body,
    check_origin,
    check_post,
    error_response,
    file_response,
    json_response,
    message_page,
)
from mooring.web.questions.details import device_answer, object_answer
from mooring.web.questions.reading import QUESTIONS, read_question
from mooring.web.rights import ALL, Rights
from mooring.web.static_files import INDEX, StaticFile, static_files
from mooring.web.view import View, Views

LOG = logging.getLogger(__name__)
U = TypeVar("U")
PREFIX: Final = "/ui"
LINK_HELP: Final = (
    "A link works once and for ten minutes. Run `moor ui` where the cluster runs: it prints a "
    "new one."
)
REVISION_DIGITS: Final = 19
Answer = Response | StreamingResponse


class Access(NamedTuple, Generic[U]):
    """Tells what a user may see."""

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
        files: Mapping[str, StaticFile] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.logins: Logins[U] = Logins(clock)
        self.views = Views(feed)
        self._asking = Asking()
        self.public_url = ""  # the address in links
        self.feed = feed
        self._access = access
        self._hosts = hosts
        self._files = static_files() if files is None else files

    async def close(self) -> None:
        """Stop following the source, and accept no more questions."""
        self._asking.close()
        await self.views.close()

    async def answer(
        self,
        request: Request,
        authenticate: Callable[[], Awaitable[U | None]],
        *,
        is_secure: bool = False,
    ) -> Answer:
        """Return the response to a request; `authenticate` checks credentials besides cookies."""
        try:
            check_origin(request, self._hosts)
            if request.path == f"{PREFIX}/login":
                return self._login(request, is_secure=is_secure)
            return await self._answer(request, authenticate)
        except PageError as error:
            return error_response(error)

    async def _answer(
        self, request: Request, authenticate: Callable[[], Awaitable[U | None]]
    ) -> Answer:
        path = request.path.removeprefix(PREFIX)
        if path == "/link":
            return await self._link(request, authenticate)
        if path in ("", "/") or path.startswith("/static/"):
            return self._static(path, request)
        user = self.logins.user(request.headers.get("cookie", ""), request.headers.get("host", ""))
        if user is None:
            user = await authenticate()
        if user is None:
            raise NotSignedInError("You are not signed in. Run `moor ui` to get a new link.")
        name = path.removeprefix("/")
        rights = await self._access.rights_of(user)
        view = await self.views.get(rights)
        if name in QUESTIONS:
            if request.method != "POST":
                raise MethodError(f"Ask {name} with POST.")
            return await self._ask(name, check_post(request), view, user)
        if request.method not in ("GET", "HEAD"):
            raise MethodError(f"Use GET for {name[:40]}.")
        return await self._get(name, request, view, user, rights)

    async def _get(
        self, name: str, request: Request, view: View, user: U, rights: Rights
    ) -> Answer:
        match name:
            case "session":
                return _json(self._session(user, rights), request)
            case "fleet":
                at = request.query.get("at", "")
                body = await (view.past.body(at) if at else view.body())
                return json_response(body.plain, body.packed, request)
            case "events":
                since = _revision(request.query.get("since", "0"))
                return StreamingResponse(view.events(since), "text/event-stream", NO_STORE)
            case "object" | "device":
                return _json(await self._detail(name, request.query, view, user, rights), request)
            case "history":
                return _json(await asyncio.to_thread(view.past.tree), request)
        raise NotFoundError(f"There is no {name[:100]!r} here.")

    # --- questions ----------------------------------------------------------------------------

    async def _detail(
        self, name: str, query: Mapping[str, str], view: View, user: U, rights: Rights
    ) -> Any:
        at = query.get("at", "")
        moment = await (view.past.moment(at) if at else view.moment())
        asker = self._access.name_of(user)
        if name == "device":
            names = (query.get(each, "") for each in ("driver", "pool", "name"))
            return await self._asking.answer(asker, partial(device_answer, moment, *names))
        kind, namespace, name = (query.get(each, "") for each in ("kind", "namespace", "name"))
        events: Sequence[Any] = ()
        if rights.allow(kind, namespace):
            events = await self.feed.events(kind, namespace, name)
        asked = partial(object_answer, moment, kind, namespace, name, events)
        return await self._asking.answer(asker, asked)

    async def _ask(self, name: str, body: Mapping[str, Any], view: View, user: U) -> Response:
        question = read_question(name, body)
        at = str(question.at)
        moment = await (view.past.moment(at) if at else view.moment())
        asker = self._access.name_of(user)
        try:
            answer = await self._asking.answer(asker, partial(question, moment))
        except NotFoundError:  # It may be new.
            if at or (fresh := await view.moment(is_fresh=True)) is moment:
                raise
            answer = await self._asking.answer(asker, partial(question, fresh))
        return Response(Body.plain_of(answer), 200, JSON, NO_STORE)

    # --- signing in ---------------------------------------------------------------------------

    def _login(self, request: Request, *, is_secure: bool) -> Response:
        if request.method != "GET":
            raise MethodError("Use GET to open a link.")
        cookie = self.logins.redeem(request.query.get("token", ""))
        if cookie is None:
            return message_page("This link no longer works", LINK_HELP, 403)
        name = self.logins.cookie_name(request.headers.get("host", ""))
        headers = (
            ("Location", f"{PREFIX}/"),
            ("Set-Cookie", cookie_header(name, cookie, is_secure=is_secure)),
            *NO_STORE,
        )
        return Response(b"", 303, "text/plain; charset=utf-8", headers)

    async def _link(
        self, request: Request, authenticate: Callable[[], Awaitable[U | None]]
    ) -> Response:
        """Return a new link for a user who has credentials other than a cookie."""
        if request.method != "POST":
            raise MethodError("Use POST to get a link.")
        if request.headers.get("content-type", "").partition(";")[0] != JSON:
            raise BadQuestionError("The content type must be application/json.")
        user = await authenticate()
        if user is None:
            raise NotSignedInError("Only users with credentials for the cluster get a link.")
        path = f"{PREFIX}/login?token={self.logins.link_token(user)}"
        return _json({"url": f"{self.public_url}{path}"}, request)

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
            raise NotFoundError("There is no such file.")
        return file_response(file, request)

    def _session(self, user: U, rights: Rights) -> dict[str, Any]:
        facts = self.feed.facts
        return {
            "user": self._access.name_of(user),
            "title": facts.title,
            "source": facts.source,
            "live": facts.is_live,
            "history": self.feed.history is not None,
            "readOnly": True,
            "version": __version__,
            "profiles": list(Catalogue().names),
            "forbidden": rights.forbidden,
            "whatIf": True,
            "now": str(self.feed.context.now),
        }


def _json(tree: Any, request: Request) -> Response:
    body = Body.of(tree)
    return json_response(body.plain, body.packed, request)


def _revision(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= REVISION_DIGITS):
        raise BadQuestionError(f"since: {text[:40]!r} is not a revision.")
    return int(text)
