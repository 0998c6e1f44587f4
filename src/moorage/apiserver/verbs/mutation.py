"""Mutating admission of a write: policies and webhooks change a body before it is validated.

Fields that they change have no field manager, as in Kubernetes. So the managers of a changed object
are those that the object would have had without the change.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.catalogue import from_hub
from moorage.api.meta import ManagedFieldsEntry
from moorage.apiserver.admission.chain import create_strategy, run_update_strategy
from moorage.apiserver.dynamic_admission.attributes import CREATE, UPDATE
from moorage.apiserver.dynamic_admission.plugin import has_hooks, mutate_write
from moorage.apiserver.server_context import ServerContext
from moorage.apiserver.verbs.managed_fields import with_owners, with_updated_owners
from moorage.apiserver.verbs.resource_request import DecodedBody, ResourceRequest
from moorage.validation.registry import RegistryResult, defaulted_hub
from moorage.validation.strategy import Context


class MutatedBody(Struct, frozen=True):
    """A body after mutating admission, and whether it has managers of its fields."""

    body: DecodedBody
    is_managed: bool


async def mutate_new(
    server: ServerContext,
    request: ResourceRequest,
    body: DecodedBody,
    context: Context,
    *,
    is_applied: bool,
) -> MutatedBody:
    """Return the body of a new object as policies and webhooks change it."""
    if not has_hooks(server, request):
        return MutatedBody(body, is_applied)
    user, size = request.user.name, len(request.body)
    written = await server.workers.run(user, size, _as_written, request, body, context)
    if server.admission is not None:
        written = await server.admission.mutate(request, written, is_valid=False)
    changed = await mutate_write(server, request, CREATE, written)
    if changed is None:
        return MutatedBody(body, is_applied)
    owners = body.value.metadata.managed_fields
    if not is_applied:
        strategy = await create_strategy(server, request, body, context)
        plain = _plain(strategy, written)
        owners = await server.workers.run(user, size, _owners, None, plain, request, context)
    return _mutated(request, body, changed, owners)


async def mutate_changed(
    server: ServerContext,
    request: ResourceRequest,
    body: DecodedBody,
    old: Any,
    context: Context,
    *,
    is_applied: bool,
) -> MutatedBody:
    """Return the body of a changed object as policies and webhooks change it."""
    if not has_hooks(server, request):
        return MutatedBody(body, is_applied)
    user, size = request.user.name, len(request.body) + server.registry.size_of(old)
    run = server.workers.run
    written = await run(user, size, defaulted_hub, body.value, request.kind, context)
    changed = await mutate_write(server, request, UPDATE, written, old)
    if changed is None:
        return MutatedBody(body, is_applied)
    owners = body.value.metadata.managed_fields
    if not is_applied:
        strategy = await run(user, size, run_update_strategy, request, body, old, context)
        owners = await run(user, size, _owners, old, _plain(strategy, written), request, context)
    return _mutated(request, body, changed, owners)


def _as_written(request: ResourceRequest, body: DecodedBody, context: Context) -> Any:
    """Return a new object with defaults, in its namespace, without what the server sets."""
    value = defaulted_hub(body.value, request.kind, context)
    metadata = replace(
        value.metadata,
        namespace=request.target.namespace if request.resource.namespaced else "",
        uid="",
        creation_timestamp=None,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
    )
    return replace(value, metadata=metadata)


def _plain(strategy: RegistryResult, written: Any) -> Any:
    """Return the object as it would be stored without mutations; as it was written if invalid."""
    return written if strategy.stored is None else strategy.stored


def _owners(
    old: Any, plain: Any, request: ResourceRequest, context: Context
) -> tuple[ManagedFieldsEntry, ...]:
    entries: tuple[ManagedFieldsEntry, ...] = with_updated_owners(
        old, plain, request, context.now
    ).metadata.managed_fields
    return entries


def _mutated(
    request: ResourceRequest,
    body: DecodedBody,
    changed: Any,
    owners: tuple[ManagedFieldsEntry, ...],
) -> MutatedBody:
    value = from_hub(with_owners(changed, owners), request.kind.api_version)
    return MutatedBody(replace(body, value=value), True)
