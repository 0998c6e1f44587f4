"""The client: the contract on whatever transport; versions, selectors, retries, writes.

A server that has too much to do says how long to wait; then the request is sent again, a few times.
So is a read that the server could not answer for a moment, if it says when to come again. All else
is for the caller, who knows whether it still wants what it asked for.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode

import msgspec

from mooring.api.authentication import TokenRequest
from mooring.api.catalogue import from_hub
from mooring.api.codec import encode_json
from mooring.api.core import Binding, Pod, ServiceAccount
from mooring.client.contract import Event, Page
from mooring.client.decoding import (
    read_event,
    read_lines,
    read_list,
    read_object,
    read_plain,
)
from mooring.client.endpoints import Endpoint, Endpoints, binding_path
from mooring.client.errors import (
    ClientError,
    ConflictError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
    error_of,
    read_status,
)
from mooring.client.transport import JSON, Answer, Request, Transport
from mooring.client.writes import Apply, Create, Delete, Patch, Target, Update
from mooring.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

T = TypeVar("T")

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

TRIES_MAX = 5
WAIT_S_MAX = 30.0
WATCH_S = 540  # how long a watch is to last; servers end it then


class ApiClient:
    """Reads and writes objects through a transport."""

    def __init__(
        self,
        transport: Transport,
        *,
        manager: str = "mooring",
        clock: Clock = REAL,
        watch_s: int = WATCH_S,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._watch_s = watch_s
        self._managed = f"fieldManager={quote(manager, safe='')}"
        self._endpoints = Endpoints(self._fetch)

    async def __aenter__(self) -> ApiClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close what is open."""
        await self._transport.close()

    # --- reading ----------------------------------------------------------------------------------

    async def get(self, struct: type[T], namespace: str, name: str) -> T | None:
        """Return an object, or None when it is not there."""
        endpoint = await self._endpoint(struct)
        try:
            answer = await self._ask(Request("GET", endpoint.object(namespace, name)))
        except NotFoundError:
            return None
        return cast("T", read_object(answer.body, endpoint))

    async def list(
        self,
        struct: type[Any],
        namespace: str = "",
        *,
        limit: int = 0,
        rest: str = "",
        fields: str = "",
        labels: str = "",
    ) -> Page:
        """Return objects of a kind, of all namespaces unless one is given."""
        endpoint = await self._endpoint(struct)
        asked = {"limit": limit or "", "continue": rest}
        query = _query({**asked, "fieldSelector": fields, "labelSelector": labels})
        try:
            answer = await self._ask(Request("GET", endpoint.collection(namespace), query))
        except NotFoundError:
            self._endpoints.forget(struct)  # a server that was upgraded has another version
            raise
        return read_list(answer.body, endpoint)

    async def watch(
        self,
        struct: type[Any],
        namespace: str = "",
        *,
        after: str,
        fields: str = "",
        labels: str = "",
    ) -> AsyncGenerator[Event, None]:
        """Yield what happens after a resource version, until the server ends it."""
        endpoint = await self._endpoint(struct)
        asked = {"watch": "1", "resourceVersion": after, "allowWatchBookmarks": "true"}
        more = {"timeoutSeconds": self._watch_s, "fieldSelector": fields, "labelSelector": labels}
        request = Request("GET", endpoint.collection(namespace), _query({**asked, **more}))
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
        """Carry out a write and return the object as it is stored now."""
        match write:
            case Create(value=Binding() as binding):
                path = binding_path(await self._endpoint(Pod), binding)
                await self._ask(Request("POST", path, self._managed, encode_json(binding)))
                return None
            case Create(value=TokenRequest() as wish):
                return await self._token(wish)
            case Create(value=value):
                endpoint = await self._endpoint(type(value))
                path = endpoint.collection(value.metadata.namespace)
                return await self._write("POST", path, _encoded(value, endpoint), endpoint)
            case Update(value=value, subresource=subresource):
                endpoint = await self._endpoint(type(value))
                path = endpoint.object(value.metadata.namespace, value.metadata.name, subresource)
                return await self._write("PUT", path, _encoded(value, endpoint), endpoint)
            case Patch(target=target, body=body, subresource=subresource):
                endpoint = await self._endpoint(target.struct)
                path = endpoint.object(target.namespace, target.name, subresource)
                data = msgspec.json.encode(_with_uid(body, target))
                try:
                    return await self._write("PATCH", path, data, endpoint, MERGE_PATCH)
                except InvalidError as error:
                    raise _conflict_of_uid(error) from None
            case Apply():
                return await self._apply(write)
            case Delete():
                return await self._delete(write)

    async def _apply(self, write: Apply) -> Any:
        target = write.target
        endpoint = await self._endpoint(target.struct)
        path = endpoint.object(target.namespace, target.name, write.subresource)
        asked = {"fieldManager": write.manager, "force": "true" if write.force else ""}
        kind = endpoint.kind
        body = {**_with_uid(write.body, target), "apiVersion": kind.api_version, "kind": kind.name}
        request = Request("PATCH", path, _query(asked), msgspec.json.encode(body), APPLY_PATCH)
        return read_object((await self._ask(request)).body, endpoint)

    async def _token(self, wish: TokenRequest) -> TokenRequest:
        """Return a wish for a token of the account that it names, granted."""
        accounts = await self._endpoint(ServiceAccount)
        path = accounts.object(wish.metadata.namespace, wish.metadata.name, "token")
        answer = await self._ask(Request("POST", path, self._managed, encode_json(wish)))
        return read_plain(answer.body, TokenRequest)

    async def _delete(self, write: Delete) -> Any:
        target = write.target
        endpoint = await self._endpoint(target.struct)
        options: dict[str, Any] = {}
        wanted = {"uid": target.uid, "resourceVersion": write.revision}
        if any(wanted.values()):
            options["preconditions"] = {key: value for key, value in wanted.items() if value}
        if write.grace_s is not None:
            options["gracePeriodSeconds"] = write.grace_s
        if write.propagation:
            options["propagationPolicy"] = write.propagation
        body = msgspec.json.encode(options) if options else b""
        path = endpoint.object(target.namespace, target.name)
        answer = await self._ask(Request("DELETE", path, "", body))
        return _object_or_none(answer, endpoint)

    async def _write(
        self, method: str, path: str, body: bytes, endpoint: Endpoint, content_type: str = JSON
    ) -> Any:
        answer = await self._ask(Request(method, path, self._managed, body, content_type))
        return read_object(answer.body, endpoint)

    # --- requests ---------------------------------------------------------------------------------

    async def ask(self, request: Request) -> Answer:
        """Return the answer to any request, or raise ClientError: for kinds that have no struct."""
        return await self._ask(request)

    async def _endpoint(self, struct: type[Any]) -> Endpoint:
        return self._endpoints.find(struct) or await self._endpoints.ask(struct)

    async def _fetch(self, path: str) -> bytes:
        return (await self._ask(Request("GET", path))).body

    async def _ask(self, request: Request) -> Answer:
        """Return an answer that is no refusal; sends again what may and should be."""
        is_renewed = False
        tries = 1
        while True:
            answer = await self._transport.ask(request)
            if answer.status < 300:
                return answer
            error = error_of(answer.status, answer.body, answer.retry_after)
            if answer.status == 401 and not is_renewed:
                is_renewed = True
                if await self._transport.renew():
                    continue
            wait_s = _wait_s(request, error)
            if wait_s is None or tries >= TRIES_MAX:
                raise error
            tries += 1
            await self._clock.sleep(wait_s)


