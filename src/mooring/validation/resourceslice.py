"""How ResourceSlices are admitted."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from mooring.api.fieldpath import Path, root
from mooring.api.gates import Gate
from mooring.api.resource.v1 import (
    Device,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from mooring.api.timestamp import Timestamp
from mooring.validation import slicefeatures
from mooring.validation.checks import (
    declared_fully_qualified_name,
    declared_set,
    driver_name,
    duplicates,
    each,
    node_name,
    pool_name,
    qualified_name,
)
from mooring.validation.context import Context
from mooring.validation.devices import (
    check_skip_node_operations,
)
from mooring.validation.devicetaintrule import default_taint
from mooring.validation.equality import same
from mooring.validation.errors import (
    Errors,
    forbidden,
    invalid,
    only_declared,
    quoted,
    required,
    too_many,
)
from mooring.validation.metadata import (
    IMMUTABLE,
    check_metadata,
    check_metadata_update,
    next_generation,
)
from mooring.validation.nodeselectors import check_node_selector
from mooring.validation.plaindevices import are_plainly_good, name_no_nodes
from mooring.validation.slicedevice import (
    check_counter_set,
    check_device,
    check_device_nodes,
)
from mooring.validation.strategy import Strategy

SPEC = root("spec")
DEVICES = SPEC.child("devices")
DRIVER = SPEC.child("driver")
POOL = SPEC.child("pool")
NODE_NAME = SPEC.child("nodeName")
SKIP_NODE_OPERATIONS = SPEC.child("skipNodeOperations")

DEVICES_MAX = 128
DEVICES_MAX_WITH_ADVANCED_FEATURES = 64
COUNTER_SETS_MAX = 8

_ONE_OF_FOUR = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)


class ResourceSliceStrategy(Strategy[ResourceSlice]):
    """Admission of ResourceSlices."""

    def default(self, value: ResourceSlice, api_version: str, now: Timestamp) -> ResourceSlice:  # noqa: ARG002
        """Note when taints came."""
        devices = value.spec.devices or ()
        if not any(taint.time_added is None for device in devices for taint in device.taints):
            return value
        dated = tuple(
            replace(device, taints=tuple(default_taint(taint, now) for taint in device.taints))
            for device in devices
        )
        return replace(value, spec=replace(value.spec, devices=dated))

    def disabled(
        self, new: ResourceSlice, old: ResourceSlice | None, context: Context
    ) -> Iterable[Gate]:
        """Return the gates whose fields the slice loses."""
        return slicefeatures.disabled(new.spec, old.spec if old is not None else None, context)

    def prepare_create(self, new: ResourceSlice, context: Context) -> ResourceSlice:
        """Start counting generations; drop disabled fields."""
        metadata = replace(new.metadata, generation=1)
        spec = slicefeatures.drop_disabled(new.spec, None, context)
        return replace(new, metadata=metadata, spec=spec)

    def check_create(self, new: ResourceSlice, context: Context) -> Errors:
        """Check everything."""
        return check_metadata(new.metadata, namespaced=False) + _check_spec(new.spec, None, context)

    def prepare_update(
        self, new: ResourceSlice, old: ResourceSlice, context: Context
    ) -> ResourceSlice:
        """Drop disabled fields; a changed spec is a new generation."""
        if not same(new.spec, old.spec):
            generation = next_generation(old.metadata.generation)
            new = replace(new, metadata=replace(new.metadata, generation=generation))
        return replace(new, spec=slicefeatures.drop_disabled(new.spec, old.spec, context))

    def check_update(self, new: ResourceSlice, old: ResourceSlice, context: Context) -> Errors:
        """Check everything but capacity and taints that stay as they were."""
        found = check_metadata_update(new.metadata, old.metadata)
        return found + _check_spec(new.spec, old.spec, context)

    def warnings(self, new: ResourceSlice) -> list[str]:
        """Warn of capitals in the driver's name."""
        driver = new.spec.driver
        if driver == driver.lower():
            return []
        fact = f"{quoted(driver)} contains uppercase characters"
        return [f"spec.driver: driver names should be lowercase; {fact}"]


# --- the slice ----------------------------------------------------------------------------


