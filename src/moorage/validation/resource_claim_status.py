"""Rules of the status of a claim: allocation, reservations, device statuses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.field_path import Path, root
from moorage.api.names import is_uuid
from moorage.api.resource.v1 import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from moorage.api.structs import NULL
from moorage.validation.device_fields import (
    validate_binding_conditions,
    validate_json_object,
    validate_opaque,
    validate_skip_node_operations,
    validate_toleration,
)
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, forbidden, invalid, required, too_many
from moorage.validation.field_rules import (
    declared_bytes,
    declared_driver_name,
    declared_enum,
    declared_list,
    declared_pool_name,
    declared_set,
    driver_name,
    duplicates,
    each,
    identity,
    label,
    pool_name,
)
from moorage.validation.gated_fields import GatedFields, gated_fields
from moorage.validation.metadata import validate_conditions
from moorage.validation.resource_claim_spec import (
    RequestNames,
    gated_claim_fields,
)
from moorage.validation.selectors import validate_node_selector
from moorage.validation.strategy import Context

STATUS = root("status")

RESERVED_FOR_MAX = 256
RESULTS_MAX = 32
RESULT_CONFIG_MAX = 64
DEVICE_CONDITIONS_MAX = 8
IPS_MAX = 16
INTERFACE_NAME_MAX_BYTES = 256
HARDWARE_ADDRESS_MAX_BYTES = 128

CONFIG_SOURCES = ("FromClaim", "FromClass")


def validate_claim_status(new: ResourceClaim, old: ResourceClaim) -> ErrorList:
    """Validate a new status against the claim and the old status."""
    return (
        _validate_reservations(new, old.status)
        + _validate_reports(new.status)
        + _validate_allocation(new, old.status)
    )


def _validate_reservations(claim: ResourceClaim, old: ResourceClaimStatus) -> ErrorList:
    status = claim.status
    path = STATUS.child("reservedFor")
    found = declared_set(
        status.reserved_for,
        RESERVED_FOR_MAX,
        _validate_consumer,
        lambda consumer: consumer.uid,
        path,
    )
    if not status.reserved_for:
        return found
    if status.allocation is None:
        found.append(forbidden(path, "may not be specified when `allocated` is not set"))
    elif claim.metadata.deletion_timestamp is not None and not set(status.reserved_for) <= set(
        old.reserved_for
    ):
        detail = (
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` "
            "are set"
        )
        found.append(forbidden(path, detail))
    return found


def _validate_consumer(consumer: ResourceClaimConsumerReference, path: Path) -> ErrorList:
    wanted = (("resource", consumer.resource), ("name", consumer.name), ("uid", consumer.uid))
    return [required(path.child(name)) for name, value in wanted if not value]


# --- the allocation -----------------------------------------------------------------------


def _validate_allocation(claim: ResourceClaim, old: ResourceClaimStatus) -> ErrorList:
    """Validate a new allocation; an existing one may be removed but not changed."""
    path = STATUS.child("allocation")
    allocation = claim.status.allocation
    if allocation is None:
        return []
    if old.allocation is not None:
        if semantic_equal(allocation, old.allocation):
            return []
        return [invalid(path, None, "field cannot be modified once set", declared=True)]
    return _validate_new_allocation(allocation, RequestNames(claim.spec.devices), path)


def _validate_new_allocation(
    allocation: AllocationResult, names: RequestNames, path: Path
) -> ErrorList:
    devices = path.child("devices")
    found = declared_list(
        allocation.devices.results,
        RESULTS_MAX,
        lambda result, place: _validate_result(result, names, place),
        devices.child("results"),
    )
    found += declared_list(
        allocation.devices.config,
        RESULT_CONFIG_MAX,
        lambda config, place: _validate_result_config(config, names, place),
        devices.child("config"),
    )
    if allocation.node_selector is not None:
        found += validate_node_selector(allocation.node_selector, path.child("nodeSelector"))
    return found


def _validate_result(
    result: DeviceRequestAllocationResult, names: RequestNames, path: Path
) -> ErrorList:
    found = names.validate(result.request, path.child("request"))
    found += declared_driver_name(result.driver, path.child("driver"))
    found += declared_pool_name(result.pool, path.child("pool"))
    found += label(result.device, path.child("device"))
    found += validate_binding_conditions(
        result.binding_conditions, result.binding_failure_conditions, path
    )
    found += each(result.tolerations, validate_toleration, path.child("tolerations"))
    found += _validate_share_id(result.share_id, path.child("shareID"))
    operations = path.child("skipNodeOperations")
    return found + validate_skip_node_operations(result.skip_node_operations, operations)


def _validate_result_config(
    config: DeviceAllocationConfiguration, names: RequestNames, path: Path
) -> ErrorList:
    source = path.child("source")
    if config.source:
        found = declared_enum(config.source, CONFIG_SOURCES, source)
    else:
        found = [required(source, declared=True)]
    found += names.validate_all(config.requests, path.child("requests"))
    return found + validate_opaque(config.opaque, path)


def _validate_share_id(share_id: str | None, path: Path) -> ErrorList:
    if share_id is None or is_uuid(share_id):
        return []
    detail = "must be a lowercase UUID in 8-4-4-4-12 format"
    return [invalid(path, share_id, detail, declared=True)]


# --- what drivers report ------------------------------------------------------------------


def _validate_reports(status: ResourceClaimStatus) -> ErrorList:
    path = STATUS.child("devices")
    allocation = status.allocation
    results = allocation.devices.results if allocation is not None else ()
    allocated = {(r.driver, r.pool, r.device, r.share_id) for r in results}
    found = each(
        status.devices, lambda device, place: _validate_report(device, allocated, place), path
    )
    found += duplicates(
        status.devices, lambda d: (d.driver, d.pool, d.device, d.share_id), path, declared=True
    )
    return found


def _validate_report(
    device: AllocatedDeviceStatus,
    allocated: set[tuple[str, str, str, str | None]],
    path: Path,
) -> ErrorList:
    found = driver_name(device.driver, path.child("driver"))
    found += pool_name(device.pool, path.child("pool"))
    found += label(device.device, path.child("device"))
    found += _validate_share_id(device.share_id, path.child("shareID"))
    if (device.driver, device.pool, device.device, device.share_id) not in allocated:
        named = {
            "Driver": device.driver,
            "Pool": device.pool,
            "Device": device.device,
            "ShareID": device.share_id or "",
        }
        found.append(invalid(path, named, "must be an allocated device in the claim"))
    conditions = device.conditions or ()
    if len(conditions) > DEVICE_CONDITIONS_MAX:
        found.append(too_many(path.child("conditions"), len(conditions), DEVICE_CONDITIONS_MAX))
    found += validate_conditions(conditions, path.child("conditions"))
    if device.data != NULL:
        found += validate_json_object(device.data, path.child("data"))
    if device.network_data is not None:
        found += _validate_network(device.network_data, path.child("networkData"))
    return found


def _validate_network(network: NetworkDeviceData, path: Path) -> ErrorList:
    name_path = path.child("interfaceName")
    found = declared_bytes(network.interface_name, INTERFACE_NAME_MAX_BYTES, name_path)
    address_path = path.child("hardwareAddress")
    found += declared_bytes(network.hardware_address, HARDWARE_ADDRESS_MAX_BYTES, address_path)
    return found + declared_set(
        network.ips, IPS_MAX, _validate_interface_address, identity, path.child("ips")
    )


def _validate_interface_address(text: str, path: Path) -> ErrorList:
    """Validate an address in CIDR form, as Go would print it."""
    canonical = _canonical_interface_address(text)
    if canonical is None:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return [invalid(path, text, detail)]
    if canonical != text:
        return [invalid(path, text, f'must be in canonical form ("{canonical}")')]
    return []


def _canonical_interface_address(text: str) -> str | None:
    # Go reads numbers with any number of leading zeros here, and octets never as octal.
    address_text, slash, length_text = _leading_zeros.sub("", text).partition("/")
    if not slash or not length_text.isascii() or not length_text.isdigit() or len(length_text) > 3:
        return None
    length = int(length_text)
    try:
        address = ipaddress.ip_address(address_text)
    except ValueError:
        return None
    if length > address.max_prefixlen or "%" in address_text:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        # Go prints mapped addresses as IPv4 and shortens only lengths that cover the prefix.
        return f"{address.ipv4_mapped}/{length - 96 if length > 32 else length}"
    return f"{address}/{length}"


_leading_zeros = re.compile("(?<![0-9A-Fa-f])0+(?=[0-9A-Fa-f])")


def drop_deallocated_device_statuses(
    new: ResourceClaimStatus, old: ResourceClaimStatus
) -> ResourceClaimStatus:
    """Return the status without device statuses of devices that it deallocates."""
    freed = set(map(device_key, allocation_results(old))) - set(
        map(device_key, allocation_results(new))
    )
    kept = tuple(device for device in new.devices if device_key(device) not in freed)
    return replace(new, devices=kept)


@cache
def _gated() -> tuple[GatedFields[ResourceClaimStatus], ...]:
    return gated_fields(ResourceClaimStatus, "resource/v1.ResourceClaimStatus")


def drop_disabled_status_fields(
    status: ResourceClaimStatus, old: ResourceClaim, context: Context
) -> ResourceClaimStatus:
    """Return the status without fields of disabled features that the old claim does not use."""
    for gated in _gated():
        if gated.is_dropped(status, old.status, context.gates) and not any(
            in_spec.gates == gated.gates and in_spec.is_used(old.spec)
            for in_spec in gated_claim_fields()
        ):
            status = gated.without(status)
    return status


def allocation_results(status: ResourceClaimStatus) -> tuple[DeviceRequestAllocationResult, ...]:
    """Return the devices of the allocation, if there is one."""
    return status.allocation.devices.results if status.allocation is not None else ()


def with_results(
    status: ResourceClaimStatus, results: Iterable[DeviceRequestAllocationResult]
) -> ResourceClaimStatus:
    """Return the status with other devices in its allocation."""
    assert status.allocation is not None
    devices = replace(status.allocation.devices, results=tuple(results))
    return replace(status, allocation=replace(status.allocation, devices=devices))


class _DeviceKey(NamedTuple):
    driver: str
    pool: str
    device: str
    share_id: str


def device_key(
    device: DeviceRequestAllocationResult | AllocatedDeviceStatus,
) -> _DeviceKey:
    """Return the identity of an allocated device."""
    return _DeviceKey(device.driver, device.pool, device.device, device.share_id or "")
