"""What the cluster reports of a pod."""

from __future__ import annotations

from msgspec import field

from mooring.api.core.resources import ResourceList, ResourceRequirements
from mooring.api.meta import Json
from mooring.api.quantity import Quantity
from mooring.api.structs import Int32, Int64, Open, always, named
from mooring.api.timestamp import Timestamp

PENDING = "Pending"
RUNNING = "Running"
SUCCEEDED = "Succeeded"
FAILED = "Failed"

POD_SCHEDULED = "PodScheduled"
DISRUPTION_TARGET = "DisruptionTarget"

HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"
UNKNOWN = "Unknown"

CLAIM_STATUS_PREFIX = "claim:"


class PodCondition(Open, frozen=True, gc=False):
    """One observed aspect of a pod's state."""

    type: str = always("")
    observed_generation: Int64 = 0
    status: str = always("")
    last_probe_time: Timestamp | None = always(None)
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""


class ContainerStateTerminated(Open, frozen=True, gc=False):
    """How a container ended."""

    exit_code: Int32 = always(0)
    signal: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: Timestamp | None = always(None)
    finished_at: Timestamp | None = always(None)
    container_id: str = named("containerID", "")


class ContainerState(Open, frozen=True, gc=False):
    """Waiting, running or terminated: at most one is set."""

    waiting: Json = None
    running: Json = None
    terminated: ContainerStateTerminated | None = None


class ResourceHealth(Open, frozen=True, gc=False):
    """The health of one device."""

    resource_id: str = always("", name="resourceID")
    health: str = ""
    message: str | None = None


class ResourceStatus(Open, frozen=True, gc=False):
    """The health of the devices behind a claim, a request or a resource of a container."""

    name: str = always("")
    resources: tuple[ResourceHealth, ...] = ()


class ContainerStatus(Open, frozen=True, gc=False):
    """What the node reports of a container."""

    name: str = always("")
    state: ContainerState = always(ContainerState())
    last_state: ContainerState = always(ContainerState())
    ready: bool = always(False)
    restart_count: Int32 = always(0)
    image: str = always("")
    image_id: str = always("", name="imageID")
    container_id: str = named("containerID", "")
    started: bool | None = None
    allocated_resources: ResourceList = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    volume_mounts: tuple[Json, ...] = ()
    user: Json = None
    allocated_resources_status: tuple[ResourceStatus, ...] = ()
    stop_signal: str | None = None


class PodIP(Open, frozen=True, gc=False):
    """An address."""

    ip: str = always("")


class PodResourceClaimStatus(Open, frozen=True, gc=False):
    """The claim that was made for an entry of the pod; without a name none was needed."""

    name: str = always("")
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Open, frozen=True, gc=False):
    """The request of the special claim that serves an extended resource of a container."""

    container_name: str = always("")
    resource_name: str = always("")
    request_name: str = always("")


class PodExtendedResourceClaimStatus(Open, frozen=True, gc=False):
    """The special claim that stands for the pod's extended resources."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = always(())
    resource_claim_name: str = always("")


class NodeAllocatableMappedResource(Open, frozen=True, gc=False):
    """How much of a node resource a claim stands for."""

    name: str = always("")
    quantity: Quantity | None = always(None)


class NodeAllocatableOverheadResource(Open, frozen=True, gc=False):
    """How much of a node resource using a claim costs besides."""

    name: str = always("")
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResourceClaimStatus(Open, frozen=True, gc=False):
    """The node resources that come with one claim of the pod."""

    resource_claim_name: str = always("")
    containers: tuple[str, ...] = ()
    mapping: tuple[NodeAllocatableMappedResource, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResource, ...] = ()


class PodStatus(Open, frozen=True, gc=False):
    """What the cluster reports of a pod.

    In a status update the two lists of claims are kept where they are absent (None) and cleared
    where they are empty.
    """

    observed_generation: Int64 = 0
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = named("hostIP", "")
    host_ips: tuple[PodIP, ...] = named("hostIPs", ())
    pod_ip: str = named("podIP", "")
    pod_ips: tuple[PodIP, ...] = named("podIPs", ())
    start_time: Timestamp | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: ResourceList = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: (
        tuple[NodeAllocatableResourceClaimStatus, ...] | None
    ) = None
    volume_health: tuple[Json, ...] = ()
