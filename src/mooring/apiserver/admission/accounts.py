"""Service accounts of pods, and the account that every namespace has."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from mooring.api.core import Pod, ServiceAccount
from mooring.api.meta import ObjectMeta
from mooring.api.timestamp import Timestamp
from mooring.apiserver.admission.memory import Memory
from mooring.apiserver.poddefaults import DEFAULT_ACCOUNT
from mooring.apiserver.registry import Registry
from mooring.apiserver.resources import Resources
from mooring.apiserver.status import StatusError
from mooring.store.errors import StoreError

LOG = logging.getLogger(__name__)

AGAIN_AFTER_S = 1.0


class Accounts:
    """Finds accounts, and makes those that must be there."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        memory: Memory,
        *,
        now: Callable[[], Timestamp],
        new_uid: Callable[[], str],
    ) -> None:
        self._registry = registry
        self._resource = resources.of("", "serviceaccounts")
        self._namespaces = resources.of("", "namespaces")
        self._memory = memory
        self._now = now
        self._new_uid = new_uid
        self._wake = asyncio.Event()
        memory.on_namespace = self._wake.set

    async def find(self, namespace: str, name: str) -> ServiceAccount | None:
        """Return an account; the default one is made if it is not there yet."""
        known = self._memory.accounts.get((namespace, name))
        if known is None:
            known = await self._registry.find(self._resource, namespace, name)
        if known is None and name == DEFAULT_ACCOUNT:
            await self._make(namespace)
            known = await self._registry.find(self._resource, namespace, name)
        return known

    async def run(self) -> None:
        """Give every namespace its account, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.make_missing()
            except (StoreError, StatusError) as error:
                LOG.warning("default service accounts: %s", error)
                await asyncio.sleep(AGAIN_AFTER_S)
                self._wake.set()

    async def make_missing(self) -> None:
        """Give an account to every namespace that has none."""
        for namespace in self._without():
            await self._make(namespace)

    def _without(self) -> list[str]:
        accounts, namespaces = self._memory.accounts, self._memory.namespaces
        return [
            name
            for name, namespace in sorted(namespaces.items())
            if namespace.metadata.deletion_timestamp is None
            and (name, DEFAULT_ACCOUNT) not in accounts
        ]

    async def _make(self, namespace: str) -> None:
        room = await self._registry.find(self._namespaces, "", namespace)
        if room is None or room.metadata.deletion_timestamp is not None:
            return
        metadata = ObjectMeta(
            name=DEFAULT_ACCOUNT,
            namespace=namespace,
            uid=self._new_uid(),
            creation_timestamp=self._now(),
        )
        try:
            made = await self._registry.create(self._resource, ServiceAccount(metadata=metadata))
        except StatusError as error:
            if error.status.reason != "AlreadyExists":
                raise
        else:
            self._memory.put(made)


def account_name(pod: Pod) -> str:
    """Return the account that a pod runs as."""
    return pod.spec.service_account_name or pod.spec.service_account or DEFAULT_ACCOUNT


def unknown_account(namespace: str, name: str) -> str:
    """Return why a pod is refused if there is no such account."""
    return f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
