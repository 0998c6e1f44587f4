"""Admission: everything between a decoded body and the stored object, in one place and in order.

    create                                update, patch, apply          other writes
    ──────────────────────────────────    ─────────────────────────     ───────────────
    NamespaceLifecycle, mutation          KeepPriority, mutation        webhooks
    ServiceAccount, Priority,
      RuntimeClass (if invalid: below)
    strategy: prepare, default,           strategy: prepare, default,
      drop disabled fields, validate        drop, validate
    NamespaceLabel                        NamespaceLabel
    NodeRestriction, RBAC escalation      NodeRestriction, escalation   NodeRestriction, escalation
    managed fields                        PodSecurity, PodResizeValidator,
                                            PersistentVolumeClaimResize
    ServerDefaults                        DefaultPriorityClass
    ServiceAccount, Priority,             addresses and ports of services
      DefaultTolerationSeconds,           validation by policies and webhooks
      RuntimeClass, LimitRanger,          ResourceQuota, charged
      DefaultStorageClass,                managed fields
      StorageObjectInUseProtection,
      addresses and ports of services
    PodSecurity, LimitRanger, validation by policies and webhooks
    ResourceQuota, charged while stored

- Mutation and validation by policies and webhooks are in `moorage.apiserver.dynamic_admission`.
- The strategy of a kind (`moorage.validation`) is REST strategy: it knows the object alone.
- A plugin with a name of Kubernetes does what that plugin does; each has a module beside this one.
- Kubernetes runs ServiceAccount, Priority and RuntimeClass before the strategy. Here they run after
  it; for an invalid object first: an unknown account or class is 403, whatever else is wrong.
- Values that ServerDefaults and the plugins set have no field manager; NamespaceLabel's have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from moorage.api.catalogue import to_hub
from moorage.api.core import Namespace, Pod, Service
from moorage.api.gates import Gate, Gates
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ADMIN_NAMESPACE_LABEL, ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.apiserver.admission import server_defaults
from moorage.apiserver.admission.cache import WATCHED_RESOURCES, AdmissionCache
from moorage.apiserver.admission.certificates import with_requester
from moorage.apiserver.admission.classes import (
    PriorityAdmission,
    RuntimeClassAdmission,
    StorageObjects,
    without_merged,
)
from moorage.apiserver.admission.limit_ranger import LimitRanger
from moorage.apiserver.admission.node_restriction import (
    Operation,
)
from moorage.apiserver.admission.pod_resize import RESIZE, PodResizeAdmission
from moorage.apiserver.admission.pod_security import PodSecurityAdmission
from moorage.apiserver.admission.quota_controller import QuotaController
from moorage.apiserver.admission.service_account import (
    ServiceAccountAdmission,
    with_default_tolerations,
    with_pod_defaults,
)
from moorage.apiserver.admission.service_allocator import CLUSTER_IP_RANGE, ServiceAllocator
from moorage.apiserver.admission.write_access import admit_write
from moorage.apiserver.custom_resources.requests import about_refused, strategy_lane
from moorage.apiserver.dynamic_admission.plugin import validate_write
from moorage.apiserver.http.status import (
    MODIFIED,
    StatusCause,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from moorage.apiserver.resources import Resources
from moorage.apiserver.storage.informer import StoreInformer
from moorage.apiserver.storage.registry import Registry
from moorage.apiserver.verbs.managed_fields import is_unchanged_apply, with_updated_owners
from moorage.apiserver.verbs.resource_request import DecodedBody, ResourceRequest
from moorage.apiserver.worker_threads import (
    CREATED_WITH_EXPRESSIONS,
    StatusAuthorizerOnLoop,
    WorkerThreads,
)
from moorage.kit.bulkhead import keep_running
from moorage.kit.metrics import Family
from moorage.validation.pod_security import PodSecurityConfiguration
from moorage.validation.registry import (
    CONFLICT,
    before_create,
    before_status_update,
    before_update,
)
from moorage.validation.registry import RegistryResult as StrategyResult
from moorage.validation.strategy import AllowEverything, Context, StatusAuthorizer

if TYPE_CHECKING:
    from moorage.apiserver.server_context import ServerContext

_ALLOWED = AllowEverything()
_NO_CHARGE: AbstractAsyncContextManager[None] = nullcontext()


def strategy_context(
    server: ServerContext, request: ResourceRequest, namespace: Any | None, *, verb: str
) -> Context:
    """Return the facts about a request that the strategy of a kind needs."""
    labels = {} if namespace is None else namespace.metadata.labels
    authorizer: StatusAuthorizer = _ALLOWED
    if server.authorizer is not None and request.resource.hub_struct is ResourceClaim:
        where = request.target.namespace
        authorizer = StatusAuthorizerOnLoop(
            server.authorizer.claim_status(request.user, verb=verb, namespace=where)
        )
    return Context(
        gates=server.gates,
        now=server.now(),
        extensions=server.extensions,
        namespace_is_admin=labels.get(ADMIN_NAMESPACE_LABEL) == "true",
        authorizer=authorizer,
        verb=verb,
    )


# --- create ---------------------------------------------------------------------------------------


async def create_strategy(
    server: ServerContext, request: ResourceRequest, body: DecodedBody, context: Context
) -> StrategyResult:
    """Return a new object after its strategy's steps; it may be invalid."""
    run = server.workers.run
    user, size = request.user.name, len(request.body)
    if request.resource.definition is not None:
        run, size = strategy_lane(server.workers, request, size)
    elif request.resource.plural in CREATED_WITH_EXPRESSIONS:
        run = server.workers.run_expressions
    name, value = request.target.namespace or "default", body.value
    return await run(user, size, before_create, value, request.kind, context, namespace=name)


