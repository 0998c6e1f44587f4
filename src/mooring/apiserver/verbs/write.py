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
from mooring.apiserver.http.messages import JSON
from mooring.apiserver.http.status import (
    StatusError,
    already_exists,
    bad_request,
    method_not_allowed,
    warned,
)
from mooring.apiserver.server_context import ServerContext
from mooring.apiserver.storage.registry import with_revision
from mooring.apiserver.verbs.resource_request import DecodedBody, ResourceRequest, read_body

SLOW_FORMAT_FACTOR = 2  # Reading YAML and protobuf takes longer than reading JSON.


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
    return await create_decoded(server, request, await read_object(server, request))


async def read_object(server: ServerContext, request: ResourceRequest) -> DecodedBody:
    """Return the object of a request, or raise 400 if it cannot be decoded."""
    size = len(request.body)
    if not request.content_type.startswith(JSON):
        size *= SLOW_FORMAT_FACTOR
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
    context = strategy_context(server, request, namespace, verb="create")
    strategy = await server.workers.run(
        request.user.name, len(request.body), run_create_strategy, request, body, context
    )
    warnings = (*body.warnings, *strategy.warnings)
    try:
        new = await admit_new(server, request, body, strategy, namespace, is_applied=is_applied)
        async with charged(server, request, new):
            if not request.is_dry_run:
                new = await server.registry.create(request.resource, new)
            else:
                metadata, resource = new.metadata, request.resource
                if await server.registry.find(resource, metadata.namespace, metadata.name):
                    raise already_exists(resource.about, metadata.name)
    except StatusError as error:
        error.warnings = (*warnings, *request.warnings, *error.warnings)
        raise
    return WrittenObject(new, is_new=True, warnings=(*warnings, *request.warnings))


async def replace_object(server: ServerContext, request: ResourceRequest) -> WrittenObject:
    """Store a newer version of an object."""
    body = await read_object(server, request)
    name = body.value.metadata.name
    with warned(body.warnings):
        if name != request.target.name:
            raise other_name(name, request)
    registry, target = server.registry, request.target
    may_create = request.resource.is_made_by_update and not target.subresource
    if may_create and not await registry.find(request.resource, target.namespace, target.name):
        return await create_decoded(server, request, body)
    return await change_object(server, request, lambda _: body, verb="update")


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
        strategy = await server.workers.run(
            user, size, run_update_strategy, request, body, old, context
        )
        warnings = (*body.warnings, *strategy.warnings)
        return await admit_changed(
            server, request, body, strategy, old, namespace, is_applied=is_applied
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


def other_name(name: str, request: ResourceRequest) -> StatusError:
    """Return the error of a body whose name differs from the name in the URL."""
    return bad_request(
        f"the name of the object ({name}) does not match the name on the URL "
        f"({request.target.name})"
    )
