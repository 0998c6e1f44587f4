"""The controller manager: all controllers with informers, workqueues and event recorders.

    manager = ControllerManager(controllers, client=…, informers=…, random=…)
    async with informers.running():
        await manager.run()

Nothing is planned before all informers have synced: half a cluster looks like a damaged one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, NamedTuple

from moorage.api.core.namespace import RemainingContent
from moorage.api.gates import Gate, Gates
from moorage.api.meta import object_text
from moorage.api.resource.v1 import DeviceTaintRule
from moorage.api.resource.v1alpha3 import ResourcePoolStatusRequest
from moorage.api.scheduling import CompositePodGroup, PodGroup, Workload
from moorage.api.timestamp import Timestamp
from moorage.client.api_client import ApiClient
from moorage.client.contract import Client
from moorage.client.event_recorder import EventRecorder
from moorage.client.indexer import Indexer, ObjectKey
from moorage.client.informer_factory import InformerFactory
from moorage.client.namespace_deleter import empty_namespace
from moorage.controllers.admission_policy_status import AdmissionPolicyStatusController
from moorage.controllers.controller import Controller, DeleteContent, ObjectChange
from moorage.controllers.cronjobs import CronJobController
from moorage.controllers.daemonsets import DaemonSetController
from moorage.controllers.deployments import DeploymentController
from moorage.controllers.device_taint_eviction import DeviceTaintEvictionController
from moorage.controllers.disruption import DisruptionController
from moorage.controllers.endpoint_slice_mirroring import EndpointSliceMirroringController
from moorage.controllers.endpoint_slices import EndpointSliceController
from moorage.controllers.ephemeral_volumes import EphemeralVolumeController
from moorage.controllers.garbage_collector import GarbageCollector
from moorage.controllers.jobs import JobController
from moorage.controllers.metrics import DraMetrics, WorkQueuesMetrics
from moorage.controllers.namespaces import RootCAPublisher, ServiceAccountController
from moorage.controllers.node_lifecycle import NodeLifecycleController, TaintEvictionController
from moorage.controllers.persistent_volumes import PersistentVolumeBinder
from moorage.controllers.pod_gc import PodGCController, TTLAfterFinishedController
from moorage.controllers.pod_groups import PodGroupProtection
from moorage.controllers.pool_status import PoolStatusRequestController
from moorage.controllers.reconciler import EmptyNamespace, Reconciler
from moorage.controllers.replicasets import ReplicaSetController
from moorage.controllers.replication_controllers import ReplicationControllerController
from moorage.controllers.resource_claim_releases import ClaimReleaseController
from moorage.controllers.resource_claims import GroupClaimController, PodClaimController
from moorage.controllers.statefulsets import StatefulSetController
from moorage.controllers.volume_protection import ClaimProtection, VolumeProtection
from moorage.kit.backoff import Backoff
from moorage.kit.bulkhead import FAULTS
from moorage.kit.clock import REAL, Clock
from moorage.kit.workqueue import WorkQueue

# Kinds that Kubernetes does not serve by default.
NOT_EVERYWHERE = frozenset(
    (CompositePodGroup, DeviceTaintRule, PodGroup, ResourcePoolStatusRequest, Workload)
)
BACKOFF = Backoff(first_s=0.005, longest_s=1000.0, factor=2.0)


class _Follower(NamedTuple):
    """A controller that follows a kind: how changes become keys, and where the keys go."""

    name: str
    keys: Callable[[Indexer, ObjectChange], Iterable[ObjectKey]]
    add: Callable[[ObjectKey], object]


class ControllerManager:
    """Controllers that follow one cluster."""

    def __init__(
        self,
        controllers: Iterable[Controller],
        *,
        client: Client,
        informers: InformerFactory,
        random: Callable[[], float],
        clock: Clock = REAL,
        metrics: WorkQueuesMetrics | None = None,
        client_of: Callable[[str], Client] | None = None,
    ) -> None:
        """Take controllers; each uses the client of its name, or the one for all."""
        self._informers = informers
        self._metrics = metrics or WorkQueuesMetrics()
        self._recorders: dict[str, EventRecorder] = {}
        self._followers: dict[type[Any], list[_Follower]] = {}  # by the kind that they follow
        of = client_of or (lambda _: client)
        self.running: tuple[Reconciler, ...] = tuple(
            self._make(each, of(each.name), random, clock) for each in controllers
        )
        for struct, followers in self._followers.items():
            informers.add_event_handler(struct, partial(self._changed, followers))

    async def run(self) -> None:
        """Run all controllers until cancelled, once the informers have synced."""
        await self._informers.wait_for_sync()
        async with AsyncExitStack() as stack:
            for recorder in self._recorders.values():
                await stack.enter_async_context(recorder.running())
            async with asyncio.TaskGroup() as tasks:
                for running in self.running:
                    tasks.create_task(running.run())

    def _make(
        self, controller: Controller, client: Client, random: Callable[[], float], clock: Clock
    ) -> Reconciler:
        source = controller.source or controller.name
        if source not in self._recorders:
            self._recorders[source] = EventRecorder(client, source, clock=clock, random=random)
        queue: WorkQueue[ObjectKey] = WorkQueue(
            clock=clock,
            backoff=BACKOFF,
            random=random,
            refill=lambda: running.all_keys(),
            metrics=self._metrics.of(source),
        )
        running = Reconciler(
            controller,
            objects=self._informers.objects,
            client=client,
            queue=queue,
            record=self._recorders[source].record,
            now=lambda: Timestamp(clock.now()),
            has_seen=self._has_seen,
            empty=_emptying(client),
        )
        for struct in controller.kinds:
            is_optional = struct in controller.optional or struct in NOT_EVERYWHERE
            self._informers.informer_for(struct, optional=is_optional)
            follower = _Follower(controller.name, controller.keys, running.enqueue)
            self._followers.setdefault(struct, []).append(follower)
        return running

    def _changed(self, followers: list[_Follower], old: Any | None, new: Any | None) -> None:
        """Pass a change to the controllers of its kind; faults of one do not affect others.

        This runs for each change and each controller, so it does what `Reconciler.changed` does
        without going there.
        """
        change, objects = ObjectChange(old, new), self._informers.objects
        for name, keys, add in followers:
            try:
                for key in keys(objects, change):
                    add(key)
            except Exception as error:
                FAULTS.note(name, lambda: object_text(change.value), error)

    def _has_seen(self, struct: type[Any], revision: str) -> bool:
        """Return whether the informer of a kind is at least as new as a version."""
        seen = self._informers.informer_for(struct).revision
        # Versions are growing numbers, in Moorage's server and in Kubernetes.
        if not (seen.isdigit() and revision.isdigit()):
            return seen == revision
        return int(seen) >= int(revision)


def _emptying(client: Client) -> EmptyNamespace | None:
    """Return what deletes the content of namespaces, if the client knows all kinds."""
    if not isinstance(client, ApiClient):
        return None

    def empty(wanted: DeleteContent) -> Awaitable[RemainingContent]:
        return empty_namespace(client, wanted.namespace, grace_s=wanted.grace_s)

    return empty


def dra_controllers(gates: Gates, metrics: DraMetrics) -> tuple[Controller, ...]:
    """Return the controllers of claims and devices that the gates enable."""
    found: list[Controller] = [
        PodClaimController(gates, metrics.claims),
        ClaimReleaseController(gates),
    ]
    if gates.enabled(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS):
        found.append(GroupClaimController(gates, metrics.claims))
    if gates.enabled(Gate.DRA_DEVICE_TAINTS):
        found.append(DeviceTaintEvictionController(gates, metrics.taints))
    if gates.enabled(Gate.DRA_RESOURCE_POOL_STATUS):
        found.append(PoolStatusRequestController(gates, metrics.requests))
    return tuple(found)


def workload_controllers(*, authority: str, gates: Gates | None = None) -> tuple[Controller, ...]:
    """Return one of each; `authority` is the server's certificate authority in PEM, if any."""
    published = (RootCAPublisher(authority),) if authority else ()
    return (
        ServiceAccountController(),
        *published,
        DeploymentController(),
        ReplicaSetController(),
        ReplicationControllerController(),
        DaemonSetController(),
        StatefulSetController(),
        JobController(makes_groups=(gates or Gates.parse()).enabled(Gate.WORKLOAD_WITH_JOB)),
        CronJobController(),
        TTLAfterFinishedController(),
        EndpointSliceController(),
        EndpointSliceMirroringController(),
        DisruptionController(),
        PersistentVolumeBinder(),
        EphemeralVolumeController(),
        ClaimProtection(),
        VolumeProtection(),
        PodGroupProtection(),
        NodeLifecycleController(),
        TaintEvictionController(),
        PodGCController(),
        GarbageCollector(),
        AdmissionPolicyStatusController(),
    )
