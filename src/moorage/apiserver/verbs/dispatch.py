"""Dispatch of verbs: perform a request for a resource, and encode its response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from moorage.api.apps import SCALE, Scale
from moorage.api.go_integers import parse_int64
from moorage.api.meta import ListMeta
from moorage.apiserver.auth.token_requests import IssuedToken
from moorage.apiserver.http.messages import NO_CACHE, Response, StreamingResponse
from moorage.apiserver.http.negotiation import PROTOBUF, ObjectForm
from moorage.apiserver.http.response_encoder import (
    ResponseEncoder,
    as_bytes,
    read_include,
    warning_headers,
)
from moorage.apiserver.http.status import (
    Status,
    StatusDetails,
    bad_request,
    method_not_allowed,
    unknown_resource,
)
from moorage.apiserver.resources import subresource_of
from moorage.apiserver.server_context import ServerContext
from moorage.apiserver.verbs.delete import DeletedObject, delete, delete_collection
from moorage.apiserver.verbs.list import (
    ListOptions,
    ListPage,
    ReadingInTurn,
    check_watch,
    list_entries,
    size_of,
)
from moorage.apiserver.verbs.patch import patch
from moorage.apiserver.verbs.resource_request import ResourceRequest
from moorage.apiserver.verbs.selectors import read_selection
from moorage.apiserver.verbs.subresources import (
    SCALE_SUBRESOURCE,
    bind,
    evict,
    finalize,
    read_scale,
    request_token,
    write_scale,
)
from moorage.apiserver.verbs.watch import Batch, WatchOptions, open_watch
from moorage.apiserver.verbs.write import WrittenObject, create, replace_object
from moorage.apiserver.verbs.write_options import check_write_options
from moorage.apiserver.worker_threads import SMALL_BYTES_MAX

WATCH_TIMEOUT_MAX_S = 24 * 3600
LIMIT_MAX = 2**31 - 1
BINDINGS = "/registry/core/bindings/"
SLOW_SELECTOR_FACTOR = 2  # A requirement takes a dozen bytes, and longer than as many of JSON.

_INITIAL = "sendInitialEvents"

_METHODS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}


def verb_of(method: str, name: str, query: dict[str, str]) -> str:
    """Return the verb of a method; "" if it has none."""
    if method in ("GET", "HEAD") and not name:
        return "watch" if is_true(query, "watch") else "list"
    if method == "DELETE":
        return "delete" if name else "deletecollection"
    return _METHODS.get(method, "")


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Return whether a query sets a flag: to anything but false and 0."""
    return name in query and query[name].lower() not in ("0", "false")


def check_verb(request: ResourceRequest, verb: str) -> None:
    """Raise unless the resource or subresource supports the verb."""
    target, resource = request.target, request.resource
    if target.subresource:
        if target.subresource not in resource.subresources_in(target.version):
            raise unknown_resource()
        if verb not in subresource_of(target.subresource).verbs:
            raise method_not_allowed()
        return
    is_for_all = verb in ("create", "list", "deletecollection")
    is_misplaced = verb != "watch" and is_for_all == bool(target.name)
    if verb not in resource.verbs or is_misplaced:
        raise method_not_allowed()


async def perform(
    server: ServerContext, request: ResourceRequest, verb: str
) -> Response | StreamingResponse:
    """Perform a request and return the response."""
    check_write_options(request, verb)
    subresource = request.target.subresource
    encoder = _encoder(
        server, request
    )  # first: a request that cannot be answered must not be performed
    match verb:
        case "get" if subresource == SCALE_SUBRESOURCE:
            return _scale(server, request, await read_scale(server, request))
        case "update" | "patch" if subresource == SCALE_SUBRESOURCE:
            return _scale(
                server, request, await write_scale(server, request, is_patch=verb == "patch")
            )
        case "get":
            registry, target = server.registry, request.target
            value = await registry.get(request.resource, target.namespace, target.name)
            body = await _one(server, request, encoder, value)
            return Response(body, content_type=request.form.media)
        case "list":
            return await _list(server, request)
        case "watch":
            return await _watch(server, request)
        case "create" if subresource == "binding" or request.resource.prefix == BINDINGS:
            return _status(await bind(server, request), request)
        case "create" if subresource == "eviction":
            return _status(await evict(server, request), request)
        case "create" if subresource == "token":
            return _issued(await request_token(server, request), request)
        case "create":
            return await _written(server, request, encoder, await create(server, request))
        case "update" if subresource == "finalize":
            return await _written(server, request, encoder, await finalize(server, request))
        case "update":
            return await _written(server, request, encoder, await replace_object(server, request))
        case "patch":
            return await _written(server, request, encoder, await patch(server, request))
        case "delete":
            return await _deleted(server, request, encoder, await delete(server, request))
        case "deletecollection":
            selection = await _selection(server, request)
            deleted = await delete_collection(server, request, selection, _list_options(request))
            body = await server.workers.run(
                request.user.name, deleted.size, encoder.many, deleted.values, ListMeta()
            )
            headers = NO_CACHE + warning_headers(deleted.warnings)
            return Response(body, content_type=request.form.media, headers=headers)
    raise method_not_allowed()


