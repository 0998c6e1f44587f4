"""Passes over a whole cluster, for programs that evaluate all of it again and again.

    informers ─ something changed ─► objects ─ in a thread ─► work ─► result ─► rest ─┐
         ▲                                                                            │
         └────────────────────────────────────────────────────────────────────────────┘

After each pass, the program pauses for nine times the duration of the pass, and at least for its
interval. So it takes a tenth of a core in a large cluster, and almost nothing in a small one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from moorage.api.core import Namespace, Node, Pod
from moorage.api.core.namespace import ResourceQuota
from moorage.api.core.persistent_volume import PersistentVolume, PersistentVolumeClaim
from moorage.api.gates import Gate, Gates
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from moorage.api.runtime_class import RuntimeClass
from moorage.api.scheduling import CompositePodGroup, PodGroup, PriorityClass
from moorage.api.storage import StorageClass
from moorage.client.informer_factory import InformerFactory
from moorage.controllers.controller_manager import NOT_EVERYWHERE
from moorage.kit.bulkhead import FAULTS
from moorage.kit.clock import Clock

# The kinds that matter for existing pods, and the gate without which servers lack a kind.
# Workloads are not read, because pods that they have not created yet do not wait.
KINDS: Final[Mapping[type[Any], Gate | None]] = {
    Node: None,
    Namespace: None,
    ResourceQuota: None,
    PriorityClass: None,
    RuntimeClass: None,
    StorageClass: None,
    PersistentVolume: None,
    PersistentVolumeClaim: None,
    DeviceClass: None,
    ResourceSlice: None,
    DeviceTaintRule: Gate.DRA_DEVICE_TAINT_RULES,
    ResourceClaimTemplate: None,
    ResourceClaim: None,
    CompositePodGroup: Gate.COMPOSITE_POD_GROUP,
    PodGroup: Gate.GENERIC_WORKLOAD,
    Pod: None,
}
INTERVAL_S: Final = 15.0
IDLE_S: Final = 60.0  # without changes, because causes may depend on the time
REST_SHARE: Final = 9.0

T = TypeVar("T")


def kinds_of(gates: Gates) -> tuple[type[Any], ...]:
    """Return the kinds to read; roles grant the others only if their gates are on."""
    return tuple(kind for kind, gate in KINDS.items() if gate is None or gates.enabled(gate))


class SnapshotPasses(Generic[T]):
    """Runs passes over all objects of a cluster, while the informers run."""

    def __init__(
        self,
        name: str,
        informers: InformerFactory,
        work: Callable[[Sequence[Any], datetime], T],
        done: Callable[[T], None],
        *,
        gates: Gates,
        clock: Clock,
        interval_s: float = INTERVAL_S,
    ) -> None:
        """Create passes: `work` runs in a thread, and `done` gets its result."""
        self._name, self._informers, self._work, self._done = name, informers, work, done
        self._clock, self._interval_s = clock, interval_s
        self._has_changed = True
        self.took_s = 0.0
        self.finished: datetime | None = None  # the time of the last successful pass
        self.passes = 0
        self._kinds = kinds_of(gates)
        for kind in self._kinds:
            informer = informers.informer_for(kind, optional=kind in NOT_EVERYWHERE)
            informer.add_event_handler(self._changed)

    @property
    def objects(self) -> dict[str, int]:
        """The number of objects, by kind."""
        return {kind.__name__: self._informers.objects.count(kind) for kind in self._kinds}

    async def run(self) -> None:
        """Run passes until cancelled, once the informers have synced."""
        await self._informers.wait_for_sync()
        while True:
            begin_s = self._clock.monotonic()
            await self._pass()
            self.took_s = self._clock.monotonic() - begin_s
            await self._clock.sleep(max(self._interval_s, self.took_s * REST_SHARE))
            while not self._has_changed and self._clock.monotonic() - begin_s < IDLE_S:
                await self._clock.sleep(self._interval_s)

    async def _pass(self) -> None:
        self._has_changed = False
        objects = [each for kind in self._kinds for each in self._informers.objects.list(kind)]
        now = self._clock.now()
        try:
            self._done(await asyncio.to_thread(self._work, objects, now))
        except Exception as error:
            FAULTS.note(self._name, "the cluster", error, "is looked at again later")
        else:
            self.finished = now
            self.passes += 1

    def _changed(self, _: Any | None, __: Any | None) -> None:
        self._has_changed = True
