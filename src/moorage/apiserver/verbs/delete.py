"""Delete: objects go at once, or are marked until nothing holds them any more.

finalizers                  an object with finalizers is marked; it goes with the last of them
grace period                pods on nodes get time to stop; then their node deletes them
propagation policy          Orphan and Foreground add a finalizer, which the garbage collector
                            removes when it has done its part; Background removes both
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.api.apiextensions import CustomResourceDefinition
from moorage.api.codec import decode_tree
from moorage.api.core import Namespace, Pod
from moorage.api.core.namespace import TERMINATING
from moorage.api.errors import ApiError
from moorage.api.field_path import root
from moorage.api.go_integers import parse_int64
from moorage.api.structs import Closed, Int64
from moorage.api.timestamp import LATEST, Timestamp
from moorage.apiserver.admission.node_restriction import Operation
from moorage.apiserver.admission.write_access import admit_write
from moorage.apiserver.auth.access import Allowed, ResourceAccess
from moorage.apiserver.custom_resources.conditions import with_cleanup
from moorage.apiserver.dynamic_admission.plugin import admit_deletion
from moorage.apiserver.http.status import (
    MODIFIED,
    About,
    StatusError,
    bad_request,
    conflict,
    forbidden,
    invalid,
    precondition_failed,
)
from moorage.apiserver.resources import Resource
from moorage.apiserver.server_context import ServerContext
from moorage.apiserver.storage.registry import RETRIES_MAX, is_released, with_revision
from moorage.apiserver.verbs.list import ListOptions, ReadingInTurn, list_entries, size_of
from moorage.apiserver.verbs.resource_request import ResourceRequest, read_plain_tree
from moorage.apiserver.verbs.selectors import Selection
from moorage.kit.go_quote import go_quote
from moorage.validation.errors import ErrorList, not_supported
from moorage.validation.errors import invalid as invalid_value

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
POLICIES = {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": ""}
OPTIONS = About("deleteoptions", "DeleteOptions", "meta.k8s.io")
SYSTEM_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})

_BOTH_SET = "orphanDependents and deletionPropagation cannot be both set"
_UNSAFE_VERB = "unsafe-delete-ignore-read-errors"
_READABLE = "unsafe deletion is not allowed because the object is decodable from storage"


class Preconditions(Closed, frozen=True):
    """The uid and resourceVersion that the object must have."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Closed, frozen=True):
    """The options of a delete request."""

    kind: str = ""
    api_version: str = ""
    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] = ()
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None


Admit = Callable[[Any], Awaitable[None]]


class DeletedObject(NamedTuple):
    """An object that is gone, or that is marked as deleted."""

    value: Any
    is_gone: bool


class DeletedObjects(NamedTuple):
    """Objects that were deleted, their bytes, and warnings about those that cannot be read."""

    values: list[Any]
    size: int
    warnings: tuple[str, ...]


def read_delete_options(request: ResourceRequest) -> DeleteOptions:
    """Return the delete options of a request: those of its body, or else those of its query."""
    tree = read_plain_tree(request, "v1", OPTIONS.kind)
    if not request.body:
        tree = _query_options(request.query)
    elif tree.get("kind") not in (None, "", OPTIONS.kind):
        raise bad_request(f"the body of the request must be one {OPTIONS.kind}")
    return checked_options(tree)


