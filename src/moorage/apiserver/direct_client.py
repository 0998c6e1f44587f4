"""The client of programs in the server's process, which exchanges objects instead of messages.

    write ─ encoded once ─ user ─ seat ─ authorization ─ verb ─► the stored object
    list, watch ─ user ─ seat ─ authorization ─ entries ──────► the server's decoded objects

Programs have the same rights as over HTTP: they authenticate with a certificate or token, and
roles, flow control, admission, validation and field management apply. Only HTTP itself is skipped,
and encoding and decoding responses. Bodies are still encoded, because the server must know their
size, and must not share objects that a program may change later. Programs read the server's own
objects, which are frozen and shared by all readers.

Rare requests (tokens, reviews, discovery, subresources such as scale) are sent over ASGI. So are
all requests if the server has an audit log, which records messages.

# slice: the objects or events that are delivered before other tasks get a turn
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from moorage.apiserver.auth.authorizer import Sender
from moorage.apiserver.auth.users import User
from moorage.apiserver.http.app import PEER, Application
from moorage.apiserver.http.messages import Target
from moorage.apiserver.http.status import (
    Status,
    StatusError,
    timed_out,
    too_large,
)
from moorage.apiserver.resources import Resource
from moorage.apiserver.verbs.dispatch import verb_of
from moorage.apiserver.verbs.resource_request import ResourceRequest
from moorage.apiserver.verbs.watch import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, WatchEvent
from moorage.client.api_client import BINDING, WATCH_S, ApiClient, ObjectCall, encoded
from moorage.client.client_factory import Tokens
from moorage.client.contract import Added, Bookmark, Event, ObjectList, Removed
from moorage.client.errors import ClientError, StatusCause, make_error
from moorage.client.http.credentials import Credentials, StaticCredentials, token_credentials
from moorage.client.in_process import InProcessTransport
from moorage.client.rest_mapper import Endpoint
from moorage.kit.clock import REAL, Clock

T = TypeVar("T")

AUTHENTICATED_S = 10.0  # how long an authentication is cached, as for tokens in Kubernetes
SLICE_OBJECTS = 50
DIRECT_PARTS = ("", "status", BINDING)  # subresources


def direct_client(
    application: Application,
    *,
    manager: str = "moorage",
    certificate: bytes | None = None,
    tokens: Tokens | None = None,
    clock: Clock = REAL,
) -> DirectClient:
    """Return a client for a server in this process, with a DER certificate or with tokens."""
    credentials = StaticCredentials() if tokens is None else token_credentials(tokens, clock=clock)
    return DirectClient(
        application, Identity(certificate, credentials), manager=manager, clock=clock
    )


class Identity(NamedTuple):
    """What a client authenticates with."""

    certificate: bytes | None
    credentials: Credentials


class DirectClient(ApiClient):
    """Reads and writes objects by calls of the server's router."""

    def __init__(
        self, application: Application, identity: Identity, *, manager: str, clock: Clock
    ) -> None:
        transport = InProcessTransport(
            application,
            scope={} if identity.certificate is None else {PEER: identity.certificate},
            agent=manager,
            credentials=identity.credentials,
        )
        super().__init__(transport, manager=manager, clock=clock)
        self._router, self._limits = application.router, application.limits
        self._deadlines = application.deadlines
        self._identity = identity
        self._agent = manager
        self._known: tuple[object, User, float] | None = None  # by what, who, until when

    # --- reading ----------------------------------------------------------------------------------

    async def list(
        self,
        struct: type[Any],
        namespace: str = "",
        *,
        limit: int = 0,
        rest: str = "",
        fields: str = "",
        labels: str = "",
    ) -> ObjectList:
        """Return objects of a kind, in their stored form if some cannot be decoded."""
        endpoint = await self.endpoint(struct)
        resource = self._resource(endpoint)
        found = None
        if resource is not None and not self._router.is_audited:
            endpoint.collection(namespace)  # raises BadRequestError
            query = {
                "limit": str(limit or ""),
                "continue": rest,
                "fieldSelector": fields,
                "labelSelector": labels,
            }
            target = _target(endpoint, namespace)
            send = partial(self._list_directly, target, resource, _wanted(query))
            found = await self._sent(send, is_safe=True)
        if found is not None:
            return found
        return await super().list(
            struct, namespace, limit=limit, rest=rest, fields=fields, labels=labels
        )

    async def _list_directly(
        self, target: Target, resource: Resource, query: Mapping[str, str]
    ) -> ObjectList | None:
        """Return objects, or None if one of them cannot be decoded."""
        request = await self._request(target, resource, query=query)
        page = await self._router.list_directly(request)
        registry = self._router.server.registry
        values: list[Any] = []
        for entry in page.entries:
            value = registry.find_readable(resource, entry)
            if value is None:
                return None
            values.append(value)
            if len(values) % SLICE_OBJECTS == 0:
                await asyncio.sleep(0)
        return ObjectList(tuple(values), str(page.revision), page.continue_)

    async def watch(
        self,
        struct: type[Any],
        namespace: str = "",
        *,
        after: str,
        fields: str = "",
        labels: str = "",
    ) -> AsyncGenerator[Event, None]:
        """Yield events after a resource version, until the server ends the watch."""
        endpoint = await self.endpoint(struct)
        resource = self._resource(endpoint)
        if self._router.is_audited or resource is None:
            sent = super().watch(struct, namespace, after=after, fields=fields, labels=labels)
            async for event in sent:
                yield event
            return
        endpoint.collection(namespace)  # raises BadRequestError
        query = {
            "resourceVersion": after,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
            "fieldSelector": fields,
            "labelSelector": labels,
        }
        try:
            user_request = await self._request(
                _target(endpoint, namespace), resource, query=_wanted(query)
            )
            batches = self._router.watch_directly(user_request)
            try:
                async for batch in batches:
                    for number, notice in enumerate(batch):
                        if number and number % SLICE_OBJECTS == 0:
                            await asyncio.sleep(0)
                        is_change = notice.type in (ADDED, MODIFIED)
                        yield Added(notice.value) if is_change else _event(notice)
            finally:
                await batches.aclose()
        except StatusError as error:
            if error.status.code == 401:
                await self._transport.renew()  # for the next watch
            raise error_of_status(error.status) from None

    # --- writing, and reading one object ----------------------------------------------------------

    async def _call(self, call: ObjectCall) -> Any:
        resource = self._resource(call.endpoint)
        is_direct = resource is not None and call.subresource in DIRECT_PARTS
        if not is_direct or self._router.is_audited:
            return await super()._call(call)
        assert resource is not None
        _ = call.path  # raises BadRequestError
        target = _target(call.endpoint, call.namespace, call.name, call.subresource)
        verb = verb_of(call.method, call.name, {})

        async def send() -> Any:
            if len(call.body) > self._limits.body_bytes_max:
                raise too_large(self._limits.body_bytes_max)
            request = await self._request(target, resource, call)
            return await self._router.perform_directly(request, verb)

        return await self._sent(send, is_safe=verb == "get")

    @property
    def joins_status(self) -> bool:
        """Whether the client can update an object together with its status in one write."""
        return not self._router.is_audited

    async def _update_with_status(self, value: Any) -> Any:
        endpoint, named = await self.endpoint(type(value)), value.metadata
        resource = self._resource(endpoint)
        if resource is None or not self.joins_status:
            return await super()._update_with_status(value)
        where = (endpoint, named.namespace, named.name, "")
        call = ObjectCall("PUT", *where, self._managed, encoded(value, endpoint))
        _ = call.path  # raises BadRequestError
        target = _target(endpoint, named.namespace, named.name)

        async def send() -> Any:
            if len(call.body) > self._limits.body_bytes_max:
                raise too_large(self._limits.body_bytes_max)
            request = await self._request(target, resource, call)
            return await self._router.update_with_status_directly(request)

        return await self._sent(send, is_safe=False)

    async def _sent(self, send: Callable[[], Awaitable[T]], *, is_safe: bool) -> T:
        """Return the result of a request, with the errors of a client."""

        async def attempt() -> T:
            try:
                with self._deadlines.begin():
                    return await send()
            except StatusError as error:
                raise error_of_status(error.status) from None
            except TimeoutError:
                raise error_of_status(timed_out().status) from None

        return await self._repeated(attempt, is_safe=is_safe)

    def _resource(self, endpoint: Endpoint) -> Resource | None:
        kind = endpoint.kind
        return self._router.server.resources.find(kind.group, kind.version, kind.plural)

    async def _request(
        self,
        target: Target,
        resource: Resource,
        call: ObjectCall | None = None,
        query: Mapping[str, str] | None = None,
    ) -> ResourceRequest:
        user = await self._user()
        if call is None:
            return ResourceRequest(target, resource, user, query or {}, self._agent, is_direct=True)
        return ResourceRequest(
            target,
            resource,
            user,
            _fields(call.query),
            self._agent,
            call.content_type,
            call.body,
            is_direct=True,
        )

    async def _user(self) -> User:
        """Return our own user; the server checks the credentials every few seconds."""
        credentials = self._identity.credentials
        auth = credentials.current or await credentials.fetch()
        now_s = self._clock.monotonic()
        if self._known is not None and self._known[0] is auth and now_s < self._known[2]:
            return self._known[1]
        headers = dict(_header(line) for line in auth.headers.split("\r\n") if line)
        sender = Sender(self._identity.certificate, tuple(headers.items()))
        user = await self._router.authenticate(headers, sender)
        self._known = (auth, user, now_s + AUTHENTICATED_S)
        return user


