"""Rules of the capacity of devices: node allocatable resources, and request policies."""

from __future__ import annotations

from itertools import pairwise

from moorage.api.field_path import Path
from moorage.api.gates import Gate
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
)
from moorage.validation.errors import (
    ErrorList,
    forbidden,
    invalid,
    not_found,
    only_declared,
    required,
    too_many,
)
from moorage.validation.field_rules import declared_union, duplicates, each
from moorage.validation.strategy import Context


def validate_node_resources(device: Device, path: Path) -> ErrorList:
    """Validate the node allocatable resources that a device provides or needs."""
    found: ErrorList = []
    for name, node_resource in device.node_allocatable_resources.items():
        place = path.key(name)
        if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
            found.append(invalid(place, name, "must be a node allocatable resource name"))
        found += _validate_node_resource(node_resource, device, place)
    return found


def _validate_node_resource(
    node_resource: NodeAllocatableResource, device: Device, path: Path
) -> ErrorList:
    mapping, overhead = node_resource.mapping, node_resource.overhead
    found: ErrorList = []
    if mapping is None and overhead is None:
        found.append(required(path, "at least one of mapping or overhead must be set"))
    if mapping is not None:
        found += _validate_capacity_mapping(mapping, device, path.child("mapping"))
    if overhead is not None:
        found += _validate_node_overhead(overhead, path.child("overhead"))
    return found


def _validate_capacity_mapping(
    mapping: NodeAllocatableMapping, device: Device, path: Path
) -> ErrorList:
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
            found += _validate_positive(factor, factor_path)
    elif factor is not None:
        detail = "capacityKey is required when capacityMultiplier is set"
        found.append(required(key_path, detail))
    if mapping.device_multiplier is not None:
        found += _validate_positive(mapping.device_multiplier, path.child("deviceMultiplier"))
    return found


def _validate_node_overhead(overhead: NodeAllocatableOverhead, path: Path) -> ErrorList:
    amounts = {"perPod": overhead.per_pod, "perContainer": overhead.per_container}
    if all(amount is None for amount in amounts.values()):
        return [invalid(path, "", "at least one of perPod or perContainer must be set")]
    return [
        invalid(path.child(name), str(amount), "must be non-negative")
        for name, amount in amounts.items()
        if amount is not None and amount.sign < 0
    ]


def _validate_positive(amount: Quantity, path: Path) -> ErrorList:
    return [] if amount.sign > 0 else [invalid(path, str(amount), "must be positive")]


# --- capacity that several requests share -------------------------------------------------

VALID_VALUES_MAX = 10
INT64_MAX = 2**63 - 1


def validate_request_policy(capacity: DeviceCapacity, path: Path, context: Context) -> ErrorList:
    """Validate the request policy of a capacity."""
    policy = capacity.request_policy
    if policy is None:
        return []
    if policy.valid_values and policy.valid_range is not None:
        detail = (
            "exactly one policy can be specified, "
            'cannot specify "validValues" and "validRange" at the same time'
        )
        return [forbidden(path, detail)]
    if policy.valid_values:
        if policy.default is None:
            return [required(path.child("default"), "required when validValues is defined")]
        return _validate_values(policy, policy.default, capacity.value, path, context)
    if policy.valid_range is not None:
        if policy.default is None:
            return [required(path.child("default"), "required when validRange is defined")]
        place = path.child("validRange")
        return _validate_range(policy.valid_range, policy.default, capacity.value, place, context)
    return []


def _validate_values(
    policy: CapacityRequestPolicy, default: Quantity, total: Quantity, path: Path, context: Context
) -> ErrorList:
    path = path.child("validValues")
    values = policy.valid_values
    found: ErrorList = []
    for position, (before, value) in enumerate(pairwise(values), start=1):
        if before > value:
            detail = "values must be sorted in ascending order"
            found.append(invalid(path.index(position), str(value), detail))
    if len(values) > VALID_VALUES_MAX:
        found.append(too_many(path, len(values), VALID_VALUES_MAX))
        has_default = False
    else:
        is_exact = context.enabled(Gate.DRA_FRACTIONAL_CAPACITY_RANGE)
        found += each(values, lambda value, place: _validate_within(value, total, place), path)
        found += duplicates(values, lambda v: v.exact if is_exact else str(v.value), path)
        has_default = default in values
    if not has_default:
        detail = "default value is not valid according to the requestPolicy"
        found.append(invalid(path, str(default), detail))
    return found