def _query_options(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a query; as in Kubernetes, a flag is true unless it is false or 0."""
    tree: dict[str, Any] = {}
    if "gracePeriodSeconds" in query:
        text = query["gracePeriodSeconds"]
        tree["gracePeriodSeconds"] = parse_int64(text)
        if tree["gracePeriodSeconds"] is None:
            raise bad_request(f'strconv.ParseInt: parsing "{text[:32]}": invalid syntax')
    for name in ("orphanDependents", "ignoreStoreReadErrorWithClusterBreakingPotential"):
        if name in query:
            tree[name] = query[name].lower() not in ("0", "false")
    if "propagationPolicy" in query:
        tree["propagationPolicy"] = query["propagationPolicy"]
    return tree


def checked_options(tree: Any) -> DeleteOptions:
    """Return delete options, or raise why they cannot be read or are invalid."""
    try:
        options = decode_tree(tree, DeleteOptions).value
    except ApiError as error:
        raise bad_request(f"the options cannot be read: {error}") from None
    if errors := _validate_options(options):
        raise invalid(OPTIONS, "", errors)
    if options.orphan_dependents is None:
        return options
    policy = "Orphan" if options.orphan_dependents else "Background"
    return replace(options, propagation_policy=policy)


def _validate_options(options: DeleteOptions) -> ErrorList:
    policy, path = options.propagation_policy, root("propagationPolicy")
    found: ErrorList = []
    if policy is not None and options.orphan_dependents is not None:
        found.append(invalid_value(path, policy, _BOTH_SET))
    if policy is not None and policy not in POLICIES:
        supported = ("Foreground", "Background", "Orphan", "nil")
        found.append(not_supported(path, policy, supported))
    if any(wish != "All" for wish in options.dry_run):
        found.append(not_supported(root("dryRun"), list(options.dry_run), ("All",)))
    if options.ignore_store_read_error_with_cluster_breaking_potential:
        found += _validate_unsafe(options)
    return found


def _validate_unsafe(options: DeleteOptions) -> ErrorList:
    """Validate that a deletion of an object that cannot be read has no other option."""
    path = root("ignoreStoreReadErrorWithClusterBreakingPotential")
    return [
        invalid_value(path, True, f"cannot be set together with .{name}")
        for name, value in (
            ("propagationPolicy", options.propagation_policy),
            ("orphanDependents", options.orphan_dependents),
            ("gracePeriodSeconds", options.grace_period_seconds),
            ("preconditions", options.preconditions),
        )
        if value is not None
    ]


async def delete(server: ServerContext, request: ResourceRequest) -> DeletedObject:
    """Delete the object that a request names."""
    options = read_delete_options(request)
    is_dry_run = request.is_dry_run or "All" in options.dry_run
    target = request.target
    if options.ignore_store_read_error_with_cluster_breaking_potential:
        _check_unsafe(server, request)
        found = await server.registry.remove_unreadable(
            request.resource, target.namespace, target.name, is_dry_run=is_dry_run
        )
        if found is not None:
            return DeletedObject(found, True)
    admit = partial(_admit_delete, server, request, options, is_dry_run)
    return await delete_object(
        server, request.resource, target.namespace, target.name, options, is_dry_run, admit
    )


def _check_unsafe(server: ServerContext, request: ResourceRequest) -> None:
    """Raise 403 unless a user may delete what cannot be read: nobody sees what depends on it."""
    if server.authorizer is None:
        return
    resource, target = request.resource, request.target
    access = ResourceAccess(
        request.user,
        _UNSAFE_VERB,
        resource.group,
        resource.plural,
        namespace=target.namespace,
        name=target.name,
    )
    decision = server.authorizer.authorizer.authorize(access)
    if not isinstance(decision, Allowed):
        why = f"not permitted to do {go_quote(_UNSAFE_VERB)}, reason: {decision.reason}"
        raise forbidden(resource.about, target.name, why)


async def delete_object(
    server: ServerContext,
    resource: Resource,
    namespace: str,
    name: str,
    options: DeleteOptions,
    is_dry_run: bool = False,
    admit: Admit | None = None,
) -> DeletedObject:
    """Delete an object, retrying if it was changed meanwhile; `admit` may refuse it."""
    if resource.holds_namespaces and name in SYSTEM_NAMESPACES:
        raise forbidden(resource.about, name, "this namespace may not be deleted")
    has_revision = options.preconditions and options.preconditions.resource_version
    for _ in range(RETRIES_MAX):
        old = await server.registry.get(resource, namespace, name)
        if admit is not None:
            await admit(old)
        if options.ignore_store_read_error_with_cluster_breaking_potential:
            raise conflict(resource.about, name, _READABLE)
        _check_preconditions(resource, old, options)
        new = marked(old, options, server.now())
        if is_dry_run:
            return DeletedObject(new, is_released(new))
        try:
            if is_released(new):
                gone = await server.registry.remove(resource, old)
                revision = int(gone.metadata.resource_version)
                # Of objects that go at once, only pods show the mark.
                shown = new if isinstance(new, Pod) else old
                return DeletedObject(with_revision(shown, revision), True)
            return DeletedObject(await _mark(server, resource, old, new), False)
        except StatusError as error:
            if error.status.reason != "Conflict" or has_revision:
                raise
    raise conflict(resource.about, name, MODIFIED)


async def _admit_delete(
    server: ServerContext,
    request: ResourceRequest,
    options: DeleteOptions,
    is_dry_run: bool,
    old: Any,
) -> None:
    await admit_write(server, request, Operation.DELETE, old=old)
    await admit_deletion(server, request, old, options=options, is_dry_run=is_dry_run)


async def _mark(server: ServerContext, resource: Resource, old: Any, new: Any) -> Any:
    async def change(current: Any) -> Any:
        if current.metadata.resource_version != old.metadata.resource_version:
            raise conflict(resource.about, old.metadata.name, MODIFIED)
        return new

    metadata = old.metadata
    return await server.registry.change(resource, metadata.namespace, metadata.name, change)


async def delete_collection(
    server: ServerContext, request: ResourceRequest, selection: Selection, list_options: ListOptions
) -> DeletedObjects:
    """Delete all selected objects, and return them as they were."""
    options = read_delete_options(request)
    is_dry_run = request.is_dry_run or "All" in options.dry_run
    namespace = request.target.namespace
    admit = partial(_admit_delete, server, request, options, is_dry_run)
    page = await list_entries(
        server.registry,
        request.resource,
        namespace,
        selection,
        list_options,
        ReadingInTurn(server.workers, request.user.name),
    )
    size = size_of(page.entries)
    read = await server.workers.run(
        request.user.name,
        size,
        server.registry.readable,
        request.resource,
        page.entries,
    )
    for value in read.values:
        metadata = value.metadata
        try:
            await delete_object(
                server,
                request.resource,
                metadata.namespace,
                metadata.name,
                options,
                is_dry_run,
                admit,
            )
        except StatusError as error:
            if error.status.reason != "NotFound":
                raise
    return DeletedObjects(read.values, size, (*page.warnings, *read.warnings))


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
    """Return an object marked as deleted; marking it again changes nothing."""
    metadata = old.metadata
    grace = _grace_s(old, options)
    held = _finalizers(metadata.finalizers, options.propagation_policy)
    when, generation = metadata.deletion_timestamp, metadata.generation
    before_s = metadata.deletion_grace_period_seconds
    if when is None:
        when = now.after(grace)
        generation = generation + 1 if generation else 0
    elif before_s is not None and grace < before_s:
        when = _sooner(when, before_s, grace, now)
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
    if isinstance(new, CustomResourceDefinition) and old.metadata.deletion_timestamp is None:
        return with_cleanup(new, now)
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
    """Return the grace period of an object; only pods on nodes have one."""
    if not isinstance(value, Pod):
        return 0
    is_over = value.status.phase in ("Succeeded", "Failed")
    if not value.spec.node_name or is_over:
        return 0
    wanted = options.grace_period_seconds
    if wanted is None:
        wanted = value.spec.termination_grace_period_seconds
    if wanted is None:
        return 30
    return 1 if wanted < 0 else wanted


def _sooner(when: Timestamp, before_s: int, grace_s: int, now: Timestamp) -> Timestamp:
    """Return the end of a shorter grace period, from the time when the first one began."""
    if when == LATEST:  # It began at a time that the mark no longer says.
        return now.after(grace_s)
    return when.after(grace_s - before_s)