async def perform_directly(server: ServerContext, request: ResourceRequest, verb: str) -> Any:
    """Perform a request about one object; return the object in its hub version.

    That is None for a binding, and for an object that is gone and not returned.
    """
    target = request.target
    match verb:
        case "get":
            return await server.registry.get(request.resource, target.namespace, target.name)
        case "create" if target.subresource == "binding":
            await bind(server, request)
            return None
        case "create":
            return (await create(server, request)).value
        case "update":
            return (await replace_object(server, request)).value
        case "patch":
            return (await patch(server, request)).value
        case "delete":
            deleted = await delete(server, request)
            is_returned = not deleted.is_gone or request.resource.returns_deleted
            return deleted.value if is_returned else None
    raise method_not_allowed()


# --- reads ----------------------------------------------------------------------------------------


def _encoder(server: ServerContext, request: ResourceRequest) -> ResponseEncoder:
    include = read_include(request.query.get("includeObject", ""))
    text_of = server.registry.text_of
    return ResponseEncoder(
        request.kind, request.form, server.now(), include, server.encoded_events, text_of
    )


async def _one(
    server: ServerContext, request: ResourceRequest, encoder: ResponseEncoder, value: Any
) -> bytes:
    """Return the encoding of an object, made in a worker thread if it is large."""
    if (text := encoder.known(value)) is not None:
        return text
    size = server.registry.size_of(value)
    return await server.workers.run(request.user.name, size, encoder.made, value)


async def _selection(server: ServerContext, request: ResourceRequest) -> Any:
    query, name = request.query, request.target.name
    fields = query.get("fieldSelector", "")
    if name and not fields:  # a watch of one object
        fields = f"metadata.name={name}"
    labels = query.get("labelSelector", "")
    selection = await server.workers.run(
        request.user.name,
        SLOW_SELECTOR_FACTOR * (len(labels) + len(fields)),
        read_selection,
        labels,
        fields,
        request.resource,
        request.target.version,
    )
    if name and selection.name != name:
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    return selection


def _list_options(request: ResourceRequest) -> ListOptions:
    query = request.query
    return ListOptions(
        limit=_number(query.get("limit", ""), LIMIT_MAX),
        continue_=query.get("continue", ""),
        revision=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        wants_initial=is_true(query, _INITIAL) if _INITIAL in query else None,
    )


async def list_page(server: ServerContext, request: ResourceRequest) -> ListPage:
    """Return the page of a list that a request asks for."""
    options = _list_options(request)
    return await list_entries(
        server.registry,
        request.resource,
        request.target.namespace,
        await _selection(server, request),
        options,
        ReadingInTurn(server.workers, request.user.name),
    )


async def _list(server: ServerContext, request: ResourceRequest) -> Response:
    encoder = _encoder(server, request)
    page = await list_page(server, request)
    metadata = ListMeta(
        resource_version=str(page.revision),
        continue_=page.continue_,
        remaining_item_count=page.remaining,
    )

    def encoded() -> tuple[bytes, tuple[str, ...]]:
        body = encoder.stored(page.entries, metadata)
        if body is not None:
            return body, ()
        registry, is_whole = server.registry, request.form.shape is ObjectForm.OBJECT
        read = registry.complete if is_whole else registry.readable
        values, warnings = read(request.resource, page.entries)
        return encoder.many(values, metadata), warnings

    body, warnings = await server.workers.run(request.user.name, size_of(page.entries), encoded)
    headers = NO_CACHE + warning_headers((*page.warnings, *warnings))
    return Response(body, content_type=request.form.media, headers=headers)


