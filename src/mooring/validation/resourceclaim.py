"""How ResourceClaims are admitted: the spec once and for ever, the status as it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from mooring.api.fieldpath import root
from mooring.api.gates import Gate
from mooring.api.meta import ObjectMeta
from mooring.api.resource import v1beta1
from mooring.api.resource.v1 import (
    ADMIN_NAMESPACE_LABEL,
    AllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from mooring.api.timestamp import Timestamp
from mooring.validation import claimfeatures
from mooring.validation.claimfeatures import (
    drop_disabled,
    uses_admin_access,
    uses_consumable_capacity,
)
from mooring.validation.claimspec import check_claim_spec
from mooring.validation.claimstatus import check_claim_status
from mooring.validation.context import Context
from mooring.validation.equality import same
from mooring.validation.errors import Errors, forbidden, invalid
from mooring.validation.metadata import IMMUTABLE, check_metadata, check_metadata_update
from mooring.validation.strategy import Strategy

SPEC = root("spec")
STATUS = root("status")


class ResourceClaimStrategy(Strategy[ResourceClaim]):
    """Admission of ResourceClaims."""

    def default(self, value: ResourceClaim, api_version: str, now: Timestamp) -> ResourceClaim:  # noqa: ARG002
        """Set mode, count and toleration operators."""
        spec = default_claim_spec(value.spec, api_version)
        value = value if spec is value.spec else replace(value, spec=spec)
        return _default_status(value)

    def disabled(
        self, new: ResourceClaim, old: ResourceClaim | None, context: Context
    ) -> Iterable[Gate]:
        """Return the gates whose fields the claim loses."""
        return claimfeatures.disabled(new.spec, old.spec if old is not None else None, context)

    def prepare_create(self, new: ResourceClaim, context: Context) -> ResourceClaim:
        """Drop the status and disabled fields."""
        new = replace(new, status=ResourceClaimStatus())
        return replace(new, spec=drop_disabled(new.spec, None, context))

    def check_create(self, new: ResourceClaim, context: Context) -> Errors:
        """Check everything."""
        found = check_admin_access(new.spec.devices, context)
        found += check_metadata(new.metadata, namespaced=True)
        return found + check_claim_spec(new.spec, SPEC, context)

    def prepare_update(
        self, new: ResourceClaim, old: ResourceClaim, context: Context
    ) -> ResourceClaim:
        """Keep the status; drop disabled fields that were not in use."""
        return replace(new, status=old.status, spec=drop_disabled(new.spec, old.spec, context))

    def check_update(self, new: ResourceClaim, old: ResourceClaim, context: Context) -> Errors:  # noqa: ARG002
        """Check the metadata; of the spec only that it is as it was."""
        found = check_metadata(new.metadata, namespaced=True)
        found += check_metadata_update(new.metadata, old.metadata)
        if not same(new.spec, old.spec):
            found.append(invalid(SPEC, None, IMMUTABLE, declared=True))
        return found

    def prepare_status(
        self, new: ResourceClaim, old: ResourceClaim, context: Context
    ) -> ResourceClaim:
        """Keep spec and metadata; drop disabled fields and reports on devices given back."""
        status = _drop_disabled_status(new.status, old, context)
        if context.enabled(Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS) or old.status.devices:
            status = _drop_reports_of_freed_devices(status, old.status)
        metadata = metadata_for_status(new.metadata, old.metadata)
        return replace(new, spec=old.spec, metadata=metadata, status=status)

    def check_status(self, new: ResourceClaim, old: ResourceClaim, context: Context) -> Errors:
        """Check who may write what, and what is written."""
        found = _check_admin_access_status(new.status, old.status, context)
        if context.enabled(Gate.DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION):
            found += _check_authorization(new.status, old.status, context)
        found += check_metadata_update(new.metadata, old.metadata)
        return found + check_claim_status(new, old)


def metadata_for_status(new: ObjectMeta, old: ObjectMeta) -> ObjectMeta:
    """Return the metadata that an update of the status may leave behind."""
    return replace(
        new,
        deletion_timestamp=old.deletion_timestamp,
        generation=old.generation,
        self_link=old.self_link,
        labels=old.labels,
        annotations=old.annotations,
        finalizers=old.finalizers,
        owner_references=old.owner_references,
    )


# --- defaults -----------------------------------------------------------------------------


def default_claim_spec(spec: ResourceClaimSpec, api_version: str) -> ResourceClaimSpec:
    """Return the spec with mode, count and toleration operators set."""
    requests = spec.devices.requests
    if not requests:
        return spec
    defaulted = tuple(_default_request(request, api_version) for request in requests)
    return replace(spec, devices=replace(spec.devices, requests=defaulted))


def _default_request(request: DeviceRequest, api_version: str) -> DeviceRequest:
    exactly = request.exactly
    if exactly is not None:
        # In v1beta1 a request without a class may be one with alternatives.
        by_itself = api_version != v1beta1.API_VERSION or exactly.device_class_name != ""
        exactly = _default_tolerations(_default_amount(exactly) if by_itself else exactly)
    alternatives = tuple(
        _default_tolerations(_default_amount(sub)) for sub in request.first_available
    )
    return replace(request, exactly=exactly, first_available=alternatives)


Ask = TypeVar("Ask", ExactDeviceRequest, DeviceSubRequest)


def _default_amount(ask: Ask) -> Ask:
    mode = ask.allocation_mode or "ExactCount"
    count = 1 if mode == "ExactCount" and ask.count == 0 else ask.count
    return replace(ask, allocation_mode=mode, count=count)


def _default_tolerations(ask: Ask) -> Ask:
    if not ask.tolerations:
        return ask
    return replace(ask, tolerations=default_tolerations(ask.tolerations))


def default_tolerations(tolerations: tuple[DeviceToleration, ...]) -> tuple[DeviceToleration, ...]:
    """Return the tolerations, each with an operator."""
    return tuple(t if t.operator else replace(t, operator="Equal") for t in tolerations)


def _default_status(claim: ResourceClaim) -> ResourceClaim:
    allocation = claim.status.allocation
    if allocation is None or not any(r.tolerations for r in allocation.devices.results):
        return claim
    results = tuple(
        replace(result, tolerations=default_tolerations(result.tolerations))
        for result in allocation.devices.results
    )
    return replace(claim, status=_with_results(claim.status, results))


# --- who may ------------------------------------------------------------------------------

ADMIN_LABEL_MISSING = (
    f"admin access to devices requires the `{ADMIN_NAMESPACE_LABEL}: true` label on the "
    "containing namespace"
)


def check_admin_access(claim: DeviceClaim, context: Context) -> Errors:
    """Check that only claims in an admin namespace ask for admin access."""
    if context.namespace_is_admin:
        return []
    for position, request in enumerate(claim.requests or ()):
        if request.exactly is not None and request.exactly.admin_access:
            # Kubernetes names this place also for templates and leaves out `exactly`.
            place = SPEC.child("devices", "requests").index(position).child("adminAccess")
            return [forbidden(place, ADMIN_LABEL_MISSING)]
    return []


def _check_admin_access_status(
    new: ResourceClaimStatus, old: ResourceClaimStatus, context: Context
) -> Errors:
    if context.namespace_is_admin or any(result.admin_access for result in _results(old)):
        return []
    for position, result in enumerate(_results(new)):
        if result.admin_access:
            results = STATUS.child("allocation", "devices", "results")
            return [forbidden(results.index(position).child("adminAccess"), ADMIN_LABEL_MISSING)]
    return []


def _check_authorization(
    new: ResourceClaimStatus, old: ResourceClaimStatus, context: Context
) -> Errors:
    found: Errors = []
    is_bound_anew = not same(new.allocation, old.allocation) or not same(
        new.reserved_for, old.reserved_for
    )
    if is_bound_anew and (reason := context.authorizer.refuse_binding()):
        detail = (
            "changing status.allocation or status.reservedFor requires "
            f'resource="resourceclaims/binding", verb="{context.verb}" permission: {reason}'
        )
        found.append(forbidden(STATUS.child("allocation"), detail))
    if not context.enabled(Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS) or new.allocation is None:
        return found
    node = _node_of(new.allocation)
    for driver in sorted(_drivers_with_changed_reports(new, old)):
        if refused := context.authorizer.refuse_driver(driver, node=node):
            detail = (
                'changing status.devices requires resource="resourceclaims/driver", '
                f'verb="[{" ".join(refused.verbs)}]" permission: {refused.reason}'
            )
            found.append(forbidden(STATUS.child("devices"), detail))
    return found


def _drivers_with_changed_reports(new: ResourceClaimStatus, old: ResourceClaimStatus) -> set[str]:
    before = {_device_of(device): device for device in old.devices}
    after = {_device_of(device): device for device in new.devices}
    return {
        key.driver
        for key in before.keys() | after.keys()
        if not (key in before and key in after and same(before[key], after[key]))
    }


def _node_of(allocation: AllocationResult) -> str | None:
    """Return the one node that an allocation is pinned to by name."""
    selector = allocation.node_selector
    terms = (selector and selector.node_selector_terms) or ()
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields) != 1:
        return None
    only = terms[0].match_fields[0]
    is_pinned = only.key == "metadata.name" and only.operator == "In" and len(only.values) == 1
    return only.values[0] if is_pinned else None


# --- dropping -----------------------------------------------------------------------------


class _DeviceKey(NamedTuple):
    driver: str
    pool: str
    device: str
    share_id: str


class _Device:
    """What results and reports have in common."""

    driver: str
    pool: str
    device: str
    share_id: str | None


def _device_of(value: object) -> _DeviceKey:
    device: _Device = value  # type: ignore[assignment]
    return _DeviceKey(device.driver, device.pool, device.device, device.share_id or "")


def _drop_reports_of_freed_devices(
    new: ResourceClaimStatus, old: ResourceClaimStatus
) -> ResourceClaimStatus:
    freed = set(map(_device_of, _results(old))) - set(map(_device_of, _results(new)))
    kept = tuple(device for device in new.devices if _device_of(device) not in freed)
    return replace(new, devices=kept)


def _drop_disabled_status(
    status: ResourceClaimStatus, old: ResourceClaim, context: Context
) -> ResourceClaimStatus:
    before = _results(old.status)
    claim = old.spec.devices
    if not context.enabled(Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS) and not old.status.devices:
        status = replace(status, devices=())
    if not context.enabled(Gate.DRA_ADMIN_ACCESS) and not (
        uses_admin_access(claim) or any(result.admin_access is not None for result in before)
    ):
        status = _with_each_result(status, lambda r: replace(r, admin_access=None))
    if not context.enabled(Gate.DRA_CONSUMABLE_CAPACITY) and not (
        uses_consumable_capacity(claim) or _uses_shares(old.status)
    ):
        status = _with_each_result(
            status, lambda r: replace(r, share_id=None, consumed_capacity=None)
        )
        status = replace(status, devices=tuple(replace(d, share_id=None) for d in status.devices))
    if not context.enabled(Gate.DRA_DEVICE_BINDING_CONDITIONS) and not any(
        result.binding_conditions or result.binding_failure_conditions for result in before
    ):
        status = _with_each_result(
            status, lambda r: replace(r, binding_conditions=(), binding_failure_conditions=())
        )
    if not context.enabled(Gate.DRA_OPTIONAL_NODE_OPERATIONS) and not any(
        result.skip_node_operations for result in before
    ):
        status = _with_each_result(status, lambda r: replace(r, skip_node_operations=()))
    return status


def _uses_shares(status: ResourceClaimStatus) -> bool:
    return any(
        result.share_id is not None or result.consumed_capacity is not None
        for result in _results(status)
    ) or any(device.share_id is not None for device in status.devices)


def _results(status: ResourceClaimStatus) -> tuple[DeviceRequestAllocationResult, ...]:
    return status.allocation.devices.results if status.allocation is not None else ()


def _with_each_result(
    status: ResourceClaimStatus,
    change: Callable[[DeviceRequestAllocationResult], DeviceRequestAllocationResult],
) -> ResourceClaimStatus:
    if status.allocation is None:
        return status
    return _with_results(status, map(change, _results(status)))


def _with_results(
    status: ResourceClaimStatus, results: Iterable[DeviceRequestAllocationResult]
) -> ResourceClaimStatus:
    assert status.allocation is not None
    devices = replace(status.allocation.devices, results=tuple(results))
    return replace(status, allocation=replace(status.allocation, devices=devices))
