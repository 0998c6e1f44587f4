"""Pods (core/v1): containers, spec and status.

Fields that Moorage passes on without looking inside are `Json`; they are declared all the same,
because an object whose fields are all declared is decoded many times faster.

What the containers of a pod need at once (`resources_at_once`):

1. Containers and sidecars (init containers that keep running) run together: their sum counts.
2. While an init container runs, the sidecars before it run too: its own sum with theirs counts.
3. The larger of both counts, resource by resource.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import field

from moorage.api.core.namespace import LocalObjectReference
from moorage.api.core.placement import Affinity, Toleration, TopologySpreadConstraint
from moorage.api.core.resources import ResourceList, ResourceRequirements
from moorage.api.meta import Json, ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.structs import Int32, Int64, Open, always, named
from moorage.api.timestamp import Timestamp

API_VERSION = "v1"

MIRROR_POD_ANNOTATION = "kubernetes.io/config.mirror"
DEFAULT_SCHEDULER = "default-scheduler"
RESTART_ALWAYS = "Always"

PENDING = "Pending"  # phases
RUNNING = "Running"
SUCCEEDED = "Succeeded"
FAILED = "Failed"

POD_SCHEDULED = "PodScheduled"  # conditions
DISRUPTION_TARGET = "DisruptionTarget"

HEALTHY = "Healthy"  # health of devices
UNHEALTHY = "Unhealthy"
UNKNOWN = "Unknown"

CLAIM_STATUS_PREFIX = "claim:"


class ContainerPort(Open, frozen=True, gc=False):
    """A port of a container, and maybe of the host."""

    name: str = ""
    host_port: Int32 = 0
    container_port: Int32 = always(0)
    protocol: str = ""
    host_ip: str = named("hostIP", "")


class Container(Open, frozen=True, gc=False):
    """A container of a pod."""

    name: str = always("")
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] = ()
    env_from: tuple[Json, ...] = ()
    env: tuple[Json, ...] = ()
    resources: ResourceRequirements = always(ResourceRequirements())
    resize_policy: tuple[Json, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[Json, ...] = ()
    volume_mounts: tuple[Json, ...] = ()
    volume_devices: tuple[Json, ...] = ()
    liveness_probe: Json = None
    readiness_probe: Json = None
    startup_probe: Json = None
    lifecycle: Json = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    image_pull_policy: str = ""
    security_context: Json = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False

    @property
    def is_sidecar(self) -> bool:
        """Whether the container, if it is an init container, runs as long as the pod."""
        return self.restart_policy == RESTART_ALWAYS


class EphemeralContainer(Container, frozen=True, gc=False):
    """A container added to a running pod for debugging."""

    target_container_name: str = ""


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
    """The status of a container."""

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
    """The request of the special claim that provides an extended resource of a container."""

    container_name: str = always("")
    resource_name: str = always("")
    request_name: str = always("")


class PodExtendedResourceClaimStatus(Open, frozen=True, gc=False):
    """The claim that the scheduler made for the extended resources of the pod."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = always(())
    resource_claim_name: str = always("")


class NodeAllocatableMappedResource(Open, frozen=True, gc=False):
    """The amount of a node resource that a claim represents."""

    name: str = always("")
    quantity: Quantity | None = always(None)


class NodeAllocatableOverheadResource(Open, frozen=True, gc=False):
    """The overhead on a node resource of using a claim."""

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
    """The status of a pod.

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


class PodResourceClaim(Open, frozen=True, gc=False):
    """A claim that the pod uses: an existing one, or one to be made from a template."""

    name: str = always("")
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(Open, frozen=True, gc=False):
    """Something that must happen before the pod is scheduled."""

    name: str = always("")


class PodSchedulingGroup(Open, frozen=True, gc=False):
    """The group that the pod is scheduled with."""

    pod_group_name: str | None = None


class PodSpec(Open, frozen=True, gc=False):
    """What a pod should be."""

    volumes: tuple[Json, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = always(())
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    dns_policy: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = named("hostPID", False)
    host_ipc: bool = named("hostIPC", False)
    share_process_namespace: bool | None = None
    security_context: Json = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    hostname: str = ""
    subdomain: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    host_aliases: tuple[Json, ...] = ()
    priority_class_name: str = ""
    priority: Int32 | None = None
    dns_config: Json = None
    readiness_gates: tuple[Json, ...] = ()
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    preemption_policy: str | None = None
    overhead: ResourceList = field(default_factory=dict)
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    set_hostname_as_fqdn: bool | None = named("setHostnameAsFQDN", None)
    os: Json = None
    host_users: bool | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None
    scheduling_group: PodSchedulingGroup | None = None
    eviction_responders: tuple[Json, ...] = ()


class Pod(Open, frozen=True, gc=False):
    """Containers that run together on one node."""

    api_version: str = always(API_VERSION)
    kind: str = always("Pod")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PodSpec = always(PodSpec())
    status: PodStatus = always(PodStatus())


class PodTemplateSpec(Open, frozen=True, gc=False):
    """A template for the pods of a controller."""

    metadata: ObjectMeta = always(ObjectMeta())
    spec: PodSpec = always(PodSpec())


# Returns amounts of a container, such as its requests.
ContainerResources = Callable[[Container], ResourceList]


def health_name(claim: str, request: str) -> str:
    """Return the name under which a container's status has the health of a claim's devices."""
    return f"{CLAIM_STATUS_PREFIX}{claim}/{request}" if request else CLAIM_STATUS_PREFIX + claim


def resources_at_once(pod: Pod, source: ContainerResources) -> ResourceList:
    """Return the most that the containers of a pod need at once, of the amounts of each."""
    running: ResourceList = {}
    for container in pod.spec.containers:
        add_resources(running, source(container))
    sidecars: ResourceList = {}
    starting: ResourceList = {}
    for container in pod.spec.init_containers:
        amounts = source(container)
        if container.is_sidecar:
            add_resources(running, amounts)
            add_resources(sidecars, amounts)
            raise_resources_to(starting, sidecars)
        else:
            together = dict(amounts)
            add_resources(together, sidecars)
            raise_resources_to(starting, together)
    raise_resources_to(running, starting)
    return running


def add_resources(total: ResourceList, more: ResourceList) -> None:
    """Add amounts to a total."""
    for name, quantity in more.items():
        known = total.get(name)
        total[name] = quantity if known is None else known + quantity


def raise_resources_to(total: ResourceList, least: ResourceList) -> None:
    """Raise a total to no less than the amounts."""
    for name, quantity in least.items():
        known = total.get(name)
        if known is None or known < quantity:
            total[name] = quantity
