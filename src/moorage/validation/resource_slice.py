"""The strategy of ResourceSlices."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from msgspec.structs import replace

from moorage.api.field_path import Path, root
from moorage.api.gates import Gate
from moorage.api.resource.v1 import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from moorage.kit.go_quote import go_quote
from moorage.validation.device_fields import default_taint, validate_skip_node_operations
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, invalid, only_declared, too_many
from moorage.validation.field_rules import declared_set, driver_name, duplicates, each, pool_name
from moorage.validation.gated_fields import (
    GatedFields,
    disabled_gates,
    drop_disabled,
    gated_fields,
)
from moorage.validation.metadata import (
    IMMUTABLE,
    next_generation,
    validate_metadata,
    validate_metadata_update,
)
from moorage.validation.plain_devices import are_plainly_good, name_no_nodes
from moorage.validation.slice_device import (
    is_list,
    validate_counter_set,
    validate_device,
    validate_device_nodes,
    validate_partition_type,
    validate_slice_nodes,
)
from moorage.validation.strategy import Context, Strategy

SPEC = root("spec")
DEVICES = SPEC.child("devices")
DRIVER = SPEC.child("driver")
POOL = SPEC.child("pool")
NODE_NAME = SPEC.child("nodeName")
SKIP_NODE_OPERATIONS = SPEC.child("skipNodeOperations")

DEVICES_MAX = 128
DEVICES_MAX_WITH_ADVANCED_FEATURES = 64
COUNTER_SETS_MAX = 8


class ResourceSliceStrategy(Strategy[ResourceSlice]):
    """The strategy of ResourceSlices."""

    def default(
        self,
        value: ResourceSlice,
        api_version: str,  # noqa: ARG002
        context: Context,
    ) -> ResourceSlice:
        """Set timeAdded of taints."""
        devices = value.spec.devices or ()
        if not any(taint.time_added is None for device in devices for taint in device.taints):
            return value
        now = context.now
        dated = tuple(
            replace(device, taints=tuple(default_taint(taint, now) for taint in device.taints))
            for device in devices
        )
        return replace(value, spec=replace(value.spec, devices=dated))

    def disabled_gates(
        self, new: ResourceSlice, old: ResourceSlice | None, context: Context
    ) -> Iterable[Gate]:
        """Return the disabled gates whose fields the slice loses."""
        old_spec = old.spec if old is not None else None
        return disabled_gates(new.spec, old_spec, context.gates, _gated())

    def prepare_for_create(self, new: ResourceSlice, context: Context) -> ResourceSlice:
        """Start counting generations; drop disabled fields."""
        metadata = replace(new.metadata, generation=1)
        spec = drop_disabled_slice_fields(new.spec, None, context)
        return replace(new, metadata=metadata, spec=spec)

    def validate(self, new: ResourceSlice, context: Context) -> ErrorList:
        """Validate everything."""
        return validate_metadata(new.metadata, namespaced=False) + _validate_spec(
            new.spec, None, context
        )

    def prepare_for_update(
        self, new: ResourceSlice, old: ResourceSlice, context: Context
    ) -> ResourceSlice:
        """Drop disabled fields; a changed spec is a new generation."""
        if not semantic_equal(new.spec, old.spec):
            generation = next_generation(old.metadata.generation)
            new = replace(new, metadata=replace(new.metadata, generation=generation))
        return replace(new, spec=drop_disabled_slice_fields(new.spec, old.spec, context))

    def validate_update(
        self, new: ResourceSlice, old: ResourceSlice, context: Context
    ) -> ErrorList:
        """Validate everything but unchanged capacity and taints."""
        found = validate_metadata_update(new.metadata, old.metadata)
        return found + _validate_spec(new.spec, old.spec, context)

    def warnings_on_create(self, new: ResourceSlice) -> list[str]:
        """Warn of uppercase characters in the driver's name."""
        driver = new.spec.driver
        if driver == driver.lower():
            return []
        fact = f"{go_quote(driver)} contains uppercase characters"
        return [f"spec.driver: driver names should be lowercase; {fact}"]


# --- the slice ----------------------------------------------------------------------------