def _check_spec(spec: ResourceSliceSpec, old: ResourceSliceSpec | None, context: Context) -> Errors:
    found = driver_name(spec.driver, DRIVER)
    found += _check_pool(spec.pool, POOL)
    if old is not None:
        found += _check_identity(spec, old)
    found += _check_nodes(spec)
    if spec.shared_counters is not None and spec.devices is not None:
        found.append(invalid(SPEC, "", "only one of `sharedCounters` or `devices` is allowed"))
    if spec.devices:
        found += _check_devices(spec, old, context)
    if spec.shared_counters:
        found += declared_set(
            spec.shared_counters,
            COUNTER_SETS_MAX,
            check_counter_set,
            lambda counter_set: counter_set.name,
            SPEC.child("sharedCounters"),
        )
    if spec.partition_type_attribute is not None:
        found += _check_partition_type(spec, spec.partition_type_attribute, context)
    return found + check_skip_node_operations(spec.skip_node_operations, SKIP_NODE_OPERATIONS)


def _check_pool(pool: ResourcePool, path: Path) -> Errors:
    found = pool_name(pool.name, path.child("name"))
    if pool.resource_slice_count <= 0:
        place = path.child("resourceSliceCount")
        found.append(invalid(place, pool.resource_slice_count, "must be greater than zero"))
    if pool.generation < 0:
        detail = "must be greater than or equal to zero"
        found.append(invalid(path.child("generation"), pool.generation, detail))
    return found


def _check_identity(spec: ResourceSliceSpec, old: ResourceSliceSpec) -> Errors:
    """Check that a slice stays with its driver, pool and node."""
    return [
        invalid(path, new_value, IMMUTABLE)
        for path, new_value, old_value in (
            (POOL.child("name"), spec.pool.name, old.pool.name),
            (DRIVER, spec.driver, old.driver),
            (NODE_NAME, spec.node_name, old.node_name),
        )
        if new_value != old_value
    ]


def _check_nodes(spec: ResourceSliceSpec) -> Errors:
    """Check that the slice says in exactly one way which nodes it is for."""
    found: Errors = []
    ways: list[str] = []
    if spec.node_name:
        ways.append("`nodeName`")
        found += node_name(spec.node_name, NODE_NAME)
    elif spec.node_name is not None:
        detail = "must be either unset or set to a non-empty string"
        found.append(invalid(NODE_NAME, spec.node_name, detail))
    if spec.node_selector is not None:
        ways.append("`nodeSelector`")
        path = SPEC.child("nodeSelector")
        found += check_node_selector(spec.node_selector, path)
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


def _check_devices(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, context: Context
) -> Errors:
    devices = spec.devices or ()
    devices_max = DEVICES_MAX
    if len(devices) > DEVICES_MAX_WITH_ADVANCED_FEATURES and _has_advanced_features(devices):
        devices_max = DEVICES_MAX_WITH_ADVANCED_FEATURES
    if len(devices) > devices_max:
        return [too_many(DEVICES, len(devices), devices_max), *_declared_of(devices, context)]
    if not spec.per_device_node_selection and name_no_nodes(devices) and are_plainly_good(devices):
        return []
    before = {device.name: device for device in reversed((old and old.devices) or ())}
    found: Errors = []
    for position, device in enumerate(devices):
        path = DEVICES.index(position)
        if not are_plainly_good((device,)):
            found += check_device(device, before.get(device.name), path, context)
        found += check_device_nodes(device, path, per_device=spec.per_device_node_selection)
    return found + duplicates(devices, lambda device: device.name, DEVICES)


def _declared_of(devices: tuple[Device, ...], context: Context) -> Errors:
    """Return only what the types declare: those rules hold for lists that are too long, too."""
    return only_declared(
        each(devices, lambda device, path: check_device(device, None, path, context), DEVICES)
    )


def _has_advanced_features(devices: tuple[Device, ...]) -> bool:
    return any(
        device.taints
        or device.consumes_counters
        or any(slicefeatures.is_list(attribute) for attribute in device.attributes.values())
        for device in devices
    )


def _check_partition_type(spec: ResourceSliceSpec, name: str, context: Context) -> Errors:
    """Check that devices which consume counters say of which partition type they are."""
    path = SPEC.child("partitionTypeAttribute")
    if not context.enabled(Gate.DRA_PARTITIONABLE_DEVICES_TYPE):
        found: Errors = [forbidden(path, "", declared=True)]
    else:
        found = declared_fully_qualified_name(name, path)
    found = only_declared(found)
    devices = spec.devices or ()
    if not any(device.consumes_counters for device in devices):
        detail = "may only be set on a slice which declares devices that consume counters"
        return [*found, invalid(path, name, detail)]
    if "/" not in name or qualified_name(name, path):
        return found  # No device can carry a name that is not one.
    bare = name.removeprefix(f"{spec.driver}/")
    for position, device in enumerate(devices):
        if not device.consumes_counters:
            continue
        place = DEVICES.index(position).child("attributes").key(name)
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