def error_of_status(status: Status) -> ClientError:
    """Return the error that a client over HTTP would raise for a Status."""
    details = status.details
    causes: tuple[StatusCause, ...] = ()
    wait_s = None
    if details is not None:
        causes = tuple(
            StatusCause(each.reason, each.message, each.field) for each in details.causes
        )
        wait_s = float(details.retry_after_seconds) if details.retry_after_seconds else None
    return make_error(
        status.code, status.message, reason=status.reason, causes=causes, retry_after_s=wait_s
    )


def _event(notice: WatchEvent) -> Event:
    """Return the event of a client, or raise the error that ends the watch."""
    if notice.type == BOOKMARK:
        return Bookmark(str(notice.revision))
    if notice.type == ERROR:
        assert notice.status is not None
        raise StatusError(notice.status)
    return Removed(notice.value) if notice.type == DELETED else Added(notice.value)


def _target(endpoint: Endpoint, namespace: str, name: str = "", subresource: str = "") -> Target:
    kind = endpoint.kind
    where = namespace if kind.namespaced else ""
    return Target(kind.group, kind.version, kind.plural, where, name, subresource)


@lru_cache(maxsize=256)
def _fields(query: str) -> dict[str, str]:
    return dict(parse_qsl(query, keep_blank_values=True))


def _wanted(query: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(": ")
    return name.lower(), value