def _wait_s(request: Request, error: ClientError) -> float | None:
    """Return how long to wait before a request is sent again; None if it is not."""
    wait_s = error.retry_after_s
    if wait_s is None or wait_s > WAIT_S_MAX:
        return None
    if error.code == 429 or (error.code >= 500 and request.is_safe):
        return max(wait_s, 0.0)
    return None


def _query(values: dict[str, Any]) -> str:
    return urlencode({key: value for key, value in values.items() if value})


def _encoded(value: Any, endpoint: Endpoint) -> bytes:
    if endpoint.is_hub or value.api_version == endpoint.kind.api_version:
        return encode_json(value)
    return encode_json(from_hub(value, endpoint.kind.api_version))


def _with_uid(body: dict[str, Any], target: Target) -> dict[str, Any]:
    """Return a patch that only meets the object that was meant."""
    if not target.uid:
        return body
    metadata = body.get("metadata") or {}
    return {**body, "metadata": {**metadata, "uid": target.uid}}


def _conflict_of_uid(error: InvalidError) -> ClientError:
    """Return that another object has the name by now, which servers call invalid."""
    if any(cause.field == "metadata.uid" for cause in error.causes):
        return ConflictError(error.message, code=409, reason="Conflict", causes=error.causes)
    return error


def _object_or_none(answer: Answer, endpoint: Endpoint) -> Any:
    if read_status(answer.body).kind == "Status":
        return None
    return read_object(answer.body, endpoint)
