"""The Client on any transport: versions, selectors, retries, writes.

An overloaded server says how long to wait (429); then the request is sent again, a few times. So is
a read that failed (5xx), if the server says when to retry. All other errors are for the caller, who
knows whether the request still makes sense.
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
from mooring.client.contract import JSON, Event, ObjectList, Request, Response, Transport
from mooring.client.decoder import read_event, read_lines, read_list, read_object, read_plain
from mooring.client.errors import (
    ClientError,
    ConflictError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
    error_of,
    read_status,
)
from mooring.client.rest_mapper import Endpoint, RESTMapper, binding_path
from mooring.client.writes import Apply, Create, Delete, Patch, Target, Update
from mooring.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

T = TypeVar("T")

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

TRIES_MAX = 5
WAIT_S_MAX = 30.0
WATCH_S = 540  # after which servers end a watch


class ApiClient:
    """Reads and writes objects through a transport."""

    def __init__(
        self, transport: Transport, *, manager: str = "mooring", clock: Clock = REAL
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
            response = await self._ask(Request("GET", endpoint.object(namespace, name)))
        except NotFoundError:
            return None
        return cast("T", read_object(response.body, endpoint))

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
        match write:
            case Create(value=Binding() as binding):
                path = binding_path(await self.endpoint(Pod), binding)
                await self._ask(Request("POST", path, self._managed, encode_json(binding)))
                return None
            case Create(value=TokenRequest() as token_request):
                return await self._token(token_request)
            case Create(value=value):
                endpoint = await self.endpoint(type(value))
                path = endpoint.collection(value.metadata.namespace)
                return await self._write("POST", path, _encoded(value, endpoint), endpoint)
            case Update(value=value, subresource=subresource):
                endpoint = await self.endpoint(type(value))
                path = endpoint.object(value.metadata.namespace, value.metadata.name, subresource)
                return await self._write("PUT", path, _encoded(value, endpoint), endpoint)
            case Patch(target=target, body=body, subresource=subresource):
                endpoint = await self.endpoint(target.struct)
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
        endpoint = await self.endpoint(target.struct)
        path = endpoint.object(target.namespace, target.name, write.subresource)
        query = {"fieldManager": write.manager, "force": "true" if write.force else ""}
        kind = endpoint.kind
        body = {**_with_uid(write.body, target), "apiVersion": kind.api_version, "kind": kind.name}
        request = Request("PATCH", path, _query(query), msgspec.json.encode(body), APPLY_PATCH)
        return read_object((await self._ask(request)).body, endpoint)

    async def _token(self, request: TokenRequest) -> TokenRequest:
        """Request a token for the service account that the request names."""
        accounts = await self.endpoint(ServiceAccount)
        path = accounts.object(request.metadata.namespace, request.metadata.name, "token")
        response = await self._ask(Request("POST", path, self._managed, encode_json(request)))
        return read_plain(response.body, TokenRequest)

    async def _delete(self, write: Delete) -> Any:
        target = write.target
        endpoint = await self.endpoint(target.struct)
        options: dict[str, Any] = {}
        preconditions = {"uid": target.uid, "resourceVersion": write.revision}
        if any(preconditions.values()):
            options["preconditions"] = {key: value for key, value in preconditions.items() if value}
        if write.grace_s is not None:
            options["gracePeriodSeconds"] = write.grace_s
        if write.propagation:
            options["propagationPolicy"] = write.propagation
        body = msgspec.json.encode(options) if options else b""
        path = endpoint.object(target.namespace, target.name)
        response = await self._ask(Request("DELETE", path, "", body))
        return _object_or_none(response, endpoint)

    async def _write(
        self, method: str, path: str, body: bytes, endpoint: Endpoint, content_type: str = JSON
    ) -> Any:
        response = await self._ask(Request(method, path, self._managed, body, content_type))
        return read_object(response.body, endpoint)

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
        is_renewed = False
        tries = 1
        while True:
            response = await self._transport.send(request)
            if response.status < 300:
                return response
            error = error_of(response.status, response.body, response.retry_after)
            if response.status == 401 and not is_renewed:
                is_renewed = True
                if await self._transport.renew():
                    continue
            wait_s = _wait_s(request, error)
            if wait_s is None or tries >= TRIES_MAX:
                raise error
            tries += 1
            await self._clock.sleep(wait_s)


def _wait_s(request: Request, error: ClientError) -> float | None:
    """Return the delay before a retry; None if there is none."""
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


def _object_or_none(response: Response, endpoint: Endpoint) -> Any:
    if read_status(response.body).kind == "Status":
        return None
    return read_object(response.body, endpoint)
