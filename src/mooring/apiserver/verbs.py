"""What is done for each verb, and how its outcome is answered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from mooring.api.autoscaling import SCALE, Scale
from mooring.api.gointegers import parse_int64
from mooring.api.meta import ListMeta
from mooring.apiserver.authentication.tokenrequests import Issued
from mooring.apiserver.calls import Call
from mooring.apiserver.deleting import Deleted, delete, delete_collection
from mooring.apiserver.exchange import NO_CACHE, Answer, Headers, Streaming
from mooring.apiserver.listing import ListOptions, check_watch, list_entries
from mooring.apiserver.negotiation import PROTOBUF
from mooring.apiserver.parts import bind, evict, finalize
from mooring.apiserver.representing import Painter, as_bytes, read_include
from mooring.apiserver.scaling import PART, read_scale, write_scale
from mooring.apiserver.selectors import read_selection
from mooring.apiserver.served import part_of, verbs_of
from mooring.apiserver.service import Service
from mooring.apiserver.status import (
    Status,
    StatusDetails,
    bad_request,
    method_not_allowed,
    unknown_resource,
)
from mooring.apiserver.tokens import request_token
from mooring.apiserver.watching import Batch, WatchOptions, open_watch
from mooring.apiserver.writing import Written, create, patch, replace_object

WATCH_TIMEOUT_MAX_S = 24 * 3600
LIMIT_MAX = 2**31 - 1
WARNING_LENGTH_MAX = 256
WARNINGS_LENGTH_MAX = 4096

_INITIAL = "sendInitialEvents"

_METHODS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}


def verb_of(method: str, name: str, query: dict[str, str]) -> str:
    """Return what a method means; nothing for one that means nothing."""
    if method in ("GET", "HEAD") and not name:
        return "watch" if is_true(query, "watch") else "list"
    if method == "DELETE":
        return "delete" if name else "deletecollection"
    return _METHODS.get(method, "")


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Return whether a query says yes: by anything but false and 0."""
    return name in query and query[name].lower() not in ("0", "false")


def check_verb(call: Call, verb: str) -> None:
    """Raise unless the resource, or its part, knows the verb there."""
    target, resource = call.target, call.resource
    if target.subresource:
        if target.subresource not in resource.subresources:
            raise unknown_resource()
        if verb not in part_of(target.subresource).verbs:
            raise method_not_allowed()
        return
    is_for_all = verb in ("create", "list", "deletecollection")
    is_misplaced = verb != "watch" and is_for_all == bool(target.name)
    if verb not in verbs_of(resource.plural) or is_misplaced:
        raise method_not_allowed()


async def perform(service: Service, call: Call, verb: str) -> Answer | Streaming:
    """Do what a request asks for, and return the answer."""
    part = call.target.subresource
    painter = _painter(service, call)  # first: what cannot be answered must not be done
    match verb:
        case "get" if part == PART:
            return _scale(service, call, await read_scale(service, call))
        case "update" | "patch" if part == PART:
            return _scale(service, call, await write_scale(service, call, is_patch=verb == "patch"))
        case "get":
            registry, target = service.registry, call.target
            value = await registry.get(call.resource, target.namespace, target.name)
            return Answer(painter.one(value), content_type=call.form.media)
        case "list":
            return await _list(service, call)
        case "watch":
            return await _watch(service, call)
        case "create" if part == "binding" or call.resource.plural == "bindings":
            return _status(await bind(service, call), call)
        case "create" if part == "eviction":
            return _status(await evict(service, call), call)
        case "create" if part == "token":
            return _issued(await request_token(service, call), call)
        case "create":
            return _written(service, call, await create(service, call))
        case "update" if part == "finalize":
            return _written(service, call, await finalize(service, call))
        case "update":
            return _written(service, call, await replace_object(service, call))
        case "patch":
            return _written(service, call, await patch(service, call))
        case "delete":
            return _deleted(service, call, await delete(service, call))
        case "deletecollection":
            selection = _selection(call)
            values = await delete_collection(service, call, selection, _list_options(call))
            return Answer(painter.many(values, ListMeta()), content_type=call.form.media)
    raise method_not_allowed()


# --- reading --------------------------------------------------------------------------------------


def _painter(service: Service, call: Call) -> Painter:
    include = read_include(call.query.get("includeObject", ""))
    text_of = service.registry.text_of
    return Painter(call.kind, call.form, service.now(), include, service.painted, text_of)


