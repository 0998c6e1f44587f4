"""What a slice may not use while its feature is off, unless it did so before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from msgspec.structs import replace

from mooring.api.gates import Gate
from mooring.api.resource.v1 import Device, DeviceAttribute, ResourceSliceSpec
from mooring.validation.context import Context

Spec = ResourceSliceSpec


def drop_disabled(spec: Spec, old: Spec | None, context: Context) -> Spec:
    """Return the spec without fields of disabled features that the old one does not use."""
    if old is not None and old.shared_counters == ():
        old = replace(old, shared_counters=None)  # An empty list uses nothing.
    for _, is_used, drop in _off(context.gates.on):
        if _loses(is_used, spec, old):
            spec = drop(spec)
    return spec


def disabled(spec: Spec, old: Spec | None, context: Context) -> Iterator[Gate]:
    """Yield the gates whose fields `drop_disabled` takes away."""
    for gates, is_used, _ in _off(context.gates.on):
        if _loses(is_used, spec, old):
            yield from (gate for gate in gates if not context.enabled(gate))


def dropped(sent: Spec, stored: Spec) -> list[Gate]:
    """Return the gates that are probably off where a spec was stored without some fields."""
    return [gates[0] for gates, is_used, _ in _FEATURES if is_used(sent) and not is_used(stored)]


def _loses(is_used: Callable[[Spec], bool], spec: Spec, old: Spec | None) -> bool:
    return not (old is not None and is_used(old)) and is_used(spec)


def is_list(attribute: DeviceAttribute) -> bool:
    """Tell whether an attribute has a list as its value."""
    return (
        attribute.int_values is not None
        or attribute.bool_values is not None
        or attribute.string_values is not None
        or attribute.version_values is not None
    )


def count_values(attributes: Mapping[str, DeviceAttribute]) -> int:
    """Return the number of values of all attributes; a list counts by its elements."""
    total = len(attributes)
    for attribute in attributes.values():
        if is_list(attribute):
            elements = (
                len(attribute.int_values or ())
                + len(attribute.bool_values or ())
                + len(attribute.string_values or ())
                + len(attribute.version_values or ())
            )
            total += max(elements, 1) - 1
    return total


def _any_device(is_used: Callable[[Device], bool]) -> Callable[[Spec], bool]:
    return lambda spec: any(map(is_used, spec.devices or ()))


def _each_device(drop: Callable[[Device], Device]) -> Callable[[Spec], Spec]:
    return lambda spec: replace(spec, devices=tuple(map(drop, spec.devices or ())))


def _uses_partitions(spec: Spec) -> bool:
    return bool(
        spec.shared_counters is not None
        or spec.per_device_node_selection is not None
        or any(map(_device_uses_partitions, spec.devices or ()))
    )


def _device_uses_partitions(device: Device) -> bool:
    return bool(
        device.consumes_counters
        or device.node_name is not None
        or device.node_selector is not None
        or device.all_nodes is not None
    )


def _drop_partitions(spec: Spec) -> Spec:
    devices = spec.devices
    if devices is not None:
        devices = tuple(
            replace(d, consumes_counters=(), node_name=None, node_selector=None, all_nodes=None)
            for d in devices
        )
    return replace(spec, shared_counters=None, per_device_node_selection=None, devices=devices)


def _uses_binding_conditions(device: Device) -> bool:
    return bool(
        device.binding_conditions
        or device.binding_failure_conditions
        or device.binds_to_node is not None
    )


def _drop_binding_conditions(device: Device) -> Device:
    return replace(device, binding_conditions=(), binding_failure_conditions=(), binds_to_node=None)


def _uses_consumable_capacity(device: Device) -> bool:
    return device.allow_multiple_allocations is not None or any(
        capacity.request_policy is not None for capacity in device.capacity.values()
    )


def _drop_consumable_capacity(device: Device) -> Device:
    capacity = {
        name: replace(capacity, request_policy=None) for name, capacity in device.capacity.items()
    }
    return replace(device, allow_multiple_allocations=None, capacity=capacity)


def _uses_groups(device: Device) -> bool:
    return any(consumption.compatibility_groups for consumption in device.consumes_counters)


def _drop_groups(device: Device) -> Device:
    consumptions = tuple(replace(c, compatibility_groups=()) for c in device.consumes_counters)
    return replace(device, consumes_counters=consumptions)


def _uses_lists(device: Device) -> bool:
    return any(map(is_list, device.attributes.values()))


def _drop_lists(device: Device) -> Device:
    attributes = {
        name: replace(
            attribute, int_values=None, bool_values=None, string_values=None, version_values=None
        )
        for name, attribute in device.attributes.items()
    }
    return replace(device, attributes=attributes)


# the gates that must all be on, whether a spec uses the feature, the spec without it
Feature = tuple[tuple[Gate, ...], Callable[[Spec], bool], Callable[[Spec], Spec]]

_FEATURES: tuple[Feature, ...] = (
    (
        (Gate.DRA_DEVICE_TAINTS,),
        _any_device(lambda device: bool(device.taints)),
        _each_device(lambda device: replace(device, taints=())),
    ),
    ((Gate.DRA_PARTITIONABLE_DEVICES,), _uses_partitions, _drop_partitions),
    (
        (Gate.DRA_DEVICE_BINDING_CONDITIONS, Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS),
        _any_device(_uses_binding_conditions),
        _each_device(_drop_binding_conditions),
    ),
    (
        (Gate.DRA_CONSUMABLE_CAPACITY,),
        _any_device(_uses_consumable_capacity),
        _each_device(_drop_consumable_capacity),
    ),
    (
        (Gate.DRA_DEVICE_COMPATIBILITY_GROUPS,),
        _any_device(_uses_groups),
        _each_device(_drop_groups),
    ),
    (
        (Gate.DRA_NODE_ALLOCATABLE_RESOURCES,),
        _any_device(lambda device: bool(device.node_allocatable_resources)),
        _each_device(lambda device: replace(device, node_allocatable_resources={})),
    ),
    ((Gate.DRA_LIST_TYPE_ATTRIBUTES,), _any_device(_uses_lists), _each_device(_drop_lists)),
    (
        (Gate.DRA_PARTITIONABLE_DEVICES_TYPE,),
        lambda spec: spec.partition_type_attribute is not None,
        lambda spec: replace(spec, partition_type_attribute=None),
    ),
    (
        (Gate.DRA_OPTIONAL_NODE_OPERATIONS,),
        lambda spec: bool(spec.skip_node_operations),
        lambda spec: replace(spec, skip_node_operations=()),
    ),
)


@lru_cache(maxsize=64)
def _off(on: frozenset[Gate]) -> tuple[Feature, ...]:
    """Return the features that are off; remembered, because gates stay as they are."""
    return tuple(feature for feature in _FEATURES if not on.issuperset(feature[0]))