def _validate_within(value: Quantity, total: Quantity, path: Path) -> ErrorList:
    if value <= total:
        return []
    return [invalid(path, str(value), f"option is larger than capacity value: {total}")]


def _validate_range(
    span: CapacityRequestPolicyRange,
    default: Quantity,
    total: Quantity,
    path: Path,
    context: Context,
) -> ErrorList:
    if span.min is None:
        return [required(path.child("min"), "required when validRange is defined")]
    found = _validate_order(span, span.min, default, total, path)
    named = [
        (name, quantity)
        for name, quantity in (
            ("default", default), ("min", span.min), ("max", span.max), ("step", span.step),
        )
        if quantity is not None
    ]  # fmt: skip
    in_milli = context.enabled(Gate.DRA_FRACTIONAL_CAPACITY_RANGE) and any(
        _is_fractional(quantity) for _, quantity in named
    )
    if in_milli:
        detail = "value cannot be represented as a milli value"
        unsafe = [
            invalid(path.child(name), str(quantity), detail)
            for name, quantity in named
            if Quantity.from_milli(quantity.milli_value) != quantity
        ]
        if unsafe:
            return found + unsafe
    if span.step is not None:
        found += _validate_step(span, span.min, span.step, default, total, named, in_milli, path)
    return found


def _validate_order(
    span: CapacityRequestPolicyRange, low: Quantity, default: Quantity, total: Quantity, path: Path
) -> ErrorList:
    found: ErrorList = []

    def refuse(name: str, value: Quantity, detail: str) -> None:
        found.append(invalid(path.child(name), str(value), detail))

    if low > total:
        refuse("min", low, f"min is larger than capacity value: {total}")
    if default < low:
        refuse("default", default, f"default is less than min: {low}")
    if span.max is not None:
        if low > span.max:
            refuse("max", low, f"min is larger than max: {span.max}")
        if span.max > total:
            refuse("max", span.max, f"max is larger than capacity value: {total}")
        if default > span.max:
            refuse("default", default, f"default is more than max: {span.max}")
    return found


def _validate_step(
    span: CapacityRequestPolicyRange,
    low: Quantity,
    step: Quantity,
    default: Quantity,
    total: Quantity,
    named: list[tuple[str, Quantity]],
    in_milli: bool,
    path: Path,
) -> ErrorList:
    place = path.child("step")
    if step.sign <= 0:
        return [invalid(place, str(step), "must be greater than zero")]
    found: ErrorList = []
    first = low + step
    if first > total:
        detail = f"one step {first} is larger than capacity value: {total}"
        found.append(invalid(place, str(step), detail))
    if not in_milli:
        unsafe = [error for name, q in named for error in _validate_int64(q, path.child(name))]
        if unsafe:
            return found + unsafe
    for value in (default, span.max):
        if value is not None and not _is_on_step(value, low, step, in_milli=in_milli):
            detail = f"value is not a multiple of a given step ({step}) from ({low})"
            found.append(invalid(place, str(value), detail))
    return found


def _is_on_step(value: Quantity, low: Quantity, step: Quantity, *, in_milli: bool) -> bool:
    if in_milli:
        return (value.milli_value - low.milli_value) % step.milli_value == 0
    return (value.value - low.value) % step.value == 0


def _is_fractional(quantity: Quantity) -> bool:
    return quantity.exact.partition(".")[2].strip("0") != ""


def _validate_int64(quantity: Quantity, path: Path) -> ErrorList:
    if quantity.sign < 0:
        return [invalid(path, str(quantity), "must be greater than or equal to 0")]
    if quantity > Quantity.from_int(INT64_MAX):
        return [invalid(path, str(quantity), f"must not be larger than {INT64_MAX}")]
    return []