def _selection(call: Call) -> Any:
    query, name = call.query, call.target.name
    fields = query.get("fieldSelector", "")
    if name and not fields:  # a watch of one object
        fields = f"metadata.name={name}"
    selection = read_selection(
        query.get("labelSelector", ""), fields, call.resource, call.target.version
    )
    if name and selection.name != name:
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    return selection


def _list_options(call: Call) -> ListOptions:
    query = call.query
    return ListOptions(
        limit=_number(query.get("limit", ""), LIMIT_MAX),
        continue_=query.get("continue", ""),
        revision=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        wants_initial=is_true(query, _INITIAL) if _INITIAL in query else None,
    )


async def _list(service: Service, call: Call) -> Answer:
    options = _list_options(call)
    selection = _selection(call)
    painter = _painter(service, call)
    page = await list_entries(
        service.registry, call.resource, call.target.namespace, selection, options
    )
    metadata = ListMeta(
        resource_version=str(page.revision),
        continue_=page.continue_,
        remaining_item_count=page.remaining,
    )
    body = painter.stored(page.entries, metadata)
    if body is None:
        values = [service.registry.read(call.resource, entry) for entry in page.entries]
        body = painter.many(values, metadata)
    return Answer(body, content_type=call.form.media)


async def _watch(service: Service, call: Call) -> Streaming:
    asked = _list_options(call)
    timeout_s = _number(call.query.get("timeoutSeconds", ""), WATCH_TIMEOUT_MAX_S)
    check_watch(asked)
    options = WatchOptions(
        revision=asked.revision,
        allows_bookmarks=is_true(call.query, "allowWatchBookmarks"),
        wants_initial=asked.wants_initial,
        timeout_s=timeout_s or service.watch_s(),
    )
    painter = _painter(service, call)
    batches = await open_watch(
        service.registry, call.resource, call.target.namespace, _selection(call), options
    )
    media = call.form.media
    content_type = f"{media};stream=watch" if media == PROTOBUF else media
    return Streaming(_chunks(batches, painter), content_type)


async def _chunks(batches: AsyncIterator[Batch], painter: Painter) -> AsyncIterator[bytes]:
    """Give the events of a watch as bytes, those of a batch at once."""
    try:
        async for batch in batches:
            yield b"".join(map(painter.event, batch))
    finally:
        await batches.aclose()  # type: ignore[attr-defined]


def _number(text: str, maximum: int) -> int:
    """Return a number of a query, within bounds; none for one below zero."""
    if not text:
        return 0
    number = parse_int64(text)
    if number is None:
        raise bad_request(f'strconv.ParseInt: parsing "{text[:32]}": invalid syntax')
    return max(0, min(number, maximum))


# --- writing --------------------------------------------------------------------------------------


def _written(service: Service, call: Call, written: Written) -> Answer:
    body = _painter(service, call).one(written.value)
    headers = NO_CACHE + warning_headers(written.warnings)
    return Answer(body, 201 if written.is_new else 200, call.form.media, headers)


def _issued(issued: Issued, call: Call) -> Answer:
    media = call.form.media
    headers = NO_CACHE + warning_headers(issued.warnings)
    return Answer(as_bytes(issued.value, media), 201, media, headers)


def _status(status: Status, call: Call) -> Answer:
    media = call.form.media
    return Answer(as_bytes(status, media), status.code or 200, media)


def _scale(service: Service, call: Call, scale: Scale) -> Answer:
    include = read_include(call.query.get("includeObject", ""))
    painter = Painter(SCALE, call.form, service.now(), include)
    return Answer(painter.one(scale), content_type=call.form.media)


def _deleted(service: Service, call: Call, deleted: Deleted) -> Answer:
    if not deleted.is_gone or call.resource.returns_deleted:
        return Answer(_painter(service, call).one(deleted.value), content_type=call.form.media)
    about, metadata = call.resource.about, deleted.value.metadata
    details = StatusDetails(
        name=metadata.name, group=about.group, kind=about.plural, uid=metadata.uid
    )
    return _status(Status(status="Success", details=details), call)


def warning_headers(warnings: tuple[str, ...]) -> Headers:
    """Return the headers that tell a user of something, each once and all within bounds."""
    kept: list[tuple[str, str]] = []
    length = 0
    for text in dict.fromkeys(warnings):
        clean = "".join(c if c.isprintable() and ord(c) < 0x7F else "?" for c in text)
        clean = clean[:WARNING_LENGTH_MAX].replace("\\", "\\\\").replace('"', '\\"')
        length += len(clean)
        if length > WARNINGS_LENGTH_MAX:
            break
        kept.append(("Warning", f'299 - "{clean}"'))
    return tuple(kept)