async def admit_new(
    server: ServerContext,
    request: ResourceRequest,
    body: DecodedBody,
    strategy: StrategyResult,
    namespace: Any | None,
    *,
    is_applied: bool,
) -> Any:
    """Return a new object that may be stored, or raise why not; `is_applied`: it has managers."""
    if strategy.refused is None and request.resource.namespaced:
        _check_namespace(server, request, namespace, body.value.metadata)
    name = server_defaults.name_of(body.value.metadata, server.new_suffix)
    user, size = request.user.name, len(request.body)
    if strategy.errors:
        written = to_hub(body.value, request.kind)
        mutated = await _mutate(server, request, written, is_valid=False)
        kept = await server.workers.run(user, size, without_merged, body.value, mutated)
        if kept is not None:
            context = strategy_context(server, request, namespace, verb="create")
            again = replace(body, value=kept)
            strategy = await create_strategy(server, request, again, context)
    stored = strategy.stored
    if stored is None:
        stored = await server.workers.run(user, size, _accepted, strategy, request, name)
    now = server.now()
    metadata = replace(stored.metadata, name=name, uid=server.new_uid(), creation_timestamp=now)
    new = server_defaults.with_namespace_label(replace(stored, metadata=metadata))
    new = with_requester(new, request.user)
    await admit_write(server, request, Operation.CREATE, new=new)
    if not is_applied:
        new = await server.workers.run(user, size, with_updated_owners, None, new, request, now)
    new = await _mutate(server, request, server_defaults.with_server_defaults(new, body.value))
    if server.admission is not None:
        await server.admission.validate(request, new, None, namespace)
    await validate_write(server, request, Operation.CREATE, new)
    return new


async def _mutate(
    server: ServerContext, request: ResourceRequest, new: Any, *, is_valid: bool = True
) -> Any:
    """Run the mutating plugins; without plugins, pods get the defaults of an empty account."""
    if server.admission is not None:
        return await server.admission.mutate(request, new, is_valid=is_valid)
    return with_pod_defaults(new, server.new_suffix()) if isinstance(new, Pod) else new


def charged(
    server: ServerContext, request: ResourceRequest, new: Any
) -> AbstractAsyncContextManager[None]:
    """Return a context that charges quotas for an object that is stored within."""
    return _NO_CHARGE if server.admission is None else server.admission.charged(request, new)


def _check_namespace(
    server: ServerContext, request: ResourceRequest, namespace: Any | None, metadata: ObjectMeta
) -> None:
    """NamespaceLifecycle: refuse objects in a namespace that does not exist or is terminating."""
    name = request.target.namespace
    if namespace is None:
        raise not_found(server.resources.of("", "namespaces").about, name)
    if namespace.metadata.deletion_timestamp is not None:
        why = f"unable to create new content in namespace {name} because it is being terminated"
        cause = StatusCause(
            reason="NamespaceTerminating",
            message=f"namespace {name} is being terminated",
            field="metadata.namespace",
        )
        shown = metadata.name or metadata.generate_name
        raise forbidden(request.resource.about, shown, why, (cause,))


def _accepted(strategy: StrategyResult, request: ResourceRequest, name: str) -> Any:
    """Return the object of a strategy, or raise why it is refused."""
    if strategy.refused == CONFLICT:
        raise conflict(request.resource.about, name, MODIFIED)
    if strategy.refused is not None:
        raise bad_request(strategy.refused)
    if strategy.errors:
        raise invalid(about_refused(request, strategy.errors), name, strategy.errors)
    return strategy.stored


# --- update and other writes ----------------------------------------------------------------------


def run_update_strategy(
    request: ResourceRequest, body: DecodedBody, old: Any, context: Context
) -> StrategyResult:
    """Return a changed object after its strategy's steps; it may be invalid."""
    subresource = request.target.subresource
    new = server_defaults.with_kept_priority(body.value, old)
    if subresource == "status":
        return before_status_update(new, old, request.kind, context)
    if isinstance(new, Pod) and not subresource:
        new = with_default_tolerations(new)
    return before_update(new, old, request.kind, context, subresource)


