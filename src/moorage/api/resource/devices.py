"""Devices and the slices that publish them: resource.k8s.io/v1, which `v1` has as a whole.

What drivers are made of (devices and all that is in them) is checked when Python code makes it.
"""

from __future__ import annotations

from msgspec import field

from moorage.api.core.placement import NodeSelector
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.structs import Checked, Closed, Int64, always, named, shortened
from moorage.api.timestamp import Timestamp

API_VERSION = "resource.k8s.io/v1"


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
    """The amount of one capacity of a device."""

    value: Quantity = always(Quantity.ZERO)
    request_policy: CapacityRequestPolicy | None = None

    @staticmethod
    def instead_of(value: object) -> str:
        """Return the code that makes a capacity of a value; "" if there is none."""
        return _amount("DeviceCapacity", value)


class Counter(Closed, frozen=True, gc=False, metaclass=Checked):
    """An amount in a counter set, or the amount that a device consumes."""

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
    """The counters of one set that a device consumes while it is allocated."""

    counter_set: str = always("")
    counters: dict[str, Counter] = field(default_factory=dict)
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(Closed, frozen=True, gc=False, metaclass=Checked):
    """A taint that keeps claims without a matching toleration away from a device."""

    key: str = always("")
    value: str = ""
    effect: str = always("")
    time_added: Timestamp | None = None


class NodeAllocatableMapping(Closed, frozen=True, gc=False, metaclass=Checked):
    """How an allocation of a device translates into an amount of a node resource."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(Closed, frozen=True, gc=False, metaclass=Checked):
    """The overhead of using a device on the node."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(Closed, frozen=True, gc=False, metaclass=Checked):
    """The amount of a node resource that a device represents."""

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
    """Devices, or counters, of one pool of a driver."""

    api_version: str = always(API_VERSION)
    kind: str = always("ResourceSlice")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ResourceSliceSpec = always(ResourceSliceSpec())
