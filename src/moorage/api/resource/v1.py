"""resource.k8s.io/v1, and v1beta2, which has the same layout.

Devices and slices are in `devices`; all names of the version can be imported from here.

A list or map whose absence means something else than its emptiness is `… | None`; all others
are empty when absent.
"""

from __future__ import annotations

from msgspec import Raw, field

from moorage.api.core.placement import NodeSelector
from moorage.api.meta import Condition, ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.devices import (
    API_VERSION,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.api.structs import NULL, Checked, Closed, Int64, always, named
from moorage.api.timestamp import Timestamp

# Re-exported from `devices`.
__all__ = [
    "API_VERSION",
    "CapacityRequestPolicy",
    "CapacityRequestPolicyRange",
    "Counter",
    "CounterSet",
    "Device",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceCounterConsumption",
    "DeviceTaint",
    "NodeAllocatableMapping",
    "NodeAllocatableOverhead",
    "NodeAllocatableResource",
    "ResourcePool",
    "ResourceSlice",
    "ResourceSliceSpec",
]

GROUP = "resource.k8s.io"

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
EXTENDED_RESOURCE_CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
DEVICE_CLASS_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"
ADMIN_NAMESPACE_LABEL = "resource.kubernetes.io/admin-access"

# --- ResourceClaim ------------------------------------------------------------------------


class CELDeviceSelector(Closed, frozen=True, gc=False):
    """A CEL expression that is true for matching devices."""

    expression: str = always("")


class DeviceSelector(Closed, frozen=True, gc=False):
    """One condition on devices."""

    cel: CELDeviceSelector | None = None


class DeviceToleration(Closed, frozen=True, gc=False):
    """Taints that a request tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Closed, frozen=True, gc=False):
    """Amounts of capacity that a request needs of each device."""

    requests: dict[str, Quantity] = field(default_factory=dict)


class DeviceDerivedAttribute(Closed, frozen=True, gc=False):
    """An attribute computed from a device for the constraints of the claim."""

    name: str = always("")
    expression: str = always("")


class ExactDeviceRequest(Closed, frozen=True, gc=False):
    """Devices of one class."""

    device_class_name: str = always("")
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(Closed, frozen=True, gc=False):
    """One alternative of a prioritized list."""

    name: str = always("")
    device_class_name: str = always("")
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(Closed, frozen=True, gc=False):
    """A request: exactly these devices, or the first alternative that is available."""

    name: str = always("")
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Closed, frozen=True, gc=False):
    """A rule over the devices of several requests."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(Closed, frozen=True, gc=False):
    """Parameters that only the driver understands."""

    driver: str = always("")
    parameters: Raw = always(NULL)


class DeviceClaimConfiguration(Closed, frozen=True, gc=False):
    """Configuration for some requests of a claim."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Closed, frozen=True, gc=False):
    """The devices that a claim requests."""

    requests: tuple[DeviceRequest, ...] | None = always(None)
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Closed, frozen=True, gc=False):
    """The spec of a claim; immutable."""

    devices: DeviceClaim = always(DeviceClaim())


class DeviceRequestAllocationResult(Closed, frozen=True, gc=False):
    """A device, or a share of one, allocated for a request."""

    request: str = always("")
    driver: str = always("")
    pool: str = always("")
    device: str = always("")
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = named("shareID", None)
    consumed_capacity: dict[str, Quantity] | None = None
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(Closed, frozen=True, gc=False):
    """Configuration that applies to the allocated devices."""

    source: str = always("")
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Closed, frozen=True, gc=False):
    """All devices allocated to a claim, and their configuration."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Closed, frozen=True, gc=False):
    """The devices allocated to a claim, and the nodes where they can be used."""

    devices: DeviceAllocationResult = always(DeviceAllocationResult())
    node_selector: NodeSelector | None = None
    allocation_timestamp: Timestamp | None = None


class ResourceClaimConsumerReference(Closed, frozen=True, gc=False):
    """An object that may use an allocated claim."""

    api_group: str = named("apiGroup", "")
    resource: str = always("")
    name: str = always("")
    uid: str = always("")


class NetworkDeviceData(Closed, frozen=True, gc=False, metaclass=Checked):
    """The network data that a driver reports for a device."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(Closed, frozen=True, gc=False):
    """The status that a driver reports for an allocated device."""

    driver: str = always("")
    pool: str = always("")
    device: str = always("")
    share_id: str | None = named("shareID", None)
    conditions: tuple[Condition, ...] | None = always(None)
    data: Raw = NULL
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Closed, frozen=True, gc=False):
    """What a claim got and who may use it."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Closed, frozen=True, gc=False):
    """A request for devices, and the devices it got."""

    api_version: str = always(API_VERSION)
    kind: str = always("ResourceClaim")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ResourceClaimSpec = always(ResourceClaimSpec())
    status: ResourceClaimStatus = always(ResourceClaimStatus())


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


# --- DeviceClass --------------------------------------------------------------------------


class DeviceClassConfiguration(Closed, frozen=True, gc=False):
    """Configuration for every device of a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Closed, frozen=True, gc=False):
    """Which devices are in a class, and how they are configured."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Closed, frozen=True, gc=False):
    """A named kind of device that claims ask for."""

    api_version: str = always(API_VERSION)
    kind: str = always("DeviceClass")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: DeviceClassSpec = always(DeviceClassSpec())


# --- DeviceTaintRule ----------------------------------------------------------------------


class DeviceTaintSelector(Closed, frozen=True, gc=False):
    """Devices to taint; the empty selector means all.

    `device_class_name` and `selectors` left Kubernetes in 1.35; they are extensions here.
    """

    device_class_name: str | None = None
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceTaintRuleSpec(Closed, frozen=True, gc=False):
    """A taint and the devices that get it."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = always(DeviceTaint())


class DeviceTaintRuleStatus(Closed, frozen=True, gc=False):
    """How far the eviction that a rule started has come."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(Closed, frozen=True, gc=False):
    """Taints devices from outside their driver."""

    api_version: str = always(API_VERSION)
    kind: str = always("DeviceTaintRule")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: DeviceTaintRuleSpec = always(DeviceTaintRuleSpec())
    status: DeviceTaintRuleStatus = always(DeviceTaintRuleStatus())