async def admit_changed(
    server: ServerContext,
    request: ResourceRequest,
    body: DecodedBody,
    strategy: StrategyResult,
    old: Any,
    namespace: Namespace | None,
    *,
    size: int,
    is_applied: bool,
) -> Any:
    """Return a changed object that may be stored, or raise why not."""
    user = request.user.name
    new = strategy.stored
    if new is None:
        name = request.target.name
        new = await server.workers.run(user, size, _accepted, strategy, request, name)
    if request.target.subresource != "status":
        new = server_defaults.with_namespace_label(new)
    await admit_write(server, request, Operation.UPDATE, new=new, old=old)
    if server.admission is not None:
        if isinstance(new, Service) and not request.target.subresource:
            new = server.admission.services.allocate(new, old, is_trial=request.is_dry_run)
        await server.admission.validate(request, new, old, namespace)
    await validate_write(server, request, Operation.UPDATE, new, old)
    if server.admission is not None:
        await server.admission.admit_change(request, new, old)
    if is_applied:
        entries = to_hub(body.value, request.kind).metadata.managed_fields
        applied = replace(new, metadata=replace(new.metadata, managed_fields=entries))
        is_same = await server.workers.run(user, size, is_unchanged_apply, old, applied)
        return old if is_same else applied
    return await server.workers.run(
        user, size, with_updated_owners, old, new, request, server.now()
    )


# --- plugins --------------------------------------------------------------------------------------


class AdmissionPlugins:
    """The plugins that read other objects, with their cache and controllers."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        *,
        gates: Gates,
        now: Callable[[], Timestamp],
        new_uid: Callable[[], str],
        new_suffix: Callable[[], str],
        workers: WorkerThreads,
        pod_security: PodSecurityConfiguration = PodSecurityConfiguration(),  # noqa: B008
        cluster_ips: str = CLUSTER_IP_RANGE,
    ) -> None:
        cache = AdmissionCache()
        self.services = ServiceAllocator(cache.services, cluster_ips=cluster_ips)
        self._limits, self._storage = LimitRanger(cache, workers), StorageObjects(cache)
        watched = [resources.of(group, plural) for group, plural in WATCHED_RESOURCES]
        self._informer = StoreInformer(registry, watched, cache, keeps_last=True)
        self._accounts = ServiceAccountAdmission(
            registry, resources, cache, now=now, new_uid=new_uid, new_suffix=new_suffix
        )
        self._priorities = PriorityAdmission(
            registry, resources, cache, gates=gates, now=now, new_uid=new_uid
        )
        self._runtimes = RuntimeClassAdmission(registry, resources, cache)
        self._pod_security = PodSecurityAdmission(registry, resources, pod_security, gates=gates)
        self._resizes = PodResizeAdmission(registry, resources)
        has_extended = gates.enabled(Gate.DRA_EXTENDED_RESOURCE)
        self._quotas = QuotaController(
            registry, resources, cache, now=now, has_extended=has_extended
        )

    async def prepare(self) -> None:
        """Create the system priority classes and fill the cache, before the server answers."""
        await self._priorities.create_system_classes()
        await self._informer.load()
        await self._accounts.make_missing()

    async def run(self) -> None:
        """Run the informer and the controllers until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for work in (self._informer.run, self._accounts.run, self._quotas.run):
                tasks.create_task(keep_running("admission", work))

    def families(self) -> Iterator[Family]:
        """Yield the metrics of the plugins."""
        yield from self._pod_security.metrics.families()

    async def recount(self, namespace: str) -> None:
        """Bring the status of all quotas of a namespace up to date now."""
        await self._quotas.recount(namespace)

    async def mutate(self, request: ResourceRequest, new: Any, *, is_valid: bool) -> Any:
        """Return a new object with the plugins' changes, or raise why it is forbidden.

        An invalid object is checked for the existence of its account and classes only.
        """
        account = None
        if isinstance(new, Pod):
            account = await self._accounts.find_for(request, new)
        new = await self._priorities.admit(request, new)
        if account is not None:
            new = self._accounts.admit(new, account)
        elif isinstance(new, Pod):
            new = with_default_tolerations(new)
        if isinstance(new, Pod):
            new = await self._runtimes.admit(request, new, is_valid=is_valid)
        if is_valid and isinstance(new, Pod):
            return await self._limits.mutate(request, new)
        if is_valid and isinstance(new, Service):
            return self.services.allocate(new, is_trial=request.is_dry_run)
        return self._storage.admit(new) if is_valid else new

    async def validate(
        self, request: ResourceRequest, new: Any, old: Any, namespace: Namespace | None
    ) -> None:
        """Raise if the plugins that only look refuse a new object, or a change of an old one."""
        await self._pod_security.validate(request, new, old, namespace)
        if request.target.subresource == RESIZE:
            await self._resizes.validate(request, new, old)
        await self._limits.validate(request, new, old)
        self._storage.check_growth(request, new, old)

    async def admit_change(self, request: ResourceRequest, new: Any, old: Any) -> None:
        """Raise if a change is forbidden; charge quotas for its additional usage."""
        if request.target.subresource not in ("", RESIZE):
            return
        self._priorities.check_default(request, new)
        async with self._quotas.charged(request, new, old):
            pass

    def charged(self, request: ResourceRequest, new: Any) -> AbstractAsyncContextManager[None]:
        """Return a context that charges quotas for an object that is stored within."""
        return self._quotas.charged(request, new)
