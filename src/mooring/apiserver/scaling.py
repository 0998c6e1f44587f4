"""How many pods a controller keeps: the part `scale` of deployments and their like.

It is read from the object and written back to it, and nothing else of the object changes. Who
writes it owns the number of replicas, by way of the part.
"""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Any

from msgspec.structs import replace

from mooring.api.autoscaling import SCALE, Scale, ScaleSpec, ScaleStatus
from mooring.api.codec import decode_tree, to_tree
from mooring.api.errors import ApiError
from mooring.api.fieldpath import root
from mooring.api.kinds import Kind
from mooring.api.meta import ObjectMeta
from mooring.apiserver.authorization.noderestriction import Operation
from mooring.apiserver.calls import Call, read_plain_tree
from mooring.apiserver.patching import FieldManager, PatchError, apply_patch, with_times_kept
from mooring.apiserver.registry import with_revision
from mooring.apiserver.service import Service
from mooring.apiserver.status import (
    MODIFIED,
    About,
    bad_request,
    conflict,
    failure,
    invalid,
    unsupported_patch,
)
from mooring.apiserver.tables.selectors import plain_selector_text
from mooring.validation.errors import invalid as invalid_value

PART = "scale"

_ABOUT = About("scales", "Scale", "autoscaling")
_NEGATIVE = "must be greater than or equal to 0"


def scale_of(value: Any) -> Scale:
    """Return the scale of a controller."""
    metadata = value.metadata
    return Scale(
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            creation_timestamp=metadata.creation_timestamp,
        ),
        spec=ScaleSpec(replicas=value.spec.replicas or 0),
        status=ScaleStatus(
            replicas=value.status.replicas,
            selector=plain_selector_text(value.spec.selector) or "",
        ),
    )


async def read_scale(service: Service, call: Call) -> Scale:
    """Return the scale of a stored controller."""
    target = call.target
    return scale_of(await service.registry.get(call.resource, target.namespace, target.name))


async def write_scale(service: Service, call: Call, *, is_patch: bool) -> Scale:
    """Have a controller keep another number of pods, as a body or a patch says."""
    target, registry = call.target, service.registry

    async def scaled(old: Any) -> Any:
        wanted = _wanted(call, scale_of(old), is_patch=is_patch)
        version = wanted.metadata.resource_version
        if version and version != old.metadata.resource_version:
            raise conflict(call.resource.about, target.name, MODIFIED)
        new = _with_replicas(old, wanted.spec.replicas)
        await service.admit(call, Operation.UPDATE, new=new, old=old)
        return _owned(old, new, call, str(service.now()))

    if call.is_dry_run:
        old = await registry.get(call.resource, target.namespace, target.name)
        new = with_revision(await scaled(old), int(old.metadata.resource_version))
    else:
        new = await registry.change(call.resource, target.namespace, target.name, scaled)
    return scale_of(new)


def _wanted(call: Call, current: Scale, *, is_patch: bool) -> Scale:
    """Return the scale that a request wants, or raise why it cannot be had."""
    if is_patch:
        tree: Any = apply_patch(SCALE, call.content_type, call.body, to_tree(current))
    else:
        tree = read_plain_tree(call, SCALE.api_version, SCALE.name)
    if isinstance(tree, PatchError):
        if tree.status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
            raise unsupported_patch()
        raise failure(HTTPStatus(tree.status), tree.reason, tree.message)
    try:
        wanted = decode_tree(tree, Scale).value
    except ApiError as error:
        raise bad_request(f"the Scale cannot be read: {error}") from None
    name, replicas = wanted.metadata.name, wanted.spec.replicas
    if name != current.metadata.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL "
            f"({current.metadata.name})"
        )
    if replicas < 0:
        fault = invalid_value(root("spec.replicas"), replicas, _NEGATIVE)
        raise invalid(_ABOUT, name, [fault])
    return wanted


def _with_replicas(old: Any, replicas: int) -> Any:
    if old.spec.replicas == replicas:
        return old
    metadata = replace(old.metadata, generation=old.metadata.generation + 1)
    return replace(old, metadata=metadata, spec=replace(old.spec, replicas=replicas))


def _owned(old: Any, new: Any, call: Call, now: str) -> Any:
    before = to_tree(old)
    owned = _field_manager(call.kind).update(before, to_tree(new), manager=call.manager, now=now)
    owned = with_times_kept(before, owned)
    told = {"managedFields": owned["metadata"].get("managedFields") or []}
    entries = decode_tree(told, ObjectMeta).value.managed_fields
    return replace(new, metadata=replace(new.metadata, managed_fields=entries))


@cache
def _field_manager(kind: Kind) -> FieldManager:
    return FieldManager(kind, PART)
