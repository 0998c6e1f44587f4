"""Create and update: a body becomes a stored object.

    body ─ decoded ─ admitted (admission.chain) ─ stored (storage.registry)

The server alone sets uid, times, generation and revision; it ignores what clients send for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mooring.apiserver.admission.chain import (
    admit_changed,
    admit_new,
    charged,
    run_create_strategy,
    run_update_strategy,
    strategy_context,
)
from mooring.apiserver.http.status import (
    StatusError,
    already_exists,
    bad_request,
    conflict,
    method_not_allowed,
    warned,
)
from mooring.apiserver.server_context import ServerContext
from mooring.apiserver.storage.registry import with_revision
from mooring.apiserver.verbs.resource_request import DecodedBody, ResourceRequest, read_body


class WrittenObject(NamedTuple):
    """The result of a write."""

    value: Any  # in the hub version
    is_new: bool = False
    warnings: tuple[str, ...] = ()


async def create(server: ServerContext, request: ResourceRequest) -> WrittenObject:
    """Store a new object."""
    target = request.target
    if target.subresource or (request.resource.namespaced and not target.namespace):
        raise method_not_allowed()
    body = read_body(request, gates=server.gates, extensions=server.extensions)
    return await create_decoded(server, request, body)


async def create_decoded(
    server: ServerContext, request: ResourceRequest, body: DecodedBody, *, is_applied: bool = False
) -> WrittenObject:
    """Store a new object from its decoded body."""
    namespace = await server.namespace(request.target.namespace)
    strategy = run_create_strategy(server, request, body, namespace)
    warnings = (*body.warnings, *strategy.warnings)
    with warned(warnings):
        new = await admit_new(server, request, body, strategy, namespace, is_applied=is_applied)
        async with charged(server, request, new):
            if not request.is_dry_run:
                new = await server.registry.create(request.resource, new)
            else:
                metadata, resource = new.metadata, request.resource
                if await server.registry.find(resource, metadata.namespace, metadata.name):
                    raise already_exists(resource.about, metadata.name)
    return WrittenObject(new, is_new=True, warnings=warnings)


async def replace_object(server: ServerContext, request: ResourceRequest) -> WrittenObject:
    """Store a newer version of an object."""
    body = read_body(request, gates=server.gates, extensions=server.extensions)
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

    async def changed(old: Any) -> Any:
        nonlocal warnings
        body = body_for(old)
        strategy = run_update_strategy(request, body, old, context)
        warnings = (*body.warnings, *strategy.warnings)
        return await admit_changed(server, request, body, strategy, old, is_applied=is_applied)

    registry, target = server.registry, request.target
    try:
        if request.is_dry_run:
            old = await registry.get(request.resource, target.namespace, target.name)
            new = with_revision(await changed(old), int(old.metadata.resource_version))
        else:
            new = await registry.change(request.resource, target.namespace, target.name, changed)
    except StatusError as error:
        error.warnings = (*warnings, *error.warnings)
        raise
    return WrittenObject(new, warnings=warnings)


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
