"""resource.k8s.io/v1, and v1beta2, which has the same layout.

What drivers are made of (devices and all that is in them) is checked when Python code makes it.

A list or map whose absence means something else than its emptiness is `… | None`; all others
are empty when absent.
"""

from __future__ import annotations

from msgspec import Raw, field

from mooring.api.checked_structs import Checked, shortened
from mooring.api.core.placement import NodeSelector
from mooring.api.meta import Condition, ObjectMeta
from mooring.api.quantity import Quantity
from mooring.api.structs import NULL, Closed, Int64, always, named
from mooring.api.timestamp import Timestamp

GROUP = "resource.k8s.io"
API_VERSION = "resource.k8s.io/v1"

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
EXTENDED_RESOURCE_CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
DEVICE_CLASS_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"
ADMIN_NAMESPACE_LABEL = "resource.kubernetes.io/admin-access"

# --- ResourceSlice ------------------------------------------------------------------------


class DeviceAttribute(Closed, frozen=True, gc=False, metaclass=Checked):
    """A typed value that describes a device: exactly one member is set."""

    int_value: Int64 | None = named("int", None)
    bool_value: bool | None = named("bool", None)
    string_value: str | None = named("string", None)
    version_value: str | None = named("version", None)
    int_values: tuple[Int64, ...] | None = named("ints", None)
    bool_values: tuple[bool, ...] | None = named("bools", None)
    string_values: tuple[str, ...] | None = named("strings", None)
    version_values: tuple[str, ...] | None = named("versions", None)

    @staticmethod
    def instead_of(value: object) -> str:
        """Return the code that makes an attribute of a value; "" if there is none."""
        many = isinstance(value, list | tuple) and bool(value)
        one = value[0] if isinstance(value, list | tuple) and value else value
        # A bool is an int, too.
        for kind, name in ((bool, "bool_value"), (int, "int_value"), (str, "string_value")):
            if isinstance(one, kind):
                return f"DeviceAttribute({name}{'s' if many else ''}={shortened(repr(value))})"
        return ""


class CapacityRequestPolicyRange(Closed, frozen=True, gc=False, metaclass=Checked):
    """Amounts from min to max in steps."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Closed, frozen=True, gc=False, metaclass=Checked):
    """How much of a shareable capacity one request may consume."""

    default: Quantity | None = always(None)
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Closed, frozen=True, gc=False, metaclass=Checked):
    """An amount that a device has of something."""

    value: Quantity = always(Quantity.ZERO)
    request_policy: CapacityRequestPolicy | None = None

    @staticmethod
    def instead_of(value: object) -> str:
        """Return the code that makes a capacity of a value; "" if there is none."""
        return _amount("DeviceCapacity", value)


class Counter(Closed, frozen=True, gc=False, metaclass=Checked):
    """An amount in a counter set, or what a device takes of it."""

    value: Quantity = always(Quantity.ZERO)

    @staticmethod
    def instead_of(value: object) -> str:
        """Return the code that makes a counter of a value; "" if there is none."""
        return _amount("Counter", value)


def _amount(kind: str, value: object) -> str:
    quantity = "…" if isinstance(value, Quantity) else Quantity.instead_of(value)
    return f"{kind}(value={quantity})" if quantity else ""


class CounterSet(Closed, frozen=True, gc=False, metaclass=Checked):
    """Counters that the devices of a pool share."""

    name: str = always("")
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceCounterConsumption(Closed, frozen=True, gc=False, metaclass=Checked):
    """What a device takes of one counter set while it is allocated."""

    counter_set: str = always("")
    counters: dict[str, Counter] = field(default_factory=dict)
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(Closed, frozen=True, gc=False, metaclass=Checked):
    """A mark that keeps claims without a toleration away from a device."""

    key: str = always("")
    value: str = ""
    effect: str = always("")
    time_added: Timestamp | None = None


class NodeAllocatableMapping(Closed, frozen=True, gc=False, metaclass=Checked):
    """How an allocation of a device turns into an amount of a node resource."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(Closed, frozen=True, gc=False, metaclass=Checked):
    """What using a device costs the node besides."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(Closed, frozen=True, gc=False, metaclass=Checked):
    """The part of a node resource that a device stands for."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(Closed, frozen=True, gc=False, metaclass=Checked):
    """One device of a pool."""

    name: str = always("")
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] = field(default_factory=dict)

    @staticmethod
    def instead_of(value: object) -> str:
        """Return the code that makes a device of a value; "" if there is none."""
        return f"Device(name={shortened(repr(value))})" if isinstance(value, str) else ""


class ResourcePool(Closed, frozen=True, gc=False):
    """The pool that a slice is part of."""

    name: str = always("")
    generation: Int64 = always(0)
    resource_slice_count: Int64 = always(0)


class ResourceSliceSpec(Closed, frozen=True, gc=False):
    """Devices, or counters, that a driver publishes for some nodes."""

    driver: str = always("")
    pool: ResourcePool = always(ResourcePool())
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] | None = None
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(Closed, frozen=True, gc=False):
    """What one driver offers in one pool, or a part of it."""

    api_version: str = always(API_VERSION)
    kind: str = always("ResourceSlice")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ResourceSliceSpec = always(ResourceSliceSpec())


# --- ResourceClaim ------------------------------------------------------------------------


class CELDeviceSelector(Closed, frozen=True, gc=False):
    """A CEL expression that is true for the devices wanted."""

    expression: str = always("")


class DeviceSelector(Closed, frozen=True, gc=False):
    """One condition on devices."""

    cel: CELDeviceSelector | None = None


class DeviceToleration(Closed, frozen=True, gc=False):
    """Taints that a request puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Closed, frozen=True, gc=False):
    """Amounts of capacity that a request wants of each device."""

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
    """What a claim asks for."""

    requests: tuple[DeviceRequest, ...] | None = always(None)
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Closed, frozen=True, gc=False):
    """What a claim asks for; immutable."""

    devices: DeviceClaim = always(DeviceClaim())


class DeviceRequestAllocationResult(Closed, frozen=True, gc=False):
    """A device, or a share of one, given to a request."""

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
    """All devices given to a claim, and their configuration."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Closed, frozen=True, gc=False):
    """What a claim got, and where it can be used."""

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
    """What a driver reports of a network device."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(Closed, frozen=True, gc=False):
    """What a driver reports of an allocated device."""

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
