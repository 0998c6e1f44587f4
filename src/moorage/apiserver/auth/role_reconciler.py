"""Role reconciliation: bootstrap policy at start, aggregated ClusterRoles while the server runs."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from moorage.api.meta import object_text
from moorage.api.rbac import GROUP, ClusterRole
from moorage.apiserver.auth.bootstrap_policy import bootstrap_objects, reconciled
from moorage.apiserver.auth.policy_rules import aggregated, stale
from moorage.apiserver.http.status import StatusError
from moorage.apiserver.resources import Resources
from moorage.apiserver.storage.informer import StoreInformer
from moorage.apiserver.storage.registry import Registry
from moorage.kit.bulkhead import FAULTS, keep_running
from moorage.store.errors import StoreError

if TYPE_CHECKING:
    from moorage.apiserver.server_context import ServerContext

LOG = logging.getLogger(__name__)

RETRY_AFTER_S = 1.0


async def reconcile_bootstrap_policy(server: ServerContext) -> None:
    """Store the bootstrap roles and bindings, and add to stored ones what they lack."""
    for wanted in bootstrap_objects(server.gates):
        try:
            await _reconcile(server, wanted)
        except StatusError as error:  # it cannot be read, and grants nothing
            FAULTS.note("bootstrap policy", object_text(wanted), error)


async def _reconcile(server: ServerContext, wanted: Any) -> None:
    resource = server.resources.of(GROUP, f"{wanted.kind.lower()}s")
    metadata = wanted.metadata
    stored = await server.registry.find(resource, metadata.namespace, metadata.name)
    value = reconciled(wanted, stored)
    if value is None:
        return
    if stored is None:
        new = replace(metadata, uid=server.new_uid(), creation_timestamp=server.now())
        await server.registry.create(resource, replace(value, metadata=new))
    else:
        change = partial(_reconciled, wanted)
        await server.registry.change(resource, metadata.namespace, metadata.name, change)


async def _reconciled(wanted: Any, stored: Any) -> Any:
    return reconciled(wanted, stored) or stored


class ClusterRoleAggregator:
    """Writes the rules of ClusterRoles with an aggregation rule whenever their parts change."""

    def __init__(self, registry: Registry, resources: Resources) -> None:
        self._registry = registry
        self._resource = resources.of(GROUP, "clusterroles")
        self._informer = StoreInformer(registry, [self._resource], self)
        self._roles: dict[str, ClusterRole] = {}
        self._wake = asyncio.Event()

    def on_update(self, value: Any) -> None:
        """Cache a role, unless a newer one is cached."""
        cached = self._roles.get(value.metadata.name)
        if cached is not None and _revision(cached) > _revision(value):
            return
        self._roles[value.metadata.name] = value
        self._wake.set()

    def on_delete(self, value: Any) -> None:
        """Remove a role from the cache."""
        self._roles.pop(value.metadata.name, None)
        self._wake.set()

    async def prepare(self) -> None:
        """Reconcile all roles once, before the server answers requests."""
        await self._informer.load()
        try:
            await self.reconcile()
        except StatusError as error:
            LOG.warning("aggregating cluster roles: %s", error)
            self._wake.set()

    async def run(self) -> None:
        """Reconcile roles on every change, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._informer.run())
            tasks.create_task(keep_running("aggregating cluster roles", self._work))

    async def reconcile(self) -> None:
        """Write the rules of all aggregated roles that are stale."""
        failed: StatusError | None = None
        for role in stale(self._roles):
            name = role.metadata.name
            try:
                self.on_update(
                    await self._registry.change(self._resource, "", name, self._aggregated)
                )
            except StatusError as error:
                if error.status.reason != "NotFound":
                    failed = error
        if failed is not None:
            raise failed

    async def _aggregated(self, role: ClusterRole) -> ClusterRole:
        if role.aggregation_rule is None:
            return role
        return replace(role, rules=aggregated(role, {**self._roles, role.metadata.name: role}))

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.reconcile()
            except (StoreError, StatusError) as error:
                LOG.warning("aggregating cluster roles: %s", error)
                await asyncio.sleep(RETRY_AFTER_S)
                self._wake.set()


def _revision(role: ClusterRole) -> int:
    return int(role.metadata.resource_version or 0)
