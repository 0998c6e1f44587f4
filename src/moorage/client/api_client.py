"""The Client on any transport: versions, selectors, retries, writes.

An overloaded server says how long to wait (429); then the request is sent again, a few times. So is
a read that failed (5xx), if the server says when to retry. All other errors are for the caller, who
knows whether the request still makes sense.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import lru_cache
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moorage.api.authentication import TokenRequest
from moorage.api.catalogue import from_hub
from moorage.api.codec import encode_json
from moorage.api.core import Binding, Pod, ServiceAccount
from moorage.client.contract import JSON, Event, ObjectList, Request, Response, Transport
from moorage.client.decoder import read_event, read_lines, read_list, read_object, read_plain
from moorage.client.errors import (
    ClientError,
    ConflictError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
    error_of,
    read_status,
)
from moorage.client.rest_mapper import Endpoint, RESTMapper
from moorage.client.writes import Apply, Create, Delete, Patch, Target, Update
from moorage.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

T = TypeVar("T")

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

TRIES_MAX = 5
WAIT_S_MAX = 30.0
WATCH_S = 540  # after which servers end a watch
BINDING = "binding"


class ObjectCall(Struct, frozen=True):
    """A request about one object, which answers with the object or a Status."""

    method: str
    endpoint: Endpoint
    namespace: str
    name: str = ""
    subresource: str = ""
    query: str = ""
    body: bytes = b""
    content_type: str = JSON

    @property
    def path(self) -> str:
        """The path, quoted; raises BadRequestError if there is none for the names."""
        if self.method == "POST" and not self.subresource:
            return self.endpoint.collection(self.namespace)
        return self.endpoint.object(self.namespace, self.name, self.subresource)

    @property
    def may_get_status(self) -> bool:
        """Whether the server may answer success with a Status."""
        return self.method == "DELETE" or self.subresource == BINDING


class ApiClient:
    """Reads and writes objects through a transport."""

    def __init__(
        self, transport: Transport, *, manager: str = "moorage", clock: Clock = REAL
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._managed = f"fieldManager={quote(manager, safe='')}"
        self._mapper = RESTMapper(self._fetch)

    async def __aenter__(self) -> ApiClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()

    # --- reading ----------------------------------------------------------------------------------

    async def get(self, struct: type[T], namespace: str, name: str) -> T | None:
        """Return an object, or None if it does not exist."""
        endpoint = await self.endpoint(struct)
        try:
            return cast("T", await self._call(ObjectCall("GET", endpoint, namespace, name)))
        except NotFoundError:
            return None

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
        """Return objects of a kind, from all namespaces unless one is given."""
        endpoint = await self.endpoint(struct)
        paging = {"limit": limit or "", "continue": rest}
        query = _query({**paging, "fieldSelector": fields, "labelSelector": labels})
        try:
            response = await self._ask(Request("GET", endpoint.collection(namespace), query))
        except NotFoundError:
            self._mapper.forget(struct)  # an upgraded server may serve another version
            raise
        return read_list(response.body, endpoint)

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
        query = {"watch": "1", "resourceVersion": after, "allowWatchBookmarks": "true"}
        more = {"timeoutSeconds": WATCH_S, "fieldSelector": fields, "labelSelector": labels}
        request = Request("GET", endpoint.collection(namespace), _query({**query, **more}))
        try:
            async with self._transport.stream(request) as parts:
                async for line in read_lines(parts):
                    event = read_event(line, endpoint)
                    if event is not None:
                        yield event
        except UnauthorizedError:
            await self._transport.renew()  # for the next watch
            raise

    # --- writing ----------------------------------------------------------------------------------

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        """Carry out a write and return the stored object."""
        managed = self._managed
        match write:
            case Create(value=Binding() as binding):
                pods, named = await self.endpoint(Pod), binding.metadata
                where = (pods, named.namespace, named.name, BINDING)
                return await self._call(ObjectCall("POST", *where, managed, encode_json(binding)))
            case Create(value=TokenRequest() as token_request):
                return await self._token(token_request)
            case Create(value=value):
                endpoint = await self.endpoint(type(value))
                where = (endpoint, value.metadata.namespace, "", "")
                return await self._call(
                    ObjectCall("POST", *where, managed, encoded(value, endpoint))
                )
            case Update(with_status=True):
                return await self._update_with_status(write.value)
            case Update(value=value, subresource=subresource):
                endpoint, named = await self.endpoint(type(value)), value.metadata
                where = (endpoint, named.namespace, named.name, subresource)
                return await self._call(
                    ObjectCall("PUT", *where, managed, encoded(value, endpoint))
                )
            case Patch(target=target, body=body, subresource=subresource):
                where = await self._place(target, subresource)
                data = msgspec.json.encode(_with_uid(body, target))
                try:
                    return await self._call(ObjectCall("PATCH", *where, managed, data, MERGE_PATCH))
                except InvalidError as error:
                    raise _conflict_of_uid(error) from None
            case Apply():
                return await self._apply(write)
            case Delete():
                return await self._delete(write)

    @property
    def joins_status(self) -> bool:
        """Whether an object is updated together with its status in one write."""
        return False

    async def _update_with_status(self, value: Any) -> Any:
        """Update an object and then its status, and return what is stored."""
        stored = await self.write(Update(value))
        return await self.write(Update(replace(stored, status=value.status), "status"))

    async def _place(self, target: Target, subresource: str = "") -> tuple[Endpoint, str, str, str]:
        endpoint = await self.endpoint(target.struct)
        return endpoint, target.namespace, target.name, subresource

    async def _apply(self, write: Apply) -> Any:
        where = await self._place(write.target, write.subresource)
        query = _apply_query(write.manager, is_forced=write.force)
        kind = where[0].kind
        typed = {"apiVersion": kind.api_version, "kind": kind.name}
        body = msgspec.json.encode({**_with_uid(write.body, write.target), **typed})
        return await self._call(ObjectCall("PATCH", *where, query, body, APPLY_PATCH))

    async def _token(self, request: TokenRequest) -> TokenRequest:
        """Request a token for the service account that the request names."""
        accounts = await self.endpoint(ServiceAccount)
        path = accounts.object(request.metadata.namespace, request.metadata.name, "token")
        response = await self._ask(Request("POST", path, self._managed, encode_json(request)))
        return read_plain(response.body, TokenRequest)

    async def _delete(self, write: Delete) -> Any:
        target = write.target
        options: dict[str, Any] = {}
        preconditions = {"uid": target.uid, "resourceVersion": write.revision}
        if any(preconditions.values()):
            options["preconditions"] = {key: value for key, value in preconditions.items() if value}
        if write.grace_s is not None:
            options["gracePeriodSeconds"] = write.grace_s
        if write.propagation:
            options["propagationPolicy"] = write.propagation
        body = msgspec.json.encode(options) if options else b""
        return await self._call(ObjectCall("DELETE", *await self._place(target), "", body))

    async def _call(self, call: ObjectCall) -> Any:
        """Return the object that the server answers with; None for a Status."""
        method, query, body = call.method, call.query, call.body
        response = await self._ask(Request(method, call.path, query, body, call.content_type))
        if call.may_get_status and read_status(response.body).kind == "Status":
            return None
        return read_object(response.body, call.endpoint)

    # --- requests ---------------------------------------------------------------------------------

    async def send(self, request: Request) -> Response:
        """Return the response to any request, or raise ClientError: for kinds without a struct."""
        return await self._ask(request)

    async def endpoint(self, struct: type[Any]) -> Endpoint:
        """Return where the server serves a kind; with `send`, for objects as plain JSON."""
        return self._mapper.find(struct) or await self._mapper.ask(struct)

    async def _fetch(self, path: str) -> bytes:
        return (await self._ask(Request("GET", path))).body

    async def _ask(self, request: Request) -> Response:
        """Return a successful response; retry where that is safe and useful."""

        async def send() -> Response:
            response = await self._transport.send(request)
            if response.status >= 300:
                raise error_of(response.status, response.body, response.retry_after)
            return response

        return await self._repeated(send, is_safe=request.is_safe)

    async def _repeated(self, send: Callable[[], Awaitable[T]], *, is_safe: bool) -> T:
        """Return the result of a request; send it again where that is safe and useful."""
        is_renewed = False
        tries = 1
        while True:
            try:
                return await send()
            except ClientError as error:
                if error.code == 401 and not is_renewed:
                    is_renewed = True
                    if await self._transport.renew():
                        continue
                wait_s = _wait_s(error, is_safe=is_safe)
                if wait_s is None or tries >= TRIES_MAX:
                    raise
            tries += 1
            await self._clock.sleep(wait_s)


def _wait_s(error: ClientError, *, is_safe: bool) -> float | None:
    """Return the delay before a retry; None if there is none."""
    wait_s = error.retry_after_s
    if wait_s is None or wait_s > WAIT_S_MAX:
        return None
    if error.code == 429 or (error.code >= 500 and is_safe):
        return max(wait_s, 0.0)
    return None


def _query(values: dict[str, Any]) -> str:
    return urlencode({key: value for key, value in values.items() if value})


@lru_cache(maxsize=256)
def _apply_query(manager: str, *, is_forced: bool) -> str:
    return _query({"fieldManager": manager, "force": "true" if is_forced else ""})


def encoded(value: Any, endpoint: Endpoint) -> bytes:
    """Return the body of an object, in the version of its endpoint."""
    if endpoint.is_hub or value.api_version == endpoint.kind.api_version:
        return encode_json(value)
    return encode_json(from_hub(value, endpoint.kind.api_version))


def _with_uid(body: dict[str, Any], target: Target) -> dict[str, Any]:
    """Return a patch with the uid as a precondition."""
    if not target.uid:
        return body
    metadata = body.get("metadata") or {}
    return {**body, "metadata": {**metadata, "uid": target.uid}}


def _conflict_of_uid(error: InvalidError) -> ClientError:
    """Return a conflict if another object has the name, which servers report as invalid."""
    if any(cause.field == "metadata.uid" for cause in error.causes):
        return ConflictError(error.message, code=409, reason="Conflict", causes=error.causes)
    return error
