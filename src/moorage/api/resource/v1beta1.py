"""resource.k8s.io/v1beta1, where its layout differs from v1.

Device fields sit below `basic`, the fields of an exact request directly on the request, and a
slice's nodeName and allNodes are plain values.
"""

from __future__ import annotations

from msgspec import field

from moorage.api.core.placement import NodeSelector
from moorage.api.meta import ObjectMeta
from moorage.api.resource import v1
from moorage.api.structs import Closed, Int64, always

API_VERSION = "resource.k8s.io/v1beta1"


class BasicDevice(Closed, frozen=True, gc=False):
    """Everything of a device but its name."""

    attributes: dict[str, v1.DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, v1.DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[v1.DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[v1.DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, v1.NodeAllocatableResource] = field(default_factory=dict)


class Device(Closed, frozen=True, gc=False):
    """One device of a pool."""

    name: str = always("")
    basic: BasicDevice | None = None


class ResourceSliceSpec(Closed, frozen=True, gc=False):
    """Devices, or counters, that a driver publishes for some nodes."""

    driver: str = always("")
    pool: v1.ResourcePool = always(v1.ResourcePool())
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: tuple[v1.CounterSet, ...] | None = None
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(Closed, frozen=True, gc=False):
    """Devices, or counters, of one pool of a driver."""

    api_version: str = always(API_VERSION)
    kind: str = always("ResourceSlice")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ResourceSliceSpec = always(ResourceSliceSpec())


class DeviceRequest(Closed, frozen=True, gc=False):
    """A request: its own fields ask for devices, or one alternative of a list does."""

    name: str = always("")
    device_class_name: str = ""
    selectors: tuple[v1.DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    first_available: tuple[v1.DeviceSubRequest, ...] = ()
    tolerations: tuple[v1.DeviceToleration, ...] | None = None
    capacity: v1.CapacityRequirements | None = None
    derived_attributes: tuple[v1.DeviceDerivedAttribute, ...] | None = None


class DeviceClaim(Closed, frozen=True, gc=False):
    """What a claim asks for."""

    requests: tuple[DeviceRequest, ...] | None = always(None)
    constraints: tuple[v1.DeviceConstraint, ...] = ()
    config: tuple[v1.DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Closed, frozen=True, gc=False):
    """What a claim asks for; immutable."""

    devices: DeviceClaim = always(DeviceClaim())


class ResourceClaim(Closed, frozen=True, gc=False):
    """A request for devices, and the devices it got."""

    api_version: str = always(API_VERSION)
    kind: str = always("ResourceClaim")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ResourceClaimSpec = always(ResourceClaimSpec())
    status: v1.ResourceClaimStatus = always(v1.ResourceClaimStatus())


class ResourceClaimTemplateSpec(Closed, frozen=True, gc=False):
    """The claim that a template makes."""

    metadata: ObjectMeta = always(ObjectMeta())
    spec: ResourceClaimSpec = always(ResourceClaimSpec())


class ResourceClaimTemplate(Closed, frozen=True, gc=False):
    """Makes one claim for each pod that names it."""

    api_version: str = always(API_VERSION)
    kind: str = always("ResourceClaimTemplate")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ResourceClaimTemplateSpec = always(ResourceClaimTemplateSpec())
