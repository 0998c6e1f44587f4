"""Rules of the devices of a ResourceSlice."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from msgspec.structs import astuple

from moorage.api.field_path import Path, root
from moorage.api.gates import Gate
from moorage.api.names import byte_length
from moorage.api.resource.v1 import (
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourceSliceSpec,
)
from moorage.api.semver import matches_api_rule
from moorage.validation.device_capacity import validate_node_resources, validate_request_policy
from moorage.validation.device_fields import validate_binding_conditions, validate_taint
from moorage.validation.equality import both, semantic_equal
from moorage.validation.errors import (
    ErrorList,
    forbidden,
    invalid,
    only_declared,
    required,
    too_long,
    too_many,
)
from moorage.validation.field_rules import (
    declared_fully_qualified_name,
    declared_label,
    declared_set,
    declared_short_name,
    declared_union,
    each,
    identity,
    is_good_qualified_name,
    label,
    node_name,
    qualified_name,
)
from moorage.validation.plain_devices import ENTRIES_MAX, VALUE_MAX_BYTES
from moorage.validation.selectors import validate_node_selector
from moorage.validation.strategy import Context

SPEC = root("spec")

COUNTERS_MAX = 32
CONSUMPTIONS_MAX = 2
GROUPS_MAX = 2
ATTRIBUTE_VALUES_MAX = 48
TAINTS_MAX = 16
KEY_SHOWN_MAX = 63 + 1 + 32

_ONE_OF_THREE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_VALUE_NAMES = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_ONE_VALUE = "exactly one value must be specified"


def validate_device(device: Device, old: Device | None, path: Path, context: Context) -> ErrorList:
    """Validate a device, except its node selection."""
    found = label(device.name, path.child("name"))
    found += _validate_sizes(device, path)
    found += _validate_attributes(device.attributes, path.child("attributes"), context)
    if device.capacity and (old is None or not semantic_equal(device.capacity, old.capacity)):
        found += _validate_capacities(device, path.child("capacity"), context)
    if device.taints:
        found += _validate_taints(device, old, path.child("taints"))
    if device.consumes_counters:
        found += declared_set(
            device.consumes_counters,
            CONSUMPTIONS_MAX,
            _validate_consumption,
            lambda consumption: consumption.counter_set,
            path.child("consumesCounters"),
        )
    found += validate_binding_conditions(
        device.binding_conditions, device.binding_failure_conditions, path
    )
    if device.node_allocatable_resources:
        found += validate_node_resources(device, path.child("nodeAllocatableResources"))
    return found


def _validate_sizes(device: Device, path: Path) -> ErrorList:
    found: ErrorList = []
    entries = len(device.attributes) + len(device.capacity)
    if entries > ENTRIES_MAX:
        detail = f"the total number of attributes and capacities must not exceed {ENTRIES_MAX}"
        found.append(invalid(path, entries, detail))
    values = count_values(device.attributes)
    if values > ATTRIBUTE_VALUES_MAX:
        detail = f"the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}"
        found.append(invalid(path, values, detail))
    return found


def _validate_taints(device: Device, old: Device | None, path: Path) -> ErrorList:
    if old is not None and semantic_equal(device.taints, old.taints):
        return only_declared(each(device.taints, _validate_new_taint, path))
    found = each(device.taints, _validate_new_taint, path)
    if len(device.taints) > TAINTS_MAX:
        return [too_many(path, len(device.taints), TAINTS_MAX), *only_declared(found)]
    return found


def _validate_new_taint(taint: DeviceTaint, path: Path) -> ErrorList:
    return validate_taint(taint, None, path)


def validate_device_nodes(device: Device, path: Path, *, per_device: bool | None) -> ErrorList:
    """Validate that a device selects nodes exactly if the slice has perDeviceNodeSelection."""
    if not per_device:
        if device.node_name is None and device.node_selector is None and device.all_nodes is None:
            return []
        detail = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
            "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        )
        return [invalid(path, None, detail)]
    found: ErrorList = []
    ways: list[str] = []
    if device.node_name:
        ways.append("`nodeName`")
        found += node_name(device.node_name, path.child("nodeName"))
    elif device.node_name is not None:
        found.append(invalid(path.child("nodeName"), device.node_name, "must not be empty"))
    if device.node_selector is not None:
        ways.append("`nodeSelector`")
        found += validate_node_selector(device.node_selector, path.child("nodeSelector"))
    if device.all_nodes:
        ways.append("`allNodes`")
    elif device.all_nodes is not None:
        detail = "must be either unset or set to true"
        found.append(invalid(path.child("allNodes"), device.all_nodes, detail))
    if not ways:
        found.append(required(path, _ONE_OF_THREE))
    elif len(ways) > 1:
        found.append(invalid(path, f"{{{', '.join(ways)}}}", _ONE_OF_THREE))
    return found


# --- attributes ---------------------------------------------------------------------------


def _validate_attributes(
    attributes: dict[str, DeviceAttribute], path: Path, context: Context
) -> ErrorList:
    found: ErrorList = []
    for name, attribute in attributes.items():
        found += _validate_key(name, path, context)
        place = path.key(_shortened(name, KEY_SHOWN_MAX))
        found += _validate_attribute(attribute, place)
        found += _validate_one_value(attribute, path.key(name), shown_at=place)
    return found


def _validate_key(name: str, path: Path, context: Context) -> ErrorList:
    """Validate a key of the attribute or capacity map."""
    if context.extensions and is_hyphenated_name(name):
        return []
    return qualified_name(name, path)


def is_hyphenated_name(name: str) -> bool:
    """Return whether an identifier is valid except for hyphens, which extensions allow."""
    domain, slash, identifier = name.rpartition("/")
    is_hyphenated = "-" in identifier.strip("-")
    return is_hyphenated and is_good_qualified_name(
        f"{domain}{slash}{identifier.replace('-', '_')}"
    )


def _validate_attribute(attribute: DeviceAttribute, path: Path) -> ErrorList:
    found: ErrorList = []
    if attribute.string_value is not None:
        found += _validate_text(attribute.string_value, path.child("string"))
    if attribute.version_value is not None:
        found += _validate_version(attribute.version_value, path.child("version"))
    for name, values in zip(_VALUE_NAMES[4:], astuple(attribute)[4:], strict=True):
        if values == ():
            found.append(invalid(path.child(name), [], "must not be empty if specified"))
    found += each(attribute.string_values or (), _validate_text, path.child("strings"))
    return found + each(attribute.version_values or (), _validate_version, path.child("versions"))


def _validate_one_value(attribute: DeviceAttribute, path: Path, *, shown_at: Path) -> ErrorList:
    """Validate that one value is set; for the handwritten rule an empty list is one."""
    values = astuple(attribute)
    is_one = values.count(None) == len(values) - 1
    if is_one and () not in values:
        return []
    by_hand = [] if is_one else [invalid(shown_at, attribute, _ONE_VALUE)]
    return both(by_hand, declared_union(dict(zip(_VALUE_NAMES, values, strict=True)), path))


def _validate_text(text: str, path: Path) -> ErrorList:
    if byte_length(text) <= VALUE_MAX_BYTES:
        return []
    return [too_long(path, VALUE_MAX_BYTES)]


def _validate_version(text: str, path: Path) -> ErrorList:
    found: ErrorList = []
    if not matches_api_rule(text):
        detail = "must be a string compatible with semver.org spec 2.0.0"
        found.append(invalid(path, text, detail))
    return found + _validate_text(text, path)


# --- capacity and counters ----------------------------------------------------------------


def _validate_capacities(device: Device, path: Path, context: Context) -> ErrorList:
    found: ErrorList = []
    for name, capacity in device.capacity.items():
        found += _validate_key(name, path, context)
        if capacity.request_policy is not None:
            place = path.key(_shortened(name, KEY_SHOWN_MAX)).child("requestPolicy")
            found += _validate_policy(device, capacity, place, context)
    return found


def _validate_policy(
    device: Device, capacity: DeviceCapacity, path: Path, context: Context
) -> ErrorList:
    if device.allow_multiple_allocations:
        return validate_request_policy(capacity, path, context)
    return [forbidden(path, "allowMultipleAllocations must be true")]


def validate_counter_set(counter_set: CounterSet, path: Path) -> ErrorList:
    """Validate a counter set."""
    found = declared_short_name(counter_set.name, path.child("name"))
    return found + _validate_counters(counter_set.counters, path.child("counters"))


def _validate_consumption(consumption: DeviceCounterConsumption, path: Path) -> ErrorList:
    found = declared_short_name(consumption.counter_set, path.child("counterSet"))
    found += _validate_counters(consumption.counters, path.child("counters"))
    groups = path.child("compatibilityGroups")
    return found + only_declared(
        declared_set(
            consumption.compatibility_groups, GROUPS_MAX, _validate_group, identity, groups
        )
    )


def _validate_group(group: str, path: Path) -> ErrorList:
    return only_declared(declared_label(group, path))


def _validate_counters(counters: Collection[str], path: Path) -> ErrorList:
    if not counters:
        return [required(path, declared=True)]
    found: ErrorList = []
    for name in counters:
        found += declared_label(name, path)
    if len(counters) > COUNTERS_MAX:
        return [too_many(path, len(counters), COUNTERS_MAX), *only_declared(found)]
    return found


def _shortened(key: str, length_max: int) -> str:
    """Return a long key with its middle elided."""
    if byte_length(key) <= length_max:
        return key
    data = key.encode("utf-8", "surrogatepass")
    room = length_max - len("...")
    head, tail = data[: (room + 1) // 2], data[len(data) - room // 2 :]
    # Each byte of a character that is cut in two becomes a replacement of its own, as in Go.
    text = (head + b"..." + tail).decode(errors="surrogateescape")
    return _escaped_byte.sub("\ufffd", text)


_escaped_byte = re.compile("[\udc80-\udcff]")


def is_list(attribute: DeviceAttribute) -> bool:
    """Return whether an attribute has a list as its value."""
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


def validate_partition_type(spec: ResourceSliceSpec, name: str, context: Context) -> ErrorList:
    """Validate that devices that consume counters have the partition type attribute."""
    path = SPEC.child("partitionTypeAttribute")
    if not context.enabled(Gate.DRA_PARTITIONABLE_DEVICES_TYPE):
        found: ErrorList = [forbidden(path, "", declared=True)]
    else:
        found = declared_fully_qualified_name(name, path)
    found = only_declared(found)
    devices = spec.devices or ()
    if not any(device.consumes_counters for device in devices):
        detail = "may only be set on a slice which declares devices that consume counters"
        return [*found, invalid(path, name, detail)]
    if "/" not in name or qualified_name(name, path):
        return found  # No device can have an attribute with an invalid name.
    bare = name.removeprefix(f"{spec.driver}/")
    for position, device in enumerate(devices):
        if not device.consumes_counters:
            continue
        place = SPEC.child("devices").index(position).child("attributes").key(name)
        attribute = device.attributes.get(name) or device.attributes.get(bare)
        if attribute is None:
            detail = (
                "device consumes counters and `partitionTypeAttribute` names this attribute, "
                "so it must be set"
            )
            found.append(required(place, detail))
        elif attribute.string_value is None:
            detail = "must be a string value because `partitionTypeAttribute` names this attribute"
            found.append(invalid(place, attribute, detail))
    return found


def validate_slice_nodes(spec: ResourceSliceSpec) -> ErrorList:
    """Validate that the slice selects its nodes in exactly one way."""
    found: ErrorList = []
    ways: list[str] = []
    if spec.node_name:
        ways.append("`nodeName`")
        found += node_name(spec.node_name, SPEC.child("nodeName"))
    elif spec.node_name is not None:
        detail = "must be either unset or set to a non-empty string"
        found.append(invalid(SPEC.child("nodeName"), spec.node_name, detail))
    if spec.node_selector is not None:
        ways.append("`nodeSelector`")
        path = SPEC.child("nodeSelector")
        found += validate_node_selector(spec.node_selector, path)
        terms = spec.node_selector.node_selector_terms
        if len(terms or ()) != 1:
            detail = "must have exactly one node selector term"
            found.append(invalid(path.child("nodeSelectorTerms"), terms, detail))
    for name, value in (
        ("allNodes", spec.all_nodes),
        ("perDeviceNodeSelection", spec.per_device_node_selection),
    ):
        if value:
            ways.append(f"`{name}`")
        elif value is not None:
            detail = "must be either unset or set to true"
            found.append(invalid(SPEC.child(name), value, detail))
    if not ways:
        found.append(required(SPEC, _ONE_OF_FOUR))
    elif len(ways) > 1:
        shown = f"{{{', '.join(ways)}}}"
        found.append(invalid(SPEC, shown, f"{_ONE_OF_FOUR}, but multiple fields are set"))
    return found


_ONE_OF_FOUR = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
