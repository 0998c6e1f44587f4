"""Patch and apply: a patch becomes the body of an update.

    JSON patch, merge patch, strategic merge patch ─ patched tree ─┐
    server-side apply ─ merged tree, with its field managers ──────┴─ decoded ─ verbs.write

Patches in the forms of the KEPs are rewritten to the released forms, as bodies are: a client that
applies such a manifest again sends what it does not find in the stored object, which has the
released form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from moorage.api.catalogue import from_hub
from moorage.api.codec import decode_tree, parse_json, to_tree
from moorage.api.custom_resource import is_custom
from moorage.api.documents import KUBERNETES
from moorage.api.errors import ApiError
from moorage.api.field_path import Place, root
from moorage.api.gates import Gates
from moorage.api.go_types import go_words
from moorage.api.kep_forms import RewrittenForm, rewrite
from moorage.api.kinds import Kind
from moorage.api.object_reader import duplicate_field, read_tree
from moorage.api.plain_reader import PLAIN_BYTES_MAX, read_plain_json
from moorage.api.raw_json import holds_raw, keep_written, raws_of, remarshal
from moorage.apiserver.auth.access import Allowed, ResourceAccess
from moorage.apiserver.body_limits import check_items, check_values, has_duplicates
from moorage.apiserver.custom_resources.requests import read_custom_tree
from moorage.apiserver.http.status import (
    About,
    StatusCause,
    StatusDetails,
    StatusError,
    bad_request,
    failure,
    invalid,
    not_found,
    unsupported_media,
    unsupported_patch,
    warned,
)
from moorage.apiserver.patching import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchError,
    apply_patch,
    read_applied,
)
from moorage.apiserver.patching.json_values import plain
from moorage.apiserver.server_context import ServerContext
from moorage.apiserver.verbs.managed_fields import (
    bare_tree,
    field_manager_of,
    owned_tree,
    read_entries,
    with_owners,
)
from moorage.apiserver.verbs.resource_request import (
    DecodedBody,
    ResourceRequest,
    read_one_document,
    validated,
    with_type,
    without_places,
)
from moorage.apiserver.verbs.usual_apply import as_written, member_names, usual_apply
from moorage.apiserver.verbs.write import (
    SLOW_FORMAT_FACTOR,
    WrittenObject,
    change_object,
    check_name,
    create_decoded,
)
from moorage.apiserver.worker_threads import OnLoop
from moorage.validation.errors import invalid as invalid_field

MANAGED_FIELDS = b"managedFields"
STRICT_ERROR = "strict decoding error: "


async def patch(server: ServerContext, request: ResourceRequest) -> WrittenObject:
    """Change an object by a patch of any type."""
    media = request.content_type.partition(";")[0].strip()
    if media == APPLY_PATCH:
        return await _apply(server, request)
    if is_custom(request.kind.struct) and media not in (JSON_PATCH, MERGE_PATCH):
        raise unsupported_media((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
    released = ReleasedForm(request.body)
    if server.extensions and not is_custom(request.kind.struct):
        released = await server.workers.run(
            request.user.name,
            len(request.body),
            released_patch,
            request.body,
            media,
            request.kind,
            server.gates,
        )

    may_read = may_read_object(server, request)

    def patched(live: Any) -> DecodedBody:
        api_version = request.kind.api_version
        sets_owners = MANAGED_FIELDS in released.content
        tree = to_tree(from_hub(live, api_version)) if sets_owners else bare_tree(live, api_version)
        result = patched_tree(apply_patch(request.kind, media, released.content, tree))
        if not is_custom(request.kind.struct):
            result = _with_raws(result, live, request, media)
        if media == STRATEGIC_MERGE_PATCH:  # It is merged into a Go struct, which has its kind.
            result = {**result, "apiVersion": api_version, "kind": request.kind.name}
        with as_fault_of_patch(result, released.content, media, may_read):
            body = _decoded(result, request, server, released, _duplicates(request, media))
        with warned(body.warnings):
            check_name(body.value, request)
        if sets_owners:
            return body
        return replace(body, value=with_owners(body.value, live.metadata.managed_fields))

    return await change_object(server, request, patched, verb="patch")


async def _apply(server: ServerContext, request: ResourceRequest) -> WrittenObject:
    def read() -> ReleasedForm:
        tree = patched_tree(read_applied(request.body))
        if isinstance(tree, dict) and tree.get("metadata") is None:  # as if it were empty
            tree = {**tree, "metadata": {}}
        if not server.extensions or is_custom(request.kind.struct):
            return ReleasedForm(tree)
        return released_tree(tree, request.kind, server.gates)

    user, size = request.user.name, len(request.body)
    released = await server.workers.run(user, size * SLOW_FORMAT_FACTOR, read)
    manager = field_manager_of(request.kind, request.target.subresource)
    force = request.query.get("force", "") in ("true", "1")

    def merged(live: Any | None) -> DecodedBody:
        if live is not None and server.extensions and not released.warnings:
            size = len(request.body) + server.registry.size_of(live)
            usual = usual_apply(request, live, released.content, size=size, now=server.now())
            if usual is not None:
                return usual
        ours = () if live is None else live.metadata.managed_fields
        tree = None if live is None else owned_tree(live, request.kind.api_version, ours=ours)
        now = str(server.now())
        result = patched_tree(
            manager.apply(tree, released.content, manager=request.manager, force=force, now=now)
        )
        metadata = dict(result.get("metadata") or {})  # There is none if nothing is applied.
        entries = read_entries(metadata.pop("managedFields", ()))
        result = {**result, "metadata": metadata}
        body = None
        if is_custom(request.kind.struct):
            body = _decoded(result, request, server, released)
        elif tree is not None and server.extensions and not released.warnings:
            body = _with_kept_members(result, tree, live, request)
        if body is None:
            result = _with_raws(result, live, request, APPLY_PATCH)
            body = _decoded(result, request, server, released)
        with warned(body.warnings):
            return _named(replace(body, value=with_owners(body.value, entries)), request)

    target = request.target
    live = await server.registry.find(request.resource, target.namespace, target.name)
    if live is None:
        if target.subresource:
            raise not_found(request.resource.about, target.name)
        body = await server.workers.run(user, size, merged, None)
        return await create_decoded(server, request, body, is_applied=True)
    return await change_object(server, request, merged, verb="patch", is_applied=True)


def patched_tree(result: Any) -> Any:
    """Return the tree of a patch, or raise the Status of its error."""
    if not isinstance(result, PatchError):
        return result
    if result.status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
        raise unsupported_patch()
    causes = tuple(
        StatusCause(reason=c.reason, message=c.message, field=c.field) for c in result.causes
    )
    details = None if result.status == HTTPStatus.BAD_REQUEST else StatusDetails(causes=causes)
    raise failure(HTTPStatus(result.status), result.reason, result.message, details)


def _with_raws(tree: Any, live: Any, request: ResourceRequest, media: str) -> Any:
    """Return a patched tree whose raw JSON has the text that Kubernetes gives it."""
    if not holds_raw(request.kind.struct):
        return tree
    tree = deepcopy(tree)  # It shares parts with the live tree.
    if media in (JSON_PATCH, MERGE_PATCH):
        keep_written(tree, raws_of(live))
    else:
        remarshal(tree)
    return tree


def _with_kept_members(
    tree: Any, live_tree: Any, live: Any, request: ResourceRequest
) -> DecodedBody | None:
    """Return a patched object of which only what changed is decoded; None if it must be whole.

    A member that is the live tree's own object (most often the spec, or the status) is the live
    object's.
    """
    kind = request.kind
    here = from_hub(live, kind.api_version)
    names = member_names(kind.struct)
    kept = {
        names[name]: getattr(here, names[name])
        for name, member in tree.items()
        if name in names and isinstance(member, dict) and member is live_tree.get(name)
    }
    if not kept or getattr(here, "extra", None) or holds_raw(kind.struct):
        return None
    if len(msgspec.json.encode(tree, enc_hook=as_written)) > PLAIN_BYTES_MAX:
        return None  # Its items must be counted.
    changed = {name: member for name, member in tree.items() if names.get(name) not in kept}
    value = read_plain_json(msgspec.json.encode(changed, enc_hook=as_written), kind)
    if value is None or not request.field_validation:
        return None
    return DecodedBody(replace(value, **kept))


def _duplicates(request: ResourceRequest, media: str) -> tuple[Place, ...]:
    """Return the places of fields that a patch has several times."""
    is_read = media in (MERGE_PATCH, STRATEGIC_MERGE_PATCH) and not request.is_direct
    if not is_read or not has_duplicates(request.body):
        return ()
    try:
        document = read_one_document(request, KUBERNETES)
    except StatusError:
        return ()  # Applying it reports the error.
    return tuple(found.segments for found in document.duplicates)


def _decoded(
    tree: Any,
    request: ResourceRequest,
    server: ServerContext,
    released: ReleasedForm,
    duplicates: tuple[Place, ...] = (),
) -> DecodedBody:
    with warned(released.warnings):
        try:
            check_items(tree)
            tree = with_type(tree, request)
            if is_custom(request.kind.struct):
                return read_custom_tree(tree, request, duplicates)
            reading = read_tree(tree, gates=server.gates, extensions=server.extensions)
        except (ApiError, RecursionError) as error:
            words = go_words(tree, request.kind.api_version, request.kind.name)
            raise bad_request(words or str(error)) from None
        remarks = tuple(map(duplicate_field, duplicates))
        body = validated(reading._replace(remarks=remarks + reading.remarks), request)
    return replace(body, warnings=(*released.warnings, *body.warnings))


def may_read_object(server: ServerContext, request: ResourceRequest) -> Callable[[], bool]:
    """Return what says, in any thread, whether the user may get the object that is changed."""
    if server.authorizer is None:
        return lambda: True
    resource, target = request.resource, request.target
    access = ResourceAccess(
        request.user, "get", resource.group, resource.plural, "", target.namespace, target.name
    )
    authorizer = server.authorizer.authorizer
    return OnLoop(lambda: isinstance(authorizer.authorize(access), Allowed))


@contextmanager
def as_fault_of_patch(
    result: Any, patch: bytes, media: str, may_read: Callable[[], bool]
) -> Iterator[None]:
    """Raise 422 where the result of a patch is no object of its kind.

    Kubernetes shows the whole result, even to users who may change the object but not read it. They
    see their patch here.
    """
    try:
        yield
    except StatusError as error:
        if error.status.code != HTTPStatus.BAD_REQUEST:
            raise
        why = error.status.message
        if STRICT_ERROR in why:
            why = STRICT_ERROR + why.partition(STRICT_ERROR)[2]
        if media == STRATEGIC_MERGE_PATCH or not may_read():
            shown = plain(parse_json(patch))
        else:
            shown = msgspec.json.encode(result, enc_hook=as_written).decode()
        found = invalid(About("", "", ""), "", [invalid_field(root("patch"), shown, why)])
        found.warnings = error.warnings
        raise found from None


def _named(body: DecodedBody, request: ResourceRequest) -> DecodedBody:
    """Return an applied object with the name of its URL, or raise that it has another."""
    if body.value.metadata.name:
        check_name(body.value, request)
    metadata = replace(body.value.metadata, name=request.target.name)
    return replace(body, value=replace(body.value, metadata=metadata))


# --- forms of the KEPs ----------------------------------------------------------------------------


class ReleasedForm(NamedTuple):
    """A patch or an applied object in the released form, with warnings about the rewrite."""

    content: Any
    warnings: tuple[str, ...] = ()


def released_patch(body: bytes, media: str, kind: Kind, gates: Gates) -> ReleasedForm:
    """Return the body of a patch; JSON patches stay unchanged."""
    if media not in (MERGE_PATCH, STRATEGIC_MERGE_PATCH):
        return ReleasedForm(body)
    try:
        check_values(body)
        patch = parse_json(body)
    except ApiError:
        return ReleasedForm(body)  # Applying it reports the error.
    if not isinstance(patch, dict):
        return ReleasedForm(body)
    found = released_tree(patch, kind, gates, is_part=True)
    if found.content is patch:
        return ReleasedForm(body)
    return ReleasedForm(msgspec.json.encode(found.content, enc_hook=as_written), found.warnings)


def released_tree(tree: Any, kind: Kind, gates: Gates, *, is_part: bool = False) -> ReleasedForm:
    """Return a whole or partial object; the same one if there is nothing to rewrite."""
    if not isinstance(tree, dict):
        return ReleasedForm(tree)
    typed = {**tree, "apiVersion": kind.api_version, "kind": kind.name}
    rewritten = rewrite(typed, gates=gates, is_part=is_part)
    released = _without_rejected(rewritten, kind)
    if released is typed or rewritten.errors:
        return ReleasedForm(tree)
    head = {name: tree[name] for name in ("apiVersion", "kind") if name in tree}
    rest = {name: value for name, value in released.items() if name not in ("apiVersion", "kind")}
    return ReleasedForm({**head, **rest}, tuple(str(notice) for notice in rewritten.warnings))


def _without_rejected(rewritten: RewrittenForm, kind: Kind) -> Any:
    """Return a rewritten object without fields that a warning says no release has."""
    warned_of = {notice.segments for notice in rewritten.warnings}
    struct: type[Any] = kind.struct
    try:
        unknown = decode_tree(rewritten.tree, struct).unknown
    except ApiError:
        return rewritten.tree  # Applying it reports the error.
    return without_places(rewritten.tree, (place for place in unknown if place in warned_of))
