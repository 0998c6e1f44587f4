"""Deleting objects: at once, or when whatever holds them has let go.

finalizers                  hold an object; it is marked, and goes with the last of them
grace                       pods on nodes get time to stop; their node deletes them then
propagation policy          Orphan and Foreground add a finalizer, which the garbage collector
                            takes away when it has done its part; Background takes both away
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NamedTuple

from msgspec.structs import replace

from mooring.api.codec import decode_tree
from mooring.api.core import Namespace, Pod
from mooring.api.core.namespace import TERMINATING
from mooring.api.errors import ApiError
from mooring.api.structs import Closed, Int64
from mooring.api.timestamp import Timestamp
from mooring.apiserver.authorization.noderestriction import Operation
from mooring.apiserver.calls import Call, read_plain_tree
from mooring.apiserver.listing import ListOptions, list_entries
from mooring.apiserver.registry import RETRIES_MAX, is_released, with_revision
from mooring.apiserver.resources import Resource
from mooring.apiserver.selectors import Selection
from mooring.apiserver.service import Service
from mooring.apiserver.status import (
    MODIFIED,
    StatusError,
    bad_request,
    conflict,
    forbidden,
    precondition_failed,
)

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
POLICIES = {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": ""}
SYSTEM_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class Preconditions(Closed, frozen=True):
    """Which object is meant."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Closed, frozen=True):
    """How to delete."""

    kind: str = ""
    api_version: str = ""
    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] = ()
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None


Admit = Callable[[Any], Awaitable[None]]


class Deleted(NamedTuple):
    """An object that was deleted, or that will be gone when nothing holds it."""

    value: Any
    is_gone: bool


def read_delete_options(call: Call) -> DeleteOptions:
    """Return how a request wants something deleted: by its body, or by its query."""
    tree = read_plain_tree(call, "v1", "DeleteOptions")
    return checked_options(tree, call.query)


def checked_options(tree: Any, query: Any) -> DeleteOptions:
    """Return options, or raise what is wrong with them."""
    try:
        options = decode_tree(tree, DeleteOptions).value
    except ApiError as error:
        raise bad_request(f"the options cannot be read: {error}") from None
    policy = options.propagation_policy or query.get("propagationPolicy") or None
    if policy is not None and policy not in POLICIES:
        raise bad_request(
            f'invalid propagationPolicy "{policy[:32]}": must be Orphan, Background or Foreground'
        )
    grace = options.grace_period_seconds
    if grace is None and query.get("gracePeriodSeconds"):
        text = query["gracePeriodSeconds"]
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise bad_request("gracePeriodSeconds: must be a number of seconds")
        grace = int(text)
    if policy is None and options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    return replace(options, propagation_policy=policy, grace_period_seconds=grace)


async def delete(service: Service, call: Call) -> Deleted:
    """Delete the object that a request names."""
    options = read_delete_options(call)
    is_dry_run = call.is_dry_run or "All" in options.dry_run
    target = call.target

    async def admit(old: Any) -> None:
        await service.admit(call, Operation.DELETE, old=old)

    return await delete_object(
        service, call.resource, target.namespace, target.name, options, is_dry_run, admit
    )


async def delete_object(
    service: Service,
    resource: Resource,
    namespace: str,
    name: str,
    options: DeleteOptions,
    is_dry_run: bool = False,
    admit: Admit | None = None,
) -> Deleted:
    """Delete an object, trying again if it was changed meanwhile; `admit` may raise against it."""
    if resource.plural == "namespaces" and name in SYSTEM_NAMESPACES:
        raise forbidden(resource.about, name, "this namespace may not be deleted")
    has_revision = options.preconditions and options.preconditions.resource_version
    for _ in range(RETRIES_MAX):
        old = await service.registry.get(resource, namespace, name)
        if admit is not None:
            await admit(old)
        _check_preconditions(resource, old, options)
        new = marked(old, options, service.now())
        if is_dry_run:
            return Deleted(new, is_released(new))
        try:
            if is_released(new):
                gone = await service.registry.remove(resource, old)
                revision = int(gone.metadata.resource_version)
                # Only pods are marked on their way out when they go at once.
                shown = new if isinstance(new, Pod) else old
                return Deleted(with_revision(shown, revision), True)
            return Deleted(await _mark(service, resource, old, new), False)
        except StatusError as error:
            if error.status.reason != "Conflict" or has_revision:
                raise
    raise conflict(resource.about, name, MODIFIED)


