"""Create and update: a body becomes a stored object.

    body ─ decoded ─ admitted (admission.chain) ─ stored (storage.registry)

The server alone sets uid, times, generation and revision; it ignores what clients send for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.built_in_kinds import BUILT_IN_KINDS
from moorage.api.core.service import HEADLESS, LOAD_BALANCER, NODE_PORT, Service, ServiceSpec
from moorage.api.meta import ManagedFieldsEntry, OwnerReference
from moorage.apiserver.admission.chain import (
    admit_changed,
    admit_new,
    charged,
    create_strategy,
    run_update_strategy,
    strategy_context,
)
from moorage.apiserver.custom_resources.requests import read_custom_body, strategy_lane
from moorage.apiserver.http.messages import JSON
from moorage.apiserver.http.status import (
    StatusError,
    already_exists,
    bad_request,
    conflict,
    method_not_allowed,
    warned,
)
from moorage.apiserver.server_context import ServerContext
from moorage.apiserver.storage.registry import check_size, with_revision
from moorage.apiserver.verbs.managed_fields import with_owners
from moorage.apiserver.verbs.mutation import mutate_changed, mutate_new
from moorage.apiserver.verbs.resource_request import DecodedBody, ResourceRequest, read_body
from moorage.apiserver.worker_threads import SMALL_BYTES_MAX, UPDATED_WITH_EXPRESSIONS
from moorage.validation.registry import RegistryResult as StrategyResult
from moorage.validation.strategy import Context

SLOW_FORMAT_FACTOR = 2  # Reading YAML and protobuf takes longer than reading JSON.
_OWNERS_AGAIN = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner "
    "references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
    "duplicate UID(s) observed: {uids}"
)
_NO_EFFECT = {kind.name: kind.words for kind in BUILT_IN_KINDS if kind.warns}
_IN_PATCH = {"update": "", "patch": " after mutating admission happens"}  # as Kubernetes says it


class WrittenObject(Struct, frozen=True):
    """The result of a write."""

    value: Any  # in the hub version
    is_new: bool = False
    warnings: tuple[str, ...] = ()


async def create(server: ServerContext, request: ResourceRequest) -> WrittenObject:
    """Store a new object."""
    target = request.target
    if target.subresource or (request.resource.namespaced and not target.namespace):
        raise method_not_allowed()
    return await create_decoded(server, request, await read_object(server, request))


async def read_object(server: ServerContext, request: ResourceRequest) -> DecodedBody:
    """Return the object of a request, or raise 400 if it cannot be decoded."""
    size = len(request.body)
    if not request.content_type.startswith(JSON):
        size *= SLOW_FORMAT_FACTOR
    if request.resource.definition is not None:
        return await server.workers.run(request.user.name, size, read_custom_body, request)
    return await server.workers.run(
        request.user.name,
        size,
        read_body,
        request,
        gates=server.gates,
        extensions=server.extensions,
    )


async def create_decoded(
    server: ServerContext, request: ResourceRequest, body: DecodedBody, *, is_applied: bool = False
) -> WrittenObject:
    """Store a new object from its decoded body."""
    namespace = await server.namespace(request.target.namespace)
    if not is_applied:
        body = _with_readable_managers(body, ())
    body = _with_single_owners(body)
    context = strategy_context(server, request, namespace, verb="create")
    context = _with_size_check(context, request, len(request.body))
    if namespace is not None or not request.resource.namespaced:  # as NamespaceLifecycle says
        try:
            mutated = await mutate_new(server, request, body, context, is_applied=is_applied)
            body, is_applied = mutated.body, mutated.is_managed
        except StatusError as error:
            error.warnings = (*body.warnings, *request.warnings)
            raise
    strategy = await create_strategy(server, request, body, context)
    warnings = (*body.warnings, *strategy.warnings)
    try:
        new = await admit_new(server, request, body, strategy, namespace, is_applied=is_applied)
    except StatusError as error:
        # Plugins run before the strategy in Kubernetes: one that refuses hides its warnings.
        is_forbidden = error.status.code == HTTPStatus.FORBIDDEN
        told = body.warnings if is_forbidden else warnings
        error.warnings = (*told, *request.warnings, *error.warnings)
        raise
    if server.extensions:
        request.warnings.extend(_of_no_effect(request.kind.name))
        if isinstance(new, Service):
            request.warnings.extend(_unserved(new.spec))
    warnings = (*warnings, *request.warnings)
    with warned(warnings):
        async with charged(server, request, new):
            if not request.is_dry_run:
                if not is_applied and body.value.metadata.resource_version.strip("0"):
                    raise bad_request("resourceVersion should not be set on objects to be created")
                new = await server.registry.create(request.resource, new)
            else:
                metadata, resource = new.metadata, request.resource
                found = await server.registry.find(resource, metadata.namespace, metadata.name)
                if found is not None:
                    is_leaving = found.metadata.deletion_timestamp is not None
                    raise already_exists(resource.about, metadata.name, is_leaving=is_leaving)
    return WrittenObject(new, is_new=True, warnings=warnings)


def _of_no_effect(kind: str) -> tuple[str, ...]:
    """Return a warning if nothing acts on objects of a kind that their writer relies on."""
    words = _NO_EFFECT.get(kind)
    return () if words is None else (f"{kind} is stored, but has no effect: {words}",)


def _unserved(spec: ServiceSpec) -> Iterator[str]:
    """Yield a warning for each way to a service that its writer relies on and nothing opens."""
    if spec.type == LOAD_BALANCER:
        yield "Service type LoadBalancer: nothing gives it an address outside the cluster"
    elif spec.type == NODE_PORT:
        yield "Service type NodePort: nothing listens at its node ports"
    if spec.external_ips:
        yield "Service with externalIPs: nothing listens at them"
    others = sorted({port.protocol for port in spec.ports} - {"", "TCP"})
    if others and spec.cluster_ip not in ("", HEADLESS):
        yield f"Service with a port of {others[0]}: the agent of a node forwards TCP only"


def _with_size_check(context: Context, request: ResourceRequest, size: int) -> Context:
    """Return a context in which what is too large is refused before it is validated."""
    if size <= SMALL_BYTES_MAX:
        return context
    return context._replace(check_size=partial(check_size, request.resource))


async def replace_object(server: ServerContext, request: ResourceRequest) -> WrittenObject:
    """Store a newer version of an object."""
    body = await read_object(server, request)
    with warned(body.warnings):
        check_name(body.value, request)
    registry, target = server.registry, request.target
    may_create = request.resource.is_made_by_update and not target.subresource
    if may_create and not await registry.find(request.resource, target.namespace, target.name):
        return await create_decoded(server, request, body)
    return await change_object(server, request, lambda old: _for(old, body, request), verb="update")


def _for(old: Any, body: DecodedBody, request: ResourceRequest) -> DecodedBody:
    """Return the body of an update, or raise that it is for another object of the same name."""
    wanted, found = body.value.metadata.uid, old.metadata.uid
    if not wanted or wanted == found:
        return body
    with warned(body.warnings):
        why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        raise conflict(request.resource.about, old.metadata.name, why)


def _with_single_owners(body: DecodedBody, when: str = "") -> DecodedBody:
    """Return an object with each owner once; a warning names those that it had again."""
    owners = body.value.metadata.owner_references
    if len(owners) < 2:
        return body
    single = tuple(dict.fromkeys(owners))
    if len(single) == len(owners):
        return body
    seen: set[OwnerReference] = set()
    again: list[str] = []
    for owner in owners:
        if owner in seen:
            again.append(owner.uid)
        seen.add(owner)
    value = replace(body.value, metadata=replace(body.value.metadata, owner_references=single))
    warning = _OWNERS_AGAIN.format(when=when, uids=", ".join(again))
    return replace(body, value=value, warnings=(*body.warnings, warning))


def _with_readable_managers(
    body: DecodedBody, stored: tuple[ManagedFieldsEntry, ...]
) -> DecodedBody:
    """Return an object with the managedFields that are stored unless its own can be read."""
    entries = body.value.metadata.managed_fields
    if all(map(_is_readable, entries)):
        return body
    return replace(body, value=with_owners(body.value, stored))


def _is_readable(entry: ManagedFieldsEntry) -> bool:
    return (
        entry.operation in ("Apply", "Update")
        and bool(entry.api_version)
        and entry.fields_type == "FieldsV1"
    )


async def change_object(
    server: ServerContext,
    request: ResourceRequest,
    body_for: Callable[[Any], DecodedBody],
    *,
    verb: str,
    is_applied: bool = False,
) -> WrittenObject:
    """Store what `body_for` makes of the stored object; retry if it was changed meanwhile."""
    namespace = await server.namespace(request.target.namespace)
    context = strategy_context(server, request, namespace, verb=verb)
    warnings: tuple[str, ...] = ()
    registry, target = server.registry, request.target

    async def changed(old: Any) -> Any:
        nonlocal warnings
        user, size = request.user.name, len(request.body) + registry.size_of(old)
        body = await server.workers.run(user, size, body_for, old)
        if body.value.metadata.managed_fields == (ManagedFieldsEntry(),):  # forgets all managers
            old, body = with_owners(old, ()), replace(body, value=with_owners(body.value, ()))
        body = _with_readable_managers(body, old.metadata.managed_fields)
        body = _with_single_owners(body, _IN_PATCH[verb])
        body, is_managed, strategy = await _update_strategy(
            server, request, body, old, context, size, is_applied=is_applied
        )
        warnings = (*body.warnings, *strategy.warnings)
        return await admit_changed(
            server, request, body, strategy, old, namespace, size=size, is_applied=is_managed
        )

    try:
        if request.is_dry_run:
            old = await registry.get(request.resource, target.namespace, target.name)
            new = with_revision(await changed(old), int(old.metadata.resource_version))
        else:
            new = await registry.change(request.resource, target.namespace, target.name, changed)
    except StatusError as error:
        error.warnings = (*warnings, *request.warnings, *error.warnings)
        raise
    return WrittenObject(new, warnings=(*warnings, *request.warnings))


async def replace_with_status(
    server: ServerContext, request: ResourceRequest, status: ResourceRequest
) -> WrittenObject:
    """Store a newer version of an object and of its status in one write.

    Each of both requests has its strategy, its admission and its field manager, the second on what
    the first makes of the object. The result is that of one after the other.
    """
    body = await read_object(server, request)
    check_name(body.value, request)
    registry, target = server.registry, request.target
    namespace = await server.namespace(target.namespace)

    async def changed(old: Any) -> Any:
        new, size = old, len(request.body) + registry.size_of(old)
        for part in (request, status):
            context = strategy_context(server, part, namespace, verb="update")
            found = _with_readable_managers(_for(old, body, part), new.metadata.managed_fields)
            found = _with_single_owners(found)
            found, is_managed, strategy = await _update_strategy(
                server, part, found, new, context, size
            )
            new = await admit_changed(
                server, part, found, strategy, new, namespace, size=size, is_applied=is_managed
            )
        return new

    return WrittenObject(
        await registry.change(request.resource, target.namespace, target.name, changed)
    )


async def _update_strategy(
    server: ServerContext,
    request: ResourceRequest,
    body: DecodedBody,
    old: Any,
    context: Context,
    size: int,
    *,
    is_applied: bool = False,
) -> tuple[DecodedBody, bool, StrategyResult]:
    """Return a changed object after mutation, whether it has managers, and its strategy's result.

    It may be invalid.
    """
    run = server.workers.run
    if request.resource.definition is not None:
        run, size = strategy_lane(server.workers, request, size)
    elif request.resource.plural in UPDATED_WITH_EXPRESSIONS:
        run = server.workers.run_expressions
    checked = _with_size_check(context, request, size)
    mutated = await mutate_changed(server, request, body, old, checked, is_applied=is_applied)
    body, user = mutated.body, request.user.name
    strategy = await run(user, size, run_update_strategy, request, body, old, checked)
    return body, mutated.is_managed, strategy


def check_name(value: Any, request: ResourceRequest) -> None:
    """Raise that an object has another name than the URL, or none."""
    name, wanted = value.metadata.name, request.target.name
    if not name:
        raise bad_request(
            f"the name of the object ({wanted} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != wanted:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({wanted})"
        )
