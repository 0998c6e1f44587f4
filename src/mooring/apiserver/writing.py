"""Creating, replacing and patching objects.

    body ─ read ─ admitted: defaults, dropped fields, rules ─ named ─ owners of fields ─ stored

What only the server sets (uid, times, generation, revision) is never taken from a client.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NamedTuple

from msgspec.structs import replace

from mooring.api.catalogue import from_hub, to_hub
from mooring.api.codec import to_tree
from mooring.api.errors import ApiError
from mooring.api.kinds import Kind
from mooring.api.meta import ObjectMeta
from mooring.api.raw_fields import holds_raw, raws_of
from mooring.api.raw_json import keep_written, remarshal
from mooring.api.reading import read_tree
from mooring.apiserver import foreign
from mooring.apiserver.authorization.noderestriction import Operation
from mooring.apiserver.calls import Body, Call, checked, read_body, typed
from mooring.apiserver.ownership import bare_tree, owned_tree, read_entries, with_owners
from mooring.apiserver.patching import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    FieldManager,
    PatchError,
    apply_patch,
    read_applied,
    with_times_kept,
)
from mooring.apiserver.patching.tables import find_shape
from mooring.apiserver.registry import with_revision
from mooring.apiserver.seedpatches import Shipped, shipped_patch, shipped_tree
from mooring.apiserver.service import Service
from mooring.apiserver.status import (
    MODIFIED,
    StatusCause,
    StatusDetails,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    failure,
    forbidden,
    invalid,
    method_not_allowed,
    not_found,
    unsupported_patch,
    warned,
)
from mooring.validation.admission import (
    CONFLICT,
    GENERATED_SUFFIX,
    Admission,
    admit_create,
    admit_status,
    admit_update,
)

OWNERS = b"managedFields"
GENERATED_PREFIX_MAX = 63 - len(GENERATED_SUFFIX)


class Written(NamedTuple):
    """What a write comes to."""

    value: Any  # in the hub version
    is_new: bool = False
    warnings: tuple[str, ...] = ()


# --- create ---------------------------------------------------------------------------------------


async def create(service: Service, call: Call) -> Written:
    """Store a new object."""
    if call.target.subresource or (call.resource.namespaced and not call.target.namespace):
        raise method_not_allowed()
    body = read_body(call, gates=service.gates, extensions=service.extensions)
    return await _create(service, call, body)


async def _create(service: Service, call: Call, body: Body, *, has_owners: bool = False) -> Written:
    namespace = await service.namespace(call.target.namespace)
    context = service.context(call, namespace, verb="create")
    name = call.target.namespace or "default"
    admission = admit_create(body.value, call.kind, context, namespace=name)
    warnings = (*body.warnings, *admission.warnings)
    with warned(warnings):
        new = await _stored(service, call, body, admission, namespace, has_owners=has_owners)
    return Written(new, is_new=True, warnings=warnings)


async def _stored(
    service: Service,
    call: Call,
    body: Body,
    admission: Admission,
    namespace: Any | None,
    *,
    has_owners: bool,
) -> Any:
    """Store what was admitted, or raise what speaks against it."""
    if admission.refused is None and call.resource.namespaced:
        _check_namespace(service, call, namespace, body.value.metadata)
    made_name = _name_of(body.value.metadata, service)
    if admission.errors:
        # What must exist comes first: an unknown account is forbidden, whatever else is wrong.
        await service.completed(call, to_hub(body.value, call.kind), is_valid=False)
    stored = _accepted(admission, call, made_name)
    new = foreign.labelled(_made(stored, made_name, service))
    await service.admit(call, Operation.CREATE, new=new)
    if not has_owners:
        new = _owned(None, new, call, service.now())
    new = await service.completed(call, foreign.created(new, body.value))
    async with service.charged(call, new):
        if not call.is_dry_run:
            new = await service.registry.create(call.resource, new)
        elif await service.registry.find(call.resource, new.metadata.namespace, new.metadata.name):
            raise already_exists(call.resource.about, new.metadata.name)
    return new


def _check_namespace(
    service: Service, call: Call, namespace: Any | None, metadata: ObjectMeta
) -> None:
    """Refuse to create something in a namespace that is not there, or that goes away."""
    name = call.target.namespace
    about = service.resources.of("", "namespaces").about
    if namespace is None:
        raise not_found(about, name)
    if namespace.metadata.deletion_timestamp is not None:
        why = f"unable to create new content in namespace {name} because it is being terminated"
        cause = StatusCause(
            reason="NamespaceTerminating",
            message=f"namespace {name} is being terminated",
            field="metadata.namespace",
        )
        shown = metadata.name or metadata.generate_name
        raise forbidden(call.resource.about, shown, why, (cause,))


def _name_of(metadata: ObjectMeta, service: Service) -> str:
    """Return the name of a new object; one that is made up is there before anything is checked."""
    if metadata.name or not metadata.generate_name:
        return metadata.name
    prefix = metadata.generate_name.encode()[:GENERATED_PREFIX_MAX]
    return f"{prefix.decode(errors='replace')}{service.new_suffix()}"


def _made(stored: Any, name: str, service: Service) -> Any:
    """Return a new object with what the server gives it."""
    return replace(
        stored,
        metadata=replace(
            stored.metadata,
            name=name,
            uid=service.new_uid(),
            creation_timestamp=service.now(),
        ),
    )


# --- replace and patch ----------------------------------------------------------------------------


async def replace_object(service: Service, call: Call) -> Written:
    """Store a newer version of an object."""
    body = read_body(call, gates=service.gates, extensions=service.extensions)
    name = body.value.metadata.name
    with warned(body.warnings):
        if name != call.target.name:
            raise _other_name(name, call)
    registry, target = service.registry, call.target
    may_create = call.resource.is_made_by_update and not target.subresource
    if may_create and not await registry.find(call.resource, target.namespace, target.name):
        return await _create(service, call, body)
    return await _change(service, call, lambda _: body, verb="update")


async def patch(service: Service, call: Call) -> Written:
    """Change an object by a patch, or apply one."""
    media = call.content_type.partition(";")[0].strip()
    if media == APPLY_PATCH:
        return await _apply(service, call)
    wanted = Shipped(call.body)
    if service.extensions:
        wanted = shipped_patch(call.body, media, call.kind, service.gates)

    def patched(live: Any) -> Body:
        if OWNERS in wanted.content:
            tree = to_tree(from_hub(live, call.kind.api_version))
            result = _unrefused(apply_patch(call.kind, media, wanted.content, tree))
            result = _with_raws(result, live, call, media)
            return _read_patched(result, call, service, wanted.warnings)
        tree = bare_tree(live, call.kind.api_version)
        result = _unrefused(apply_patch(call.kind, media, wanted.content, tree))
        result = _with_raws(result, live, call, media)
        body = _read_patched(result, call, service, wanted.warnings)
        return body._replace(value=with_owners(body.value, live.metadata.managed_fields))

    return await _change(service, call, patched, verb="patch")


async def _apply(service: Service, call: Call) -> Written:
    wanted = Shipped(_unrefused(read_applied(call.body)))
    if service.extensions:
        wanted = shipped_tree(wanted.content, call.kind, service.gates)
    if not call.query.get("fieldManager"):
        raise bad_request("fieldManager is required for apply patch")
    manager = _field_manager(call.kind, call.target.subresource)
    force = call.query.get("force", "") in ("true", "1")

    def merged(live: Any | None) -> Body:
        ours = () if live is None else live.metadata.managed_fields
        tree = None if live is None else owned_tree(live, call.kind.api_version, ours=ours)
        now = str(service.now())
        result = _unrefused(
            manager.apply(tree, wanted.content, manager=call.manager, force=force, now=now)
        )
        entries = read_entries(result["metadata"].pop("managedFields", ()))
        result = _with_raws(result, live, call, APPLY_PATCH)
        body = _read_patched(result, call, service, wanted.warnings)
        with warned(body.warnings):
            return _named(body._replace(value=with_owners(body.value, entries)), call)

    live = await service.registry.find(call.resource, call.target.namespace, call.target.name)
    if live is None:
        if call.target.subresource:
            raise not_found(call.resource.about, call.target.name)
        return await _create(service, call, merged(None), has_owners=True)
    return await _change(service, call, merged, verb="patch", is_apply=True)


def _with_raws(tree: Any, live: Any, call: Call, media: str) -> Any:
    """Return a patched tree in which raw JSON is written as Kubernetes writes it then."""
    if not holds_raw(call.kind.struct):
        return tree
    tree = deepcopy(tree)  # It shares parts with what was patched.
    if media in (JSON_PATCH, MERGE_PATCH):
        keep_written(tree, raws_of(live))
    else:
        remarshal(tree)
    return tree


def _named(body: Body, call: Call) -> Body:
    """Return an applied object that has the name of its URL, or raise that it has another."""
    name = body.value.metadata.name
    if name and name != call.target.name:
        raise _other_name(name, call)
    metadata = replace(body.value.metadata, name=call.target.name)
    return body._replace(value=replace(body.value, metadata=metadata))


def _other_name(name: str, call: Call) -> StatusError:
    return bad_request(
        f"the name of the object ({name}) does not match the name on the URL ({call.target.name})"
    )


def _read_patched(tree: Any, call: Call, service: Service, warnings: tuple[str, ...] = ()) -> Body:
    with warned(warnings):
        try:
            tree = typed(tree, call)
            reading = read_tree(tree, gates=service.gates, extensions=service.extensions)
        except (ApiError, RecursionError) as error:
            raise bad_request(str(error)) from None
        body = checked(reading, call)
    return body._replace(warnings=(*warnings, *body.warnings))


async def _change(
    service: Service, call: Call, body_for: Any, *, verb: str, is_apply: bool = False
) -> Written:
    """Store what a body makes of an object, trying again if it was changed meanwhile."""
    context = service.context(call, await service.namespace(call.target.namespace), verb=verb)
    warnings: tuple[str, ...] = ()

    async def changed(old: Any) -> Any:
        nonlocal warnings
        body = body_for(old)
        is_status = call.target.subresource == "status"
        admit = admit_status if is_status else admit_update
        admission = admit(foreign.kept(body.value, old), old, call.kind, context)
        warnings = (*body.warnings, *admission.warnings)
        if admission.refused == CONFLICT:
            raise conflict(call.resource.about, call.target.name, MODIFIED)
        new = _accepted(admission, call, call.target.name)
        new = new if is_status else foreign.labelled(new)
        await service.admit(call, Operation.UPDATE, new=new, old=old)
        await service.admit_more(call, new, old)
        if is_apply:
            entries = to_hub(body.value, call.kind).metadata.managed_fields
            applied = replace(new, metadata=replace(new.metadata, managed_fields=entries))
            return _unless_same(old, applied)
        return _owned(old, new, call, context.now)

    registry, target = service.registry, call.target
    try:
        if call.is_dry_run:
            old = await registry.get(call.resource, target.namespace, target.name)
            new = with_revision(await changed(old), int(old.metadata.resource_version))
        else:
            new = await registry.change(call.resource, target.namespace, target.name, changed)
    except StatusError as error:
        error.warnings = (*warnings, *error.warnings)
        raise
    return Written(new, warnings=warnings)


# --- helpers --------------------------------------------------------------------------------------


def _accepted(admission: Admission, call: Call, name: str) -> Any:
    """Return the object that is admitted, or raise what speaks against it."""
    if admission.refused is not None:
        raise bad_request(admission.refused)
    if admission.errors:
        raise invalid(call.resource.about, name, admission.errors)
    return admission.stored


@lru_cache(maxsize=256)
def _field_manager(kind: Kind, subresource: str) -> FieldManager:
    return FieldManager(kind, subresource)


def _owned(old: Any | None, new: Any, call: Call, now: Any) -> Any:
    """Return an object with the owners of its fields."""
    kind: Kind = call.kind
    if find_shape(kind.api_version, kind.name) is None:
        return new
    manager = _field_manager(kind, call.target.subresource)
    ours = () if old is None else old.metadata.managed_fields
    before = None if old is None else owned_tree(old, kind.api_version, ours=ours)
    after = owned_tree(new, kind.api_version, ours=ours)
    owned = manager.update(before, after, manager=call.manager, now=str(now))
    if before is not None:
        owned = with_times_kept(before, owned)
    return with_owners(new, read_entries(owned["metadata"].get("managedFields")))


def _unless_same(old: Any, applied: Any) -> Any:
    """Return what was there if what was applied, with its defaults, differs by times only."""
    if with_owners(old, ()) != with_owners(applied, ()):
        return applied
    before = to_tree(old)
    return old if with_times_kept(before, to_tree(applied)) is before else applied


def _unrefused(result: Any) -> Any:
    """Return the tree of a patch, or raise why there is none."""
    if not isinstance(result, PatchError):
        return result
    if result.status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
        raise unsupported_patch()
    causes = tuple(
        StatusCause(reason=c.reason, message=c.message, field=c.field) for c in result.causes
    )
    details = None if result.status == HTTPStatus.BAD_REQUEST else StatusDetails(causes=causes)
    raise failure(HTTPStatus(result.status), result.reason, result.message, details)