async def watch_batches(server: ServerContext, request: ResourceRequest) -> AsyncIterator[Batch]:
    """Return the events of the watch that a request asks for."""
    list_options = _list_options(request)
    timeout_s = _number(request.query.get("timeoutSeconds", ""), WATCH_TIMEOUT_MAX_S)
    check_watch(list_options)
    options = WatchOptions(
        revision=list_options.revision,
        allows_bookmarks=is_true(request.query, "allowWatchBookmarks"),
        wants_initial=list_options.wants_initial,
        timeout_s=timeout_s or server.watch_s(),
    )
    return await open_watch(
        server.registry,
        request.resource,
        request.target.namespace,
        await _selection(server, request),
        options,
        ReadingInTurn(server.workers, request.user.name),
    )


async def _watch(server: ServerContext, request: ResourceRequest) -> StreamingResponse:
    encoder = _encoder(server, request)
    batches = await watch_batches(server, request)
    media = request.form.media
    content_type = f"{media};stream=watch" if media == PROTOBUF else media
    run = partial(server.workers.run, request.user.name)
    return StreamingResponse(_chunks(batches, encoder, run), content_type)


async def _chunks(
    batches: AsyncIterator[Batch], encoder: ResponseEncoder, run: Any
) -> AsyncIterator[bytes]:
    """Yield the events of a watch as bytes, one chunk for each batch.

    Large events are encoded in a worker thread, and alone: a batch of them would take long.
    """
    try:
        async for batch in batches:
            small: list[bytes] = []
            for event in batch:
                encoded = encoder.known_event(event)
                if encoded is None:
                    encoded = await run(event.size, encoder.made_event, event)
                    encoder.note_event(event, encoded)
                small.append(encoded)
                if event.size > SMALL_BYTES_MAX:
                    yield b"".join(small)
                    small = []
            if small:
                yield b"".join(small)
    finally:
        await batches.aclose()  # type: ignore[attr-defined]


def _number(text: str, maximum: int) -> int:
    """Return a number of a query, clamped to 0 … maximum."""
    if not text:
        return 0
    number = parse_int64(text)
    if number is None:
        raise bad_request(f'strconv.ParseInt: parsing "{text[:32]}": invalid syntax')
    return max(0, min(number, maximum))


# --- writes ---------------------------------------------------------------------------------------


async def _written(
    server: ServerContext,
    request: ResourceRequest,
    encoder: ResponseEncoder,
    written: WrittenObject,
) -> Response:
    body = await _one(server, request, encoder, written.value)
    headers = NO_CACHE + warning_headers(written.warnings)
    return Response(body, 201 if written.is_new else 200, request.form.media, headers)


def _issued(issued: IssuedToken, request: ResourceRequest) -> Response:
    media = request.form.media
    headers = NO_CACHE + warning_headers(issued.warnings)
    return Response(as_bytes(issued.value, media), 201, media, headers)


def _status(status: Status, request: ResourceRequest) -> Response:
    media = request.form.media
    return Response(as_bytes(status, media), status.code or 200, media)


def _scale(server: ServerContext, request: ResourceRequest, scale: Scale) -> Response:
    include = read_include(request.query.get("includeObject", ""))
    encoder = ResponseEncoder(SCALE, request.form, server.now(), include)
    return Response(encoder.one(scale), content_type=request.form.media)


async def _deleted(
    server: ServerContext,
    request: ResourceRequest,
    encoder: ResponseEncoder,
    deleted: DeletedObject,
) -> Response:
    if not deleted.is_gone or request.resource.returns_deleted:
        body = await _one(server, request, encoder, deleted.value)
        headers = warning_headers(tuple(request.warnings))
        return Response(body, content_type=request.form.media, headers=headers)
    about, metadata = request.resource.about, deleted.value.metadata
    details = StatusDetails(
        name=metadata.name, group=about.group, kind=about.plural, uid=metadata.uid
    )
    status = _status(Status(status="Success", details=details), request)
    return status._replace(headers=status.headers + warning_headers(tuple(request.warnings)))
