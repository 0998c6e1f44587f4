"""Rules for the node resources that a device stands for."""

from __future__ import annotations

from mooring.api.fieldpath import Path
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import (
    Device,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
)
from mooring.validation.checks import declared_union
from mooring.validation.errors import (
    Errors,
    invalid,
    not_found,
    only_declared,
    required,
)


def check_node_resources(device: Device, path: Path) -> Errors:
    """Check which node resources a device stands for, and how much of them."""
    found: Errors = []
    for name, node_resource in device.node_allocatable_resources.items():
        place = path.key(name)
        if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
            found.append(invalid(place, name, "must be a node allocatable resource name"))
        found += _check_node_resource(node_resource, device, place)
    return found


def _check_node_resource(
    node_resource: NodeAllocatableResource, device: Device, path: Path
) -> Errors:
    mapping, overhead = node_resource.mapping, node_resource.overhead
    found: Errors = []
    if mapping is None and overhead is None:
        found.append(required(path, "at least one of mapping or overhead must be set"))
    if mapping is not None:
        found += _check_mapping(mapping, device, path.child("mapping"))
    if overhead is not None:
        found += _check_overhead(overhead, path.child("overhead"))
    return found


def _check_mapping(mapping: NodeAllocatableMapping, device: Device, path: Path) -> Errors:
    key, factor = mapping.capacity_key, mapping.capacity_multiplier
    ways = {"capacityKey": key, "deviceMultiplier": mapping.device_multiplier}
    found = only_declared(declared_union(ways, path))
    key_path, factor_path = path.child("capacityKey"), path.child("capacityMultiplier")
    if key is not None:
        if not key:
            found.append(invalid(key_path, "", "capacityKey must not be an empty string"))
        elif key not in device.capacity:
            found.append(not_found(key_path, key))
        if factor is None:
            detail = "capacityMultiplier is required when capacityKey is set"
            found.append(required(factor_path, detail))
        else:
            found += _check_positive(factor, factor_path)
    elif factor is not None:
        detail = "capacityKey is required when capacityMultiplier is set"
        found.append(required(key_path, detail))
    if mapping.device_multiplier is not None:
        found += _check_positive(mapping.device_multiplier, path.child("deviceMultiplier"))
    return found


def _check_overhead(overhead: NodeAllocatableOverhead, path: Path) -> Errors:
    amounts = {"perPod": overhead.per_pod, "perContainer": overhead.per_container}
    if all(amount is None for amount in amounts.values()):
        return [invalid(path, "", "at least one of perPod or perContainer must be set")]
    return [
        invalid(path.child(name), str(amount), "must be non-negative")
        for name, amount in amounts.items()
        if amount is not None and amount.sign < 0
    ]


def _check_positive(amount: Quantity, path: Path) -> Errors:
    return [] if amount.sign > 0 else [invalid(path, str(amount), "must be positive")]