async def _mark(service: Service, resource: Resource, old: Any, new: Any) -> Any:
    async def change(current: Any) -> Any:
        if current.metadata.resource_version != old.metadata.resource_version:
            raise conflict(resource.about, old.metadata.name, MODIFIED)
        return new

    metadata = old.metadata
    return await service.registry.change(resource, metadata.namespace, metadata.name, change)


async def delete_collection(
    service: Service, call: Call, selection: Selection, list_options: ListOptions
) -> list[Any]:
    """Delete all objects that are selected, and return them as they were."""
    options = read_delete_options(call)
    is_dry_run = call.is_dry_run or "All" in options.dry_run
    namespace = call.target.namespace

    async def admit(old: Any) -> None:
        await service.admit(call, Operation.DELETE, old=old)

    page = await list_entries(service.registry, call.resource, namespace, selection, list_options)
    values = [service.registry.read(call.resource, entry) for entry in page.entries]
    for value in values:
        metadata = value.metadata
        try:
            await delete_object(
                service,
                call.resource,
                metadata.namespace,
                metadata.name,
                options,
                is_dry_run,
                admit,
            )
        except StatusError as error:
            if error.status.reason != "NotFound":
                raise
    return values


def _check_preconditions(resource: Resource, value: Any, options: DeleteOptions) -> None:
    wanted = options.preconditions
    if wanted is None:
        return
    found = value.metadata
    if wanted.uid is not None and wanted.uid != found.uid:
        raise precondition_failed(resource.about, found.name, "UID", wanted.uid, found.uid)
    version = wanted.resource_version
    if version is not None and version != found.resource_version:
        raise precondition_failed(
            resource.about, found.name, "ResourceVersion", version, found.resource_version
        )


def marked(old: Any, options: DeleteOptions, now: Timestamp) -> Any:
    """Return an object as one that is to be deleted; nothing is done to it twice."""
    metadata = old.metadata
    grace = _grace_s(old, options)
    held = _finalizers(metadata.finalizers, options.propagation_policy)
    when, generation = metadata.deletion_timestamp, metadata.generation
    before_s = metadata.deletion_grace_period_seconds
    if when is None:
        when = _after(now, grace)
        generation = generation + 1 if generation else 0
    elif before_s is not None and grace < before_s:
        when = _after(when, grace - before_s)
    else:
        grace = before_s or 0
    metadata = replace(
        metadata,
        deletion_timestamp=when,
        deletion_grace_period_seconds=grace,
        finalizers=held,
        generation=generation,
    )
    new = replace(old, metadata=metadata)
    if isinstance(new, Namespace):
        new = replace(new, status=replace(new.status, phase=TERMINATING))
        if new.spec.finalizers or held:
            metadata = replace(metadata, deletion_grace_period_seconds=None)
            new = replace(new, metadata=metadata)
    return new


def _finalizers(held: tuple[str, ...], policy: str | None) -> tuple[str, ...]:
    if policy is None:
        return held
    others = tuple(name for name in held if name not in (ORPHAN, FOREGROUND))
    wanted = POLICIES[policy]
    return (*others, wanted) if wanted else others


def _grace_s(value: Any, options: DeleteOptions) -> int:
    """Return how long an object stays to come to its end: only pods on nodes do."""
    if not isinstance(value, Pod):
        return 0
    is_over = value.status.phase in ("Succeeded", "Failed")
    if not value.spec.node_name or is_over:
        return 0
    wanted = options.grace_period_seconds
    if wanted is None:
        wanted = value.spec.termination_grace_period_seconds
    return 30 if wanted is None else max(wanted, 0)


def _after(time: Timestamp, seconds: int) -> Timestamp:
    return Timestamp(time.instant + timedelta(seconds=seconds))
