"""DynamicAdmission: policies and webhooks in the admission chain.

    create, update    MutatingAdmissionPolicy ─ MutatingAdmissionWebhook ─ strategy …
                      … ValidatingAdmissionPolicy ─ ValidatingAdmissionWebhook ─ ResourceQuota
    delete, connect   MutatingAdmissionWebhook ─ ValidatingAdmissionPolicy ─ …Webhook

They never see reviews or their own kinds, so no policy can prevent its removal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moorage.api.admissionregistration import GROUP
from moorage.api.codec import to_tree
from moorage.apiserver.dynamic_admission.attributes import CONNECT, DELETE, Attributes
from moorage.apiserver.dynamic_admission.hook_source import (
    WATCHED_RESOURCES,
    HookSource,
    PolicyHook,
)
from moorage.apiserver.dynamic_admission.mutating_policies import mutate_by_policies
from moorage.apiserver.dynamic_admission.param_access import check_param_access
from moorage.apiserver.dynamic_admission.reinvocation import ReinvocationContext
from moorage.apiserver.dynamic_admission.validating_policies import validate_by_policies
from moorage.apiserver.dynamic_admission.webhook_client import WebhookClient
from moorage.apiserver.dynamic_admission.webhooks import mutate_by_webhooks, validate_by_webhooks
from moorage.apiserver.resources import Resources, subresource_of
from moorage.apiserver.storage.informer import StoreInformer
from moorage.apiserver.storage.registry import Registry

if TYPE_CHECKING:
    from moorage.apiserver.server_context import ServerContext
    from moorage.apiserver.verbs.resource_request import ResourceRequest


class DynamicAdmission:
    """The policies and webhooks of a server."""

    def __init__(self, registry: Registry, resources: Resources) -> None:
        self.source = HookSource()
        self.client = WebhookClient()
        watched = [resources.of(group, plural) for group, plural in WATCHED_RESOURCES]
        self._informer = StoreInformer(registry, watched, self.source, keeps_last=True)

    async def prepare(self) -> None:
        """Read all policies and webhooks before the server accepts requests."""
        await self._informer.load()

    async def run(self) -> None:
        """Follow changes until cancelled."""
        try:
            await self._informer.run()
        finally:
            self.client.close()


def has_hooks(server: ServerContext, request: ResourceRequest) -> bool:
    """Return whether any policy or webhook may match a request."""
    dynamic = server.dynamic
    return not (dynamic is None or dynamic.source.is_empty or request.target.group == GROUP)


async def mutate_write(
    server: ServerContext, request: ResourceRequest, operation: str, new: Any, old: Any = None
) -> Any | None:
    """Return the object as policies and webhooks changed it, or None if they did not.

    The object is in its hub version and has defaults. Raises if one of them rejects it.
    """
    if not has_hooks(server, request):
        return None
    attributes = Attributes(server, request, operation, new=new, old=old)
    await _mutate(attributes)
    return None if attributes.new == new else attributes.new


async def validate_write(
    server: ServerContext, request: ResourceRequest, operation: str, new: Any, old: Any = None
) -> None:
    """Raise if a policy or a webhook rejects a write."""
    if request.target.group == GROUP:
        await check_param_access(server, request, new, old)
    elif has_hooks(server, request):
        await _validate(Attributes(server, request, operation, new=new, old=old))


async def admit_deletion(
    server: ServerContext,
    request: ResourceRequest,
    old: Any,
    *,
    options: Struct,
    is_dry_run: bool,
) -> None:
    """Raise if a policy or a webhook rejects a deletion."""
    if not has_hooks(server, request):
        return
    attributes = Attributes(
        server,
        request,
        DELETE,
        old=old,
        name=old.metadata.name,
        options=to_tree(options),
        is_dry_run=is_dry_run,
    )
    await _mutate(attributes)
    await _validate(attributes)


async def admit_part(
    server: ServerContext, request: ResourceRequest, operation: str, body: Any, old: Any = None
) -> None:
    """Raise if a policy or a webhook rejects a request whose body is not stored.

    Such requests are bindings and evictions. Mutations of their bodies have no effect.
    """
    if has_hooks(server, request):
        attributes = Attributes(server, request, operation, new=body, old=old)
        await _mutate(attributes)
        await _validate(attributes)


async def admit_connection(
    server: ServerContext, request: ResourceRequest, fields: Iterable[tuple[str, str]]
) -> None:
    """Raise if a policy or a webhook rejects a connection to a container."""
    if has_hooks(server, request):
        await admit_part(server, request, CONNECT, _connection_options(request, fields))


def _connection_options(
    request: ResourceRequest, fields: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """Return the options in a query, such as PodExecOptions."""
    kind = subresource_of(request.target.subresource).kind
    found: dict[str, Any] = {"kind": kind, "apiVersion": request.target.version}
    for name, value in fields:
        if name == "command":
            found.setdefault(name, []).append(value)
        elif name == "container":
            found[name] = value
        elif name in ("stdin", "stdout", "stderr", "tty"):
            found[name] = value.lower() not in ("0", "false", "f")
    return found


async def _mutate(attributes: Attributes) -> None:
    dynamic = attributes.server.dynamic
    assert dynamic is not None
    source = dynamic.source
    policies: tuple[PolicyHook, ...] = ()
    if attributes.operation != DELETE:  # There is nothing to change.
        policies = source.mutating_policies.hooks_for(attributes)
    webhooks = source.mutating_webhooks.hooks_for(attributes)
    if not policies and not webhooks:
        return
    contexts = ReinvocationContext(), ReinvocationContext()
    for is_reinvoke in (False, True):
        for context in contexts:
            context.is_reinvoke = is_reinvoke
        await mutate_by_policies(attributes, policies, contexts[0])
        await mutate_by_webhooks(dynamic.client, attributes, webhooks, contexts[1])
        if not any(context.should_reinvoke for context in contexts):
            return


async def _validate(attributes: Attributes) -> None:
    dynamic = attributes.server.dynamic
    assert dynamic is not None
    policies = dynamic.source.validating_policies.hooks_for(attributes)
    if policies:
        await validate_by_policies(attributes, policies)
    webhooks = dynamic.source.validating_webhooks.hooks_for(attributes)
    if webhooks:
        await validate_by_webhooks(dynamic.client, attributes, webhooks)
