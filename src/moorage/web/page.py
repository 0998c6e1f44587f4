"""The page: routes requests, and shows each user what they may see.

request ─ host, origin ─ who is it ─ rights ─► view ─► fleet, events
                            │                  └─► questions ─► object, device, explain, …
                            └─ login: a link that works once becomes a cookie
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from moorage import __version__
from moorage.apiserver.http.messages import JSON, Request, Response, StreamingResponse
from moorage.apiserver.worker_threads import Turns
from moorage.hardware.catalogue import Catalogue
from moorage.insight.messages import listed
from moorage.web.asking import Asking
from moorage.web.errors import (
    BadQuestionError,
    BusyError,
    ForbiddenError,
    MethodError,
    NotFoundError,
    NotSignedInError,
    PageError,
)
from moorage.web.feed import Feed
from moorage.web.login import Logins, cookie_header
from moorage.web.messages import (
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
from moorage.web.past import Past
from moorage.web.questions.details import KINDS, device_answer, object_answer
from moorage.web.questions.moment import ShownMoment
from moorage.web.questions.reading import (
    QUESTIONS,
    AnyQuestion,
    WhatIfQuestion,
    read_question,
)
from moorage.web.rights import ALL, Rights
from moorage.web.static_files import INDEX, StaticFile, static_files
from moorage.web.view import View, Views

LOG = logging.getLogger(__name__)
U = TypeVar("U")
PREFIX: Final = "/ui"
LINK_HELP: Final = (
    "A link works once and for ten minutes. Run `moor ui` where the cluster runs: it prints a "
    "new one."
)
REVISION_DIGITS: Final = 19
EXPECTED_MAX: Final = 8  # who has opened the page and has not asked for the fleet yet
EXPECTED_S: Final = 60.0
PLAIN: Final = "text/plain; charset=utf-8"
READS_MAX: Final = 2  # fleets and moments that are made at once, each for another user
CHECK_S: Final = 10.0  # how often a stream of events looks at its viewer's rights
EVENTS_S: Final = 1800.0  # how long such a stream lasts, as watches do
STREAMS_MAX: Final = 20  # of events, of one user
EVENT: Final = "Event"
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
        self._clock = clock
        self.logins: Logins[U] = Logins(clock)
        self.views = Views(feed)
        self._asking = Asking()
        self._expected: set[asyncio.Task[None]] = set()
        self._reads = Turns(READS_MAX)
        self._streams: Counter[str] = Counter()
        self.public_url = ""  # where links lead to
        self.feed = feed
        self._access = access
        self._hosts = hosts
        self._files = static_files() if files is None else files

    @property
    def questions(self) -> int:
        """How many questions wait or are under way."""
        return self._asking.busy

    async def close(self) -> None:
        """Stop following the source, and accept no more questions."""
        self._asking.close()
        for task in tuple(self._expected):
            task.cancel()
        await asyncio.gather(*self._expected, return_exceptions=True)
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
        user = self._signed_in(request)
        if user is None:
            user = await authenticate()
        if user is None:
            raise NotSignedInError("Nobody is signed in. Run `moor ui`: it prints a new link.")
        answer = await self._answer_user(path.removeprefix("/"), request, user)
        return answer._replace(user=self._access.name_of(user))

    async def _answer_user(self, name: str, request: Request, user: U) -> Answer:
        rights = await self._access.rights_of(user)
        if name in QUESTIONS:
            if request.method != "POST":
                raise MethodError(f"Ask {name} with POST.")
            question = read_question(name, check_post(request))
            if missing := rights.missing(question.needs):
                raise ForbiddenError(
                    f"{name} reads {listed(missing)} of the whole cluster: ask an administrator "
                    "for the right to list them."
                )
            return await self._ask(question, request, await self.views.get(rights), user)
        if request.method not in ("GET", "HEAD"):
            raise MethodError(f"Use GET for {name[:40]}.")
        return await self._get(name, request, await self.views.get(rights), user, rights)

    async def _get(
        self, name: str, request: Request, view: View, user: U, rights: Rights
    ) -> Answer:
        match name:
            case "session":
                return _json(self._session(user, rights), request)
            case "fleet":
                at = request.query.get("at", "")
                async with self._turn(user, view.past if at else None):
                    body = await (view.past.body(at) if at else view.body())
                return json_response(body.plain, body.packed, request)
            case "events":
                since = _revision(request.query.get("since", "0"))
                if self._streams[self._access.name_of(user)] >= STREAMS_MAX:
                    raise BusyError("Too many pages of this user follow the fleet; close some.")
                events = self._while_allowed(view.events(since), request, user, rights)
                return StreamingResponse(events, "text/event-stream", NO_STORE)
            case "object" | "device":
                return _json(await self._detail(name, request.query, view, user, rights), request)
            case "history":
                async with self._turn(user, view.past):
                    return _json(await view.past.tree(), request)
        raise NotFoundError(f"There is no {name[:100]!r} here.")

    async def _while_allowed(
        self, events: AsyncGenerator[bytes], request: Request, user: U, rights: Rights
    ) -> AsyncIterator[bytes]:
        """Yield events until the user is signed out or has other rights, or for half an hour.

        Browsers connect again, and find out what they may see now.
        """
        begun_s = checked_s = self._clock()
        is_by_cookie = self._signed_in(request) is not None
        name = self._access.name_of(user)
        self._streams[name] += 1
        try:
            async with aclosing(events):
                async for event in events:
                    now_s = self._clock()
                    if now_s - begun_s >= EVENTS_S or self._streams[name] > STREAMS_MAX:
                        return
                    if now_s - checked_s >= CHECK_S:
                        checked_s = now_s
                        if is_by_cookie and self._signed_in(request) is None:
                            return
                        if await self._access.rights_of(user) != rights:
                            return
                    yield event
        finally:
            self._streams[name] -= 1
            if not self._streams[name]:
                del self._streams[name]

    # --- questions ----------------------------------------------------------------------------

    async def _detail(
        self, name: str, query: Mapping[str, str], view: View, user: U, rights: Rights
    ) -> Any:
        at = query.get("at", "")
        asker = self._access.name_of(user)
        moment = await self._moment(view, at, user)
        if name == "device":
            names = (query.get(each, "") for each in ("driver", "pool", "name"))
            return await self._asking.answer(asker, partial(device_answer, moment, *names))
        kind, namespace, name = (query.get(each, "") for each in ("kind", "namespace", "name"))
        events: Sequence[Any] = ()
        if kind in KINDS and rights.allow(kind, namespace) and rights.allow(EVENT, namespace):
            events = await self.feed.events(kind, namespace, name)
        asked = partial(object_answer, moment, kind, namespace, name, events)
        return await self._asking.answer(asker, asked)

    async def _ask(self, question: AnyQuestion, request: Request, view: View, user: U) -> Response:
        at = str(question.at)
        asker = self._access.name_of(user)
        moment = await self._moment(view, at, user)
        try:
            answer = await self._asking.answer(asker, partial(question, moment), request.gone)
        except NotFoundError:  # It may be new.
            if at or (fresh := await view.moment(is_fresh=True)) is moment:
                raise
            answer = await self._asking.answer(asker, partial(question, fresh), request.gone)
        return Response(Body.plain_of(answer), 200, JSON, NO_STORE)

    async def _moment(self, view: View, at: str, user: U) -> ShownMoment:
        if not at:
            return await view.moment()
        async with self._turn(user, view.past):
            return await view.past.moment(at)

    @asynccontextmanager
    async def _turn(self, user: U, past: Past | None = None) -> AsyncIterator[None]:
        """Hold the turn of a user to read; wait for the past before it, as others can read then."""
        if past is not None:
            await past.begun()
        async with self._reads.turn(self._access.name_of(user)):
            yield

    # --- signing in ---------------------------------------------------------------------------

    def _signed_in(self, request: Request) -> U | None:
        """Return who has the cookie of a request, None if nobody has."""
        headers = request.headers
        return self.logins.user(headers.get("cookie", ""), headers.get("host", ""))

    def _login(self, request: Request, *, is_secure: bool) -> Response:
        if request.method != "GET":
            raise MethodError("Use GET to open a link.")
        cookie = self.logins.redeem(request.query.get("token", ""))
        if cookie is None:
            if self._signed_in(request) is not None:  # who opens a link again has a cookie
                return Response(b"", 303, PLAIN, (("Location", f"{PREFIX}/"), *NO_STORE))
            return message_page("This link does not work any more", LINK_HELP, 403)
        host = request.headers.get("host", "")
        name = self.logins.cookie_name(host)
        self._expect(self.logins.user(f"{name}={cookie}", host))
        headers = (
            ("Location", f"{PREFIX}/"),
            ("Set-Cookie", cookie_header(name, cookie, is_secure=is_secure)),
            *NO_STORE,
        )
        return Response(b"", 303, PLAIN, headers)

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

    def _expect(self, user: U | None) -> None:
        """Begin to make the fleet for whoever will ask for it once the page is loaded."""
        if user is None or len(self._expected) >= EXPECTED_MAX:
            return

        async def look() -> None:
            with suppress(PageError, TimeoutError):
                async with asyncio.timeout(EXPECTED_S):
                    view = await self.views.get(await self._access.rights_of(user))
                    async with self._turn(user):
                        await view.body()

        task = asyncio.create_task(look())
        self._expected.add(task)
        task.add_done_callback(self._expected.discard)

    # --- the page itself ----------------------------------------------------------------------

    def _static(self, path: str, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise MethodError(f"The page does not take {request.method[:20]}.")
        if not path:
            headers = (("Location", f"{PREFIX}/"), *SAFE)
            return Response(b"", 308, PLAIN, headers)
        name = path.removeprefix("/static/") if path != "/" else INDEX
        if name == INDEX:
            self._expect(self._signed_in(request))
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
            "forbidden": rights.forbidden or self.feed.unread.resources,
            "whatIf": not rights.missing(WhatIfQuestion.needs),
            "now": str(self.feed.context.now),
        }


def _json(tree: Any, request: Request) -> Response:
    body = Body.of(tree)
    return json_response(body.plain, body.packed, request)


def _revision(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= REVISION_DIGITS):
        raise BadQuestionError(f"since: {text[:40]!r} is not a revision.")
    return int(text)
