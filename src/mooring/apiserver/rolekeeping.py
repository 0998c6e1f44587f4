"""Roles that are made of others: their stored rules follow the roles that they are made of."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from msgspec.structs import replace

from mooring.api.rbac import GROUP, ClusterRole
from mooring.apiserver.authorization.aggregation import aggregated, stale
from mooring.apiserver.following import Follower
from mooring.apiserver.registry import Registry
from mooring.apiserver.resources import Resources
from mooring.apiserver.status import StatusError
from mooring.store.errors import StoreError

LOG = logging.getLogger(__name__)

AGAIN_AFTER_S = 1.0


class RoleKeeper:
    """Knows all cluster roles, and writes the rules of those that are made of others."""

    def __init__(self, registry: Registry, resources: Resources) -> None:
        self._registry = registry
        self._resource = resources.of(GROUP, "clusterroles")
        self._follower = Follower(registry, [self._resource], self)
        self._roles: dict[str, ClusterRole] = {}
        self._wake = asyncio.Event()

    def put(self, value: Any) -> None:
        """Take a role, new or changed, unless a newer one is known."""
        known = self._roles.get(value.metadata.name)
        if known is not None and _revision(known) > _revision(value):
            return
        self._roles[value.metadata.name] = value
        self._wake.set()

    def remove(self, value: Any) -> None:
        """Forget a role."""
        self._roles.pop(value.metadata.name, None)
        self._wake.set()

    async def prepare(self) -> None:
        """Bring all roles up to date once."""
        await self._follower.load()
        await self.settle()

    async def run(self) -> None:
        """Keep all roles up to date until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follower.run())
            tasks.create_task(self._work())

    async def settle(self) -> None:
        """Write the rules of all roles that do not have the right ones."""
        for role in stale(self._roles):
            name = role.metadata.name
            try:
                self.put(await self._registry.change(self._resource, "", name, self._made))
            except StatusError as error:
                if error.status.reason != "NotFound":
                    raise

    async def _made(self, role: ClusterRole) -> ClusterRole:
        if role.aggregation_rule is None:
            return role
        return replace(role, rules=aggregated(role, {**self._roles, role.metadata.name: role}))

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.settle()
            except (StoreError, StatusError) as error:
                LOG.warning("roles that are made of others: %s", error)
                await asyncio.sleep(AGAIN_AFTER_S)
                self._wake.set()


def _revision(role: ClusterRole) -> int:
    return int(role.metadata.resource_version or 0)
