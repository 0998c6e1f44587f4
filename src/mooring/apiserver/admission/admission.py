"""The door: new objects are completed, and what is written is charged to quotas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from msgspec.structs import replace

from mooring.api.core import Pod, ServiceAccount
from mooring.api.core.pod import MIRROR_POD_ANNOTATION
from mooring.api.gates import Gate, Gates
from mooring.api.resource.v1 import ResourceClaim
from mooring.api.runtimeclass import GROUP as NODE
from mooring.api.runtimeclass import RuntimeClass
from mooring.api.scheduling import GROUP as SCHEDULING
from mooring.api.scheduling import PriorityClass
from mooring.api.timestamp import Timestamp
from mooring.apiserver.admission.accounts import Accounts, account_name, unknown_account
from mooring.apiserver.admission.charging import Charge
from mooring.apiserver.admission.memory import FOLLOWED, Memory
from mooring.apiserver.admission.priorities import (
    SYSTEM_CLASSES,
    default_class,
    prioritized,
    second_default,
    takes_priority,
    unknown_class,
)
from mooring.apiserver.admission.recounting import Recounting
from mooring.apiserver.admission.runtime_classes import (
    unfounded_overhead,
    unknown_runtime,
    with_runtime,
)
from mooring.apiserver.calls import Call
from mooring.apiserver.following import Follower
from mooring.apiserver.poddefaults import with_defaults
from mooring.apiserver.registry import Registry
from mooring.apiserver.resources import Resources
from mooring.apiserver.status import StatusError, forbidden
from mooring.claims.owners import owning_pod
from mooring.claims.quotas import (
    CLAIMS,
    PODS,
    Counted,
    Measure,
    Surroundings,
    is_special,
    measure_of,
    special_by_pod,
)
from mooring.claims.refusals import Refused

NOTHING: AbstractAsyncContextManager[None] = nullcontext()


class Admission:
    """Priorities, accounts, runtime classes and quotas of a server."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        *,
        gates: Gates,
        now: Callable[[], Timestamp],
        new_uid: Callable[[], str],
        new_suffix: Callable[[], str],
    ) -> None:
        self._registry = registry
        self._resources = resources
        self._gates = gates
        self._now = now
        self._new_uid = new_uid
        self._new_suffix = new_suffix
        self._memory = Memory()
        self._has_extended = gates.enabled(Gate.DRA_EXTENDED_RESOURCE)
        followed = [resources.of(group, plural) for group, plural in FOLLOWED]
        self._follower = Follower(registry, followed, self._memory)
        self._accounts = Accounts(registry, resources, self._memory, now=now, new_uid=new_uid)
        self._recounting = Recounting(
            registry, resources, self._memory, now=now, has_extended=self._has_extended
        )

    async def prepare(self) -> None:
        """Make what must be there, and read what must be known, before a server answers."""
        resource = self._resources.of(SCHEDULING, "priorityclasses")
        for wanted in SYSTEM_CLASSES:
            if await self._registry.find(resource, "", wanted.metadata.name) is None:
                metadata = replace(
                    wanted.metadata,
                    uid=self._new_uid(),
                    generation=1,
                    creation_timestamp=self._now(),
                )
                await self._registry.create(resource, replace(wanted, metadata=metadata))
        await self._follower.load()
        await self._accounts.make_missing()

    async def run(self) -> None:
        """Keep all of it up to date until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follower.run())
            tasks.create_task(self._accounts.run())
            tasks.create_task(self._recounting.run())

    async def recount(self, namespace: str) -> None:
        """Bring the status of all quotas of a namespace up to date now."""
        await self._recounting.recount(namespace)

    # --- new objects --------------------------------------------------------------------------

    async def completed(self, call: Call, new: Any, *, is_valid: bool = True) -> Any:
        """Return a new object with what the server gives it, or raise why it may not be.

        Of one that breaks rules only what comes before the rules is looked at.
        """
        account = await self._account_of(call, new) if isinstance(new, Pod) else None
        if isinstance(new, PriorityClass):
            self._check_default(call, new)
        if takes_priority(new, self._gates):
            result = prioritized(new, await self._class_of(call, new))
            if isinstance(result, Refused):
                raise _refusal(call, new, result.reason)
            new = result
        if account is not None:
            new = with_defaults(new, self._new_suffix(), account)
        if not isinstance(new, Pod):
            return new
        runtime = await self._runtime_of(call, new)
        reason = unfounded_overhead(new, runtime) if is_valid else None
        if reason is not None:
            raise _refusal(call, new, reason)
        result = with_runtime(new, runtime)
        if isinstance(result, Refused):
            raise _refusal(call, new, result.reason)
        return result

    async def _runtime_of(self, call: Call, pod: Pod) -> RuntimeClass | None:
        name = pod.spec.runtime_class_name
        if name is None:
            return None
        found = self._memory.runtimes.get(name)
        if found is None and name:
            resource = self._resources.of(NODE, "runtimeclasses")
            found = await self._registry.find(resource, "", name)
        if found is None:
            raise _refusal(call, pod, unknown_runtime(name))
        return found

    async def admit_change(self, call: Call, new: Any, old: Any) -> None:
        """Raise why an object may not be changed so; what it uses more is charged."""
        if call.target.subresource:
            return
        if isinstance(new, PriorityClass):
            self._check_default(call, new)
        async with self.charged(call, new, old):
            pass

    def _check_default(self, call: Call, new: PriorityClass) -> None:
        """Raise if there would be two default classes."""
        reason = second_default(new, self._memory.priorities.values())
        if reason is not None:
            raise _refusal(call, new, reason)

    async def _class_of(self, call: Call, new: Any) -> PriorityClass | None:
        name = new.spec.priority_class_name
        if not name:
            return default_class(self._memory.priorities.values())
        found = self._memory.priorities.get(name)
        if found is None:
            resource = self._resources.of(SCHEDULING, "priorityclasses")
            found = await self._registry.find(resource, "", name)
        if found is None:
            raise _refusal(call, new, unknown_class(name))
        return found

    async def _account_of(self, call: Call, pod: Pod) -> ServiceAccount | None:
        """Return the account of a pod; what a node only shows is nobody's."""
        if MIRROR_POD_ANNOTATION in pod.metadata.annotations:
            if pod.spec.service_account_name:
                raise _refusal(call, pod, "a mirror pod may not reference service accounts")
            return None
        name, namespace = account_name(pod), call.target.namespace
        account = await self._accounts.find(namespace, name)
        if account is None:
            raise _refusal(call, pod, unknown_account(namespace, name))
        return account

    # --- quotas -------------------------------------------------------------------------------

    def charged(
        self, call: Call, new: Any, old: Any | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Return what to store an object within: quotas have room for it, or it raises."""
        if call.target.subresource or call.target.namespace not in self._memory.quotas:
            return NOTHING
        resource = Counted(call.resource.group, call.resource.plural)
        around = Surroundings(self._now(), self._memory.classes, self._has_extended)
        measure = measure_of(resource, around)
        if measure is None or (old is not None and not measure.counts_change(old, new)):
            return NOTHING
        return self._held(call, resource, measure, (new, old))

    @asynccontextmanager
    async def _held(
        self, call: Call, resource: Counted, measure: Measure, change: tuple[Any, Any | None]
    ) -> AsyncIterator[None]:
        new, old = change
        namespace = call.target.namespace
        if isinstance(new, ResourceClaim) and is_special(new):
            measure = await self._special_measure(namespace, new)
        charge = Charge(resource, measure, new, old, is_trial=call.is_dry_run)
        async with self._recounting.charging.held(namespace, charge) as refused:
            if refused is not None:
                raise _refusal(call, new, refused.reason)
            yield
        if old is not None and not call.is_dry_run:
            # It was counted as it was until now; a count that ran just then must be repeated.
            self._recounting.mark(namespace)

    async def _special_measure(self, namespace: str, claim: ResourceClaim) -> Measure:
        """Return how to measure a special claim, of which the pod is charged for the most."""
        owner = owning_pod(claim)
        pod = None
        if owner is not None:
            pod = await self._registry.find(self._resources.of(*PODS), namespace, owner.name)
        resource = self._resources.of(*CLAIMS)
        page = await self._registry.store.list(resource.below(namespace))
        claims = (self._registry.read(resource, entry) for entry in page.entries)
        around = Surroundings(
            self._now(),
            self._memory.classes,
            self._has_extended,
            pods={} if pod is None else {pod.metadata.name: pod},
            special=special_by_pod(claims),
        )
        measure = measure_of(CLAIMS, around)
        assert measure is not None
        return measure


def _refusal(call: Call, value: Any, why: str) -> StatusError:
    metadata = value.metadata
    return forbidden(call.resource.about, metadata.name or metadata.generate_name, why)
