"""The strategy of ResourcePoolStatusRequests."""

from __future__ import annotations

from msgspec.structs import replace

from moorage.api import names
from moorage.api.field_path import Path, root
from moorage.api.gates import Gate
from moorage.api.names import BYTES
from moorage.api.resource.v1alpha3 import (
    PartitionTypeStatus,
    PoolStatus,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
    ShareableCapacityStatus,
    ShareableSummaryStatus,
)
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import (
    ErrorList,
    forbidden,
    invalid,
    only_declared,
    required,
    too_many,
)
from moorage.validation.field_rules import (
    declared_bytes,
    declared_driver_name,
    declared_fully_qualified_name,
    declared_list,
    declared_pool_format,
    declared_pool_name,
    duplicates,
    each_invalid,
)
from moorage.validation.metadata import (
    IMMUTABLE,
    validate_conditions,
)
from moorage.validation.strategy import Context, ObjectStrategy

SPEC = root("spec")
STATUS = root("status")

LIMIT_DEFAULT = 100
LIMIT_MIN = 1
LIMIT_MAX = 1000
POOLS_MAX = 1000
CONDITIONS_MAX = 10
SUMMARY_MAX = 32
VALIDATION_ERROR_MAX_BYTES = 256


class ResourcePoolStatusRequestStrategy(ObjectStrategy[ResourcePoolStatusRequest]):
    """The strategy of ResourcePoolStatusRequests: spec and status are set once."""

    allow_unconditional_update = False
    namespaced = False

    def default(
        self,
        value: ResourcePoolStatusRequest,
        api_version: str,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> ResourcePoolStatusRequest:
        """Set the limit."""
        if value.spec.limit is not None:
            return value
        return replace(value, spec=replace(value.spec, limit=LIMIT_DEFAULT))

    def drop_disabled_fields(
        self,
        new: ResourcePoolStatusRequest,
        old: ResourcePoolStatusRequest | None,
        context: Context,
    ) -> ResourcePoolStatusRequest:
        """Drop the partition type while its feature is off."""
        is_in_use = old is not None and old.spec.default_partition_type_attribute is not None
        if context.enabled(Gate.DRA_PARTITIONABLE_DEVICES_TYPE) or is_in_use:
            return new
        return replace(new, spec=replace(new.spec, default_partition_type_attribute=None))

    def validate(self, new: ResourcePoolStatusRequest, context: Context) -> ErrorList:
        """Validate everything."""
        return self.validate_metadata(new) + only_declared(_validate_spec(new.spec, context))

    def validate_changes(
        self, new: ResourcePoolStatusRequest, old: ResourcePoolStatusRequest
    ) -> ErrorList:
        """Validate that the spec is unchanged."""
        if semantic_equal(new.spec, old.spec):
            return []
        return [invalid(SPEC, None, IMMUTABLE, declared=True)]

    def validate_status(
        self, new: ResourcePoolStatusRequest, old: ResourcePoolStatusRequest
    ) -> ErrorList:
        """Validate a first status; once set it may not change."""
        found: ErrorList = []
        is_changed = not semantic_equal(new.status, old.status)
        if old.status is not None:
            if is_changed:
                found.append(invalid(STATUS, new.status, IMMUTABLE))
        elif new.status is not None:
            found += validate_conditions(new.status.conditions, STATUS.child("conditions"))
        if new.status is not None and is_changed:
            found += only_declared(_validate_status(new.status))
        return found


def _validate_spec(spec: ResourcePoolStatusRequestSpec, context: Context) -> ErrorList:
    driver = SPEC.child("driver")
    if not (context.extensions and "/" in spec.driver):  # matches no driver, so it finds no pool
        found = declared_driver_name(spec.driver, driver, length_max=None)
    else:
        found = []
    if spec.pool_name is not None:
        found += declared_pool_format(spec.pool_name, SPEC.child("poolName"))
    if spec.limit is not None:
        found += _validate_range(spec.limit, LIMIT_MIN, LIMIT_MAX, SPEC.child("limit"))
    attribute = spec.default_partition_type_attribute
    if attribute is not None:
        path = SPEC.child("defaultPartitionTypeAttribute")
        if context.enabled(Gate.DRA_PARTITIONABLE_DEVICES_TYPE):
            found += declared_fully_qualified_name(attribute, path)
        else:
            found.append(forbidden(path, "", declared=True))
    return found


def _validate_status(status: ResourcePoolStatusRequestStatus) -> ErrorList:
    found = _validate_count(status.pool_count, STATUS.child("poolCount"), is_required=True)
    found += declared_list(status.pools, POOLS_MAX, _validate_pool, STATUS.child("pools"))
    if len(status.conditions) > CONDITIONS_MAX:
        path = STATUS.child("conditions")
        found.append(too_many(path, len(status.conditions), CONDITIONS_MAX, declared=True))
    return found


def _validate_pool(pool: PoolStatus, path: Path) -> ErrorList:
    found = declared_driver_name(pool.driver, path.child("driver"), length_max=None)
    found += declared_pool_name(pool.pool_name, path.child("poolName"))
    found += _validate_count(pool.generation or None, path.child("generation"), is_required=True)
    found += _validate_count(pool.resource_slice_count, path.child("resourceSliceCount"), minimum=1)
    for name, count in (
        ("totalDevices", pool.total_devices),
        ("allocatedDevices", pool.allocated_devices),
        ("availableDevices", pool.available_devices),
        ("unavailableDevices", pool.unavailable_devices),
    ):
        found += _validate_count(count, path.child(name))
    if pool.node_name is not None:
        messages = names.dns1123_subdomain(pool.node_name, unit=BYTES)
        found += each_invalid(path.child("nodeName"), pool.node_name, messages, declared=True)
    if pool.validation_error is not None:
        place = path.child("validationError")
        found += declared_bytes(pool.validation_error, VALIDATION_ERROR_MAX_BYTES, place)
    found += _validate_partitions(pool.partition_summary, path.child("partitionSummary"))
    if pool.shareable_summary is not None:
        found += _validate_shareable(pool.shareable_summary, path.child("shareableSummary"))
    return found


def _validate_partitions(summary: tuple[PartitionTypeStatus, ...], path: Path) -> ErrorList:
    found = declared_list(summary, SUMMARY_MAX, _validate_partition, path)
    if len(summary) <= SUMMARY_MAX:
        found += duplicates(summary, lambda p: (p.attribute, p.type), path, declared=True)
    return found


def _validate_partition(partition: PartitionTypeStatus, path: Path) -> ErrorList:
    found = _validate_given(partition.attribute, path.child("attribute"))
    found += _validate_given(partition.type, path.child("type"))
    found += _validate_count(partition.total, path.child("total"), is_required=True)
    return found + _validate_count(
        partition.allocatable, path.child("allocatable"), is_required=True
    )


def _validate_shareable(summary: ShareableSummaryStatus, path: Path) -> ErrorList:
    fully, partially = summary.fully_available_devices, summary.partially_available_devices
    found = _validate_count(fully, path.child("fullyAvailableDevices"), is_required=True)
    found += _validate_count(partially, path.child("partiallyAvailableDevices"), is_required=True)
    return found + declared_list(
        summary.capacity, SUMMARY_MAX, _validate_capacity, path.child("capacity")
    )


def _validate_capacity(capacity: ShareableCapacityStatus, path: Path) -> ErrorList:
    found = _validate_given(capacity.name, path.child("name"))
    for name, amount in (
        ("total", capacity.total),
        ("consumed", capacity.consumed),
        ("available", capacity.available),
    ):
        if amount is None:
            found.append(required(path.child(name), declared=True))
    return found


def _validate_given(value: str, path: Path) -> ErrorList:
    return [] if value else [required(path, declared=True)]


def _validate_count(
    count: int | None, path: Path, *, minimum: int = 0, is_required: bool = False
) -> ErrorList:
    if count is None:
        return [required(path, declared=True)] if is_required else []
    return _validate_range(count, minimum, None, path)


def _validate_range(value: int, minimum: int, maximum: int | None, path: Path) -> ErrorList:
    if value < minimum:
        detail = f"must be greater than or equal to {minimum}"
        return [invalid(path, value, detail, declared=True)]
    if maximum is not None and value > maximum:
        return [invalid(path, value, f"must be less than or equal to {maximum}", declared=True)]
    return []