def _validate_spec(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, context: Context
) -> ErrorList:
    found = driver_name(spec.driver, DRIVER)
    found += _validate_pool(spec.pool, POOL)
    if old is not None:
        found += _validate_identity(spec, old)
    found += validate_slice_nodes(spec)
    if spec.shared_counters is not None and spec.devices is not None:
        found.append(invalid(SPEC, "", "only one of `sharedCounters` or `devices` is allowed"))
    if spec.devices:
        found += _validate_devices(spec, old, context)
    if spec.shared_counters:
        found += declared_set(
            spec.shared_counters,
            COUNTER_SETS_MAX,
            validate_counter_set,
            lambda counter_set: counter_set.name,
            SPEC.child("sharedCounters"),
        )
    if spec.partition_type_attribute is not None:
        found += validate_partition_type(spec, spec.partition_type_attribute, context)
    return found + validate_skip_node_operations(spec.skip_node_operations, SKIP_NODE_OPERATIONS)


def _validate_pool(pool: ResourcePool, path: Path) -> ErrorList:
    found = pool_name(pool.name, path.child("name"))
    if pool.resource_slice_count <= 0:
        place = path.child("resourceSliceCount")
        found.append(invalid(place, pool.resource_slice_count, "must be greater than zero"))
    if pool.generation < 0:
        detail = "must be greater than or equal to zero"
        found.append(invalid(path.child("generation"), pool.generation, detail))
    return found


def _validate_identity(spec: ResourceSliceSpec, old: ResourceSliceSpec) -> ErrorList:
    """Validate that driver, pool and node are unchanged."""
    return [
        invalid(path, new_value, IMMUTABLE)
        for path, new_value, old_value in (
            (POOL.child("name"), spec.pool.name, old.pool.name),
            (DRIVER, spec.driver, old.driver),
            (NODE_NAME, spec.node_name, old.node_name),
        )
        if new_value != old_value
    ]


def _validate_devices(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, context: Context
) -> ErrorList:
    devices = spec.devices or ()
    devices_max = DEVICES_MAX
    if len(devices) > DEVICES_MAX_WITH_ADVANCED_FEATURES and _has_advanced_features(devices):
        devices_max = DEVICES_MAX_WITH_ADVANCED_FEATURES
    if len(devices) > devices_max:
        return [too_many(DEVICES, len(devices), devices_max), *_declared_of(devices, context)]
    if not spec.per_device_node_selection and name_no_nodes(devices) and are_plainly_good(devices):
        return []
    before = {device.name: device for device in reversed((old and old.devices) or ())}
    found: ErrorList = []
    for position, device in enumerate(devices):
        path = DEVICES.index(position)
        if not are_plainly_good((device,)):
            found += validate_device(device, before.get(device.name), path, context)
        found += validate_device_nodes(device, path, per_device=spec.per_device_node_selection)
    return found + duplicates(devices, lambda device: device.name, DEVICES)


def _declared_of(devices: tuple[Device, ...], context: Context) -> ErrorList:
    """Return the errors of declared rules only, which also hold for lists that are too long."""
    return only_declared(
        each(devices, lambda device, path: validate_device(device, None, path, context), DEVICES)
    )


def _has_advanced_features(devices: tuple[Device, ...]) -> bool:
    return any(
        device.taints
        or device.consumes_counters
        or any(is_list(attribute) for attribute in device.attributes.values())
        for device in devices
    )


# --- fields of disabled features ----------------------------------------------------------

Spec = ResourceSliceSpec

# The order in which gates are reported.
_ORDER = (
    Gate.DRA_DEVICE_TAINTS,
    Gate.DRA_PARTITIONABLE_DEVICES,
    Gate.DRA_DEVICE_BINDING_CONDITIONS,
    Gate.DRA_CONSUMABLE_CAPACITY,
    Gate.DRA_DEVICE_COMPATIBILITY_GROUPS,
    Gate.DRA_NODE_ALLOCATABLE_RESOURCES,
    Gate.DRA_LIST_TYPE_ATTRIBUTES,
    Gate.DRA_PARTITIONABLE_DEVICES_TYPE,
    Gate.DRA_OPTIONAL_NODE_OPERATIONS,
)


@cache
def _gated() -> tuple[GatedFields[Spec], ...]:
    return gated_fields(Spec, "resource/v1.ResourceSliceSpec", _ORDER)


def drop_disabled_slice_fields(spec: Spec, old: Spec | None, context: Context) -> Spec:
    """Return the spec without fields of disabled features that the old one does not use."""
    if old is not None and old.shared_counters == ():
        old = replace(old, shared_counters=None)  # An empty list uses nothing.
    return drop_disabled(spec, old, context.gates, _gated())


def dropped(sent: Spec, stored: Spec) -> list[Gate]:
    """Return the gates that are probably off on a server that stored a spec without some fields."""
    return [used.gates[0] for used in _gated() if used.is_used(sent) and not used.is_used(stored)]
