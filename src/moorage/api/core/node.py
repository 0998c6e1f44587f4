"""Nodes (core/v1)."""

from __future__ import annotations

from msgspec import field

from moorage.api.core.placement import Taint
from moorage.api.core.resources import ResourceList
from moorage.api.meta import Json, ObjectMeta
from moorage.api.structs import Int32, Int64, Open, always, named
from moorage.api.timestamp import Timestamp

API_VERSION = "v1"

READY = "Ready"


class NodeSpec(Open, frozen=True, gc=False):
    """The spec of a node."""

    pod_cidr: str = named("podCIDR", "")
    pod_cidrs: tuple[str, ...] = named("podCIDRs", ())
    provider_id: str = named("providerID", "")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    config_source: Json = None
    external_id: str = named("externalID", "")
    pod_preemption_policy: Json = None


class NodeCondition(Open, frozen=True, gc=False):
    """One observed aspect of a node's state."""

    type: str = always("")
    status: str = always("")
    last_heartbeat_time: Timestamp | None = always(None)
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""


class NodeAddress(Open, frozen=True, gc=False):
    """A name or address of the node."""

    type: str = always("")
    address: str = always("")


class NodeSystemInfo(Open, frozen=True, gc=False):
    """The software that a node runs."""

    machine_id: str = always("", name="machineID")
    system_uuid: str = always("", name="systemUUID")
    boot_id: str = always("", name="bootID")
    kernel_version: str = always("")
    os_image: str = always("")
    container_runtime_version: str = always("")
    kubelet_version: str = always("")
    kube_proxy_version: str = always("")
    operating_system: str = always("")
    architecture: str = always("")
    swap: Json = None
    running_in_user_namespace: bool | None = None


class DaemonEndpoint(Open, frozen=True, gc=False):
    """The port that a daemon of the node listens on."""

    port: Int32 = always(0, name="Port")


class NodeDaemonEndpoints(Open, frozen=True, gc=False):
    """Where the daemons of the node listen."""

    kubelet_endpoint: DaemonEndpoint = always(DaemonEndpoint())


class ContainerImage(Open, frozen=True, gc=False):
    """An image that the node has."""

    names: tuple[str, ...] | None = always(None)
    size_bytes: Int64 = 0


class NodeStatus(Open, frozen=True, gc=False):
    """The capacity and condition of a node."""

    capacity: ResourceList = field(default_factory=dict)
    allocatable: ResourceList = field(default_factory=dict)
    phase: str = ""
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    daemon_endpoints: NodeDaemonEndpoints = always(NodeDaemonEndpoints())
    node_info: NodeSystemInfo = always(NodeSystemInfo())
    images: tuple[ContainerImage, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    volumes_attached: tuple[Json, ...] = ()
    config: Json = None
    runtime_handlers: tuple[Json, ...] = ()
    features: Json = None
    declared_features: tuple[str, ...] = ()


class Node(Open, frozen=True, gc=False):
    """A machine that runs pods."""

    api_version: str = always(API_VERSION)
    kind: str = always("Node")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: NodeSpec = always(NodeSpec())
    status: NodeStatus = always(NodeStatus())
