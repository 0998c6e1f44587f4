"""What all pod workers share: client, runtime, devices, clock and folders."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from moorage.api.core import Container, Pod
from moorage.api.core.namespace import ObjectReference
from moorage.api.core.pod import EphemeralContainer
from moorage.api.meta import object_text
from moorage.api.timestamp import Timestamp
from moorage.client.event_recorder import reference_to
from moorage.client.writes import RecordEvent
from moorage.kit.backoff import Backoff
from moorage.kit.bulkhead import FAULTS, cause_text
from moorage.kit.clock import Clock
from moorage.kit.metrics import Counter
from moorage.node.contract import DeviceManager
from moorage.node.pods.container_environment import NodeContext, ObjectClient, SourceCache
from moorage.node.pods.container_status import HealthOf, no_health
from moorage.node.pods.pod_status import NodeAddresses
from moorage.node.runtime.contract import Runtime, is_id_part

LOG = logging.getLogger(__name__)

AGAIN_S = 1.0  # after the runtime failed
SET_UP_BACKOFF = Backoff(first_s=1.0, longest_s=60.0)
START_BACKOFF = Backoff(first_s=10.0, longest_s=300.0)
WRITE_BACKOFF = Backoff(first_s=0.5, longest_s=30.0)


class StartMetrics:
    """Counts started pods and containers, under the kubelet's names."""

    def __init__(self) -> None:
        self.pods = Counter("kubelet_started_pods_total", "Pods started.")
        self.pod_errors = Counter("kubelet_started_pods_errors_total", "Errors when starting pods.")
        self.containers = Counter(
            "kubelet_started_containers_total",
            "Containers started, by type.",
            ("container_type",),
        )
        self.container_errors = Counter(
            "kubelet_started_containers_errors_total",
            "Errors when starting containers, by type and reason.",
            ("container_type", "code"),
        )

    def families(self) -> tuple[Counter, ...]:
        """Return all metrics."""
        return self.pods, self.pod_errors, self.containers, self.container_errors


class PodContext(Struct, frozen=True):
    """What pod workers need."""

    client: ObjectClient
    runtime: Runtime
    devices: DeviceManager
    clock: Clock
    folder: Path  # has a folder for each pod, by UID
    record_event: Callable[[RecordEvent], None]
    node_context: Callable[[], NodeContext]
    slots: asyncio.Semaphore  # bounds how many pods set up volumes or start containers at once
    sources: SourceCache
    health_of: HealthOf = no_health
    service_variables: Callable[[Pod], Mapping[str, str]] = lambda _: {}
    counts: StartMetrics = field(default_factory=StartMetrics)
    in_thread: Callable[..., Awaitable[Any]] = asyncio.to_thread  # for work that would block

    def now(self) -> Timestamp:
        """Return the current time."""
        return Timestamp(self.clock.now())

    def addresses(self) -> NodeAddresses:
        """Return the addresses of pods."""
        return NodeAddresses(self.node_context().host_ip)

    def folder_of(self, uid: str) -> Path:
        """Return the folder of a pod. Admission rejects a UID that is no file name."""
        if not is_id_part(uid):  # a pod from before this agent
            uid = f"uid-{sha256(uid.encode(errors='replace')).hexdigest()}"
        return self.folder / uid

    async def remove_containers(self, uid: str) -> None:
        """Remove the containers of a pod, however often the runtime fails."""
        logged = ""
        while True:
            try:
                await self.runtime.remove(uid)
                return
            except Exception as error:
                if (cause := cause_text(error)) != logged:
                    logged = cause
                    LOG.warning("containers of pod %s cannot be removed: %s", uid, cause)
                await self.clock.sleep(AGAIN_S)

    def note_fault(self, place: str, pod: Pod, error: Exception) -> None:
        """Note that a pod failed for a reason that nobody foresaw; it is tried again."""
        FAULTS.note(place, lambda: object_text(pod), error, "waits for its next try")

    def warn(self, about: Pod | ObjectReference, reason: str, message: str) -> None:
        """Record a warning event."""
        self.record_event(RecordEvent(about, reason, message, is_warning=True))


def type_of(pod: Pod, name: str) -> str:
    """Return the type of a container, as metrics have it."""
    if any(each.name == name for each in pod.spec.ephemeral_containers):
        return "ephemeral_container"
    return "init_container" if _is_initial(pod, name) else "container"


def reference_of(pod: Pod, container: Container) -> ObjectReference:
    """Return the reference that events of a container are about."""
    group = "containers"
    if _is_initial(pod, container.name):
        group = "initContainers"
    elif isinstance(container, EphemeralContainer):
        group = "ephemeralContainers"
    return replace(reference_to(pod), field_path=f"spec.{group}{{{container.name}}}")


def _is_initial(pod: Pod, name: str) -> bool:
    return any(each.name == name for each in pod.spec.init_containers)
