"""Strategies of ResourceClaims and ResourceClaimTemplates, whose specs are immutable.

Their defaults are here too: allocationMode, count, operators of tolerations.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from moorage.api.field_path import root
from moorage.api.gates import Gate
from moorage.api.resource import v1beta1
from moorage.api.resource.v1 import (
    ADMIN_NAMESPACE_LABEL,
    API_VERSION,
    AllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from moorage.validation import resource_claim_spec
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, forbidden, invalid
from moorage.validation.go_layout import internal_template
from moorage.validation.metadata import (
    IMMUTABLE,
    metadata_for_status,
    validate_metadata,
    validate_metadata_update,
    validate_template_metadata,
)
from moorage.validation.repeated_specs import RepeatedSpecs
from moorage.validation.resource_claim_spec import drop_disabled_claim_fields, validate_claim_spec
from moorage.validation.resource_claim_status import (
    allocation_results,
    device_key,
    drop_deallocated_device_statuses,
    drop_disabled_status_fields,
    validate_claim_status,
    with_results,
)
from moorage.validation.strategy import Context, Strategy

SPEC = root("spec")
STATUS = root("status")


class ResourceClaimStrategy(Strategy[ResourceClaim]):
    """The strategy of ResourceClaims."""

    def default(self, value: ResourceClaim, api_version: str, context: Context) -> ResourceClaim:  # noqa: ARG002
        """Set mode, count and toleration operators."""
        if api_version == API_VERSION:
            spec = SPECS.defaulted(value.spec)
        else:
            spec = default_claim_spec(value.spec, api_version)
        value = value if spec is value.spec else replace(value, spec=spec)
        return _default_status(value)

    def disabled_gates(
        self, new: ResourceClaim, old: ResourceClaim | None, context: Context
    ) -> Iterable[Gate]:
        """Return the disabled gates whose fields the claim loses."""
        if old is None and SPECS.has(new.spec, context.gates):
            return ()
        return resource_claim_spec.disabled_claim_gates(
            new.spec, old.spec if old is not None else None, context
        )

    def prepare_for_create(self, new: ResourceClaim, context: Context) -> ResourceClaim:
        """Drop the status and disabled fields."""
        if SPECS.has(new.spec, context.gates):  # None of its fields is disabled.
            return replace(new, status=ResourceClaimStatus())
        spec = drop_disabled_claim_fields(new.spec, None, context)
        if spec is new.spec:
            SPECS.note(spec, context.gates)
        return replace(new, spec=spec, status=ResourceClaimStatus())

    def validate(self, new: ResourceClaim, context: Context) -> ErrorList:
        """Validate everything."""
        found = validate_admin_access(new.spec.devices, context)
        found += validate_metadata(new.metadata, namespaced=True)
        is_valid = ("valid", context.gates, context.extensions, context.expressions)
        if SPECS.has(new.spec, is_valid):
            return found
        faults = validate_claim_spec(new.spec, SPEC, context)
        if not faults:
            SPECS.note(new.spec, is_valid)
        return found + faults

    def prepare_for_update(
        self, new: ResourceClaim, old: ResourceClaim, context: Context
    ) -> ResourceClaim:
        """Keep the status; drop disabled fields that were not in use."""
        spec = new.spec
        if spec is not old.spec:
            spec = drop_disabled_claim_fields(spec, old.spec, context)
        return replace(new, status=old.status, spec=spec)

    def validate_update(
        self,
        new: ResourceClaim,
        old: ResourceClaim,
        context: Context,  # noqa: ARG002
    ) -> ErrorList:
        """Validate the metadata, and that the spec is unchanged."""
        found = validate_metadata(new.metadata, namespaced=True)
        found += validate_metadata_update(new.metadata, old.metadata)
        if new.spec is not old.spec and not semantic_equal(new.spec, old.spec):
            found.append(invalid(SPEC, None, IMMUTABLE, declared=True))
        return found

    def prepare_for_status_update(
        self, new: ResourceClaim, old: ResourceClaim, context: Context
    ) -> ResourceClaim:
        """Keep spec and metadata; drop disabled fields and statuses of deallocated devices."""
        status = drop_disabled_status_fields(new.status, old, context)
        if context.enabled(Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS) or old.status.devices:
            status = drop_deallocated_device_statuses(status, old.status)
        metadata = metadata_for_status(new.metadata, old.metadata)
        return replace(new, spec=old.spec, metadata=metadata, status=status)

    def validate_status_update(
        self, new: ResourceClaim, old: ResourceClaim, context: Context
    ) -> ErrorList:
        """Validate permissions and the status."""
        found = _validate_admin_access_status(new.status, old.status, context)
        if context.enabled(Gate.DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION):
            found += _validate_authorization(new.status, old.status, context)
        found += validate_metadata_update(new.metadata, old.metadata)
        return found + validate_claim_status(new, old)


# --- defaults -----------------------------------------------------------------------------


def default_claim_spec(spec: ResourceClaimSpec, api_version: str) -> ResourceClaimSpec:
    """Return the spec with mode, count and toleration operators set."""
    requests = spec.devices.requests
    if not requests:
        return spec
    defaulted = tuple(_default_request(request, api_version) for request in requests)
    return replace(spec, devices=replace(spec.devices, requests=defaulted))


SPECS = RepeatedSpecs[ResourceClaimSpec](
    partial(default_claim_spec, api_version=API_VERSION)
)  # as resource.k8s.io/v1 has them


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


Details = TypeVar("Details", ExactDeviceRequest, DeviceSubRequest)


def _default_amount(details: Details) -> Details:
    mode = details.allocation_mode or "ExactCount"
    count = 1 if mode == "ExactCount" and details.count == 0 else details.count
    return replace(details, allocation_mode=mode, count=count)


def _default_tolerations(details: Details) -> Details:
    if not details.tolerations:
        return details
    return replace(details, tolerations=default_tolerations(details.tolerations))


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
    return replace(claim, status=with_results(claim.status, results))


# --- who may ------------------------------------------------------------------------------

ADMIN_LABEL_MISSING = (
    f"admin access to devices requires the `{ADMIN_NAMESPACE_LABEL}: true` label on the "
    "containing namespace"
)


def validate_admin_access(claim: DeviceClaim, context: Context) -> ErrorList:
    """Validate that only claims in an admin namespace have admin access."""
    if context.namespace_is_admin:
        return []
    for position, request in enumerate(claim.requests or ()):
        if request.exactly is not None and request.exactly.admin_access:
            # Kubernetes reports this path also for templates, and omits `exactly`.
            place = SPEC.child("devices", "requests").index(position).child("adminAccess")
            return [forbidden(place, ADMIN_LABEL_MISSING)]
    return []


def _validate_admin_access_status(
    new: ResourceClaimStatus, old: ResourceClaimStatus, context: Context
) -> ErrorList:
    if context.namespace_is_admin or any(result.admin_access for result in allocation_results(old)):
        return []
    for position, result in enumerate(allocation_results(new)):
        if result.admin_access:
            results = STATUS.child("allocation", "devices", "results")
            return [forbidden(results.index(position).child("adminAccess"), ADMIN_LABEL_MISSING)]
    return []


def _validate_authorization(
    new: ResourceClaimStatus, old: ResourceClaimStatus, context: Context
) -> ErrorList:
    found: ErrorList = []
    is_bound_anew = not semantic_equal(new.allocation, old.allocation) or not semantic_equal(
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
    before = {device_key(device): device for device in old.devices}
    after = {device_key(device): device for device in new.devices}
    return {
        key.driver
        for key in before.keys() | after.keys()
        if not (key in before and key in after and semantic_equal(before[key], after[key]))
    }


def _node_of(allocation: AllocationResult) -> str | None:
    """Return the node that an allocation selects by name, if it is one."""
    selector = allocation.node_selector
    terms = (selector and selector.node_selector_terms) or ()
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields) != 1:
        return None
    only = terms[0].match_fields[0]
    is_pinned = only.key == "metadata.name" and only.operator == "In" and len(only.values) == 1
    return only.values[0] if is_pinned else None


# --- dropping -----------------------------------------------------------------------------


# --- ResourceClaimTemplate ----------------------------------------------------------------


class ResourceClaimTemplateStrategy(Strategy[ResourceClaimTemplate]):
    """The strategy of ResourceClaimTemplates."""

    def default(
        self,
        value: ResourceClaimTemplate,
        api_version: str,
        context: Context,  # noqa: ARG002
    ) -> ResourceClaimTemplate:
        """Set mode, count and toleration operators."""
        spec = default_claim_spec(value.spec.spec, api_version)
        return replace(value, spec=replace(value.spec, spec=spec))

    def disabled_gates(
        self, new: ResourceClaimTemplate, old: ResourceClaimTemplate | None, context: Context
    ) -> Iterable[Gate]:
        """Return the disabled gates whose fields the template loses."""
        before = old.spec.spec if old is not None else None
        return resource_claim_spec.disabled_claim_gates(new.spec.spec, before, context)

    def prepare_for_create(
        self, new: ResourceClaimTemplate, context: Context
    ) -> ResourceClaimTemplate:
        """Drop disabled fields."""
        spec = drop_disabled_claim_fields(new.spec.spec, None, context)
        return replace(new, spec=replace(new.spec, spec=spec))

    def validate(self, new: ResourceClaimTemplate, context: Context) -> ErrorList:
        """Validate everything."""
        found = validate_admin_access(new.spec.spec.devices, context)
        return found + self._check(new, context)

    def prepare_for_update(
        self, new: ResourceClaimTemplate, old: ResourceClaimTemplate, context: Context
    ) -> ResourceClaimTemplate:
        """Drop disabled fields that were not in use."""
        spec = drop_disabled_claim_fields(new.spec.spec, old.spec.spec, context)
        return replace(new, spec=replace(new.spec, spec=spec))

    def validate_update(
        self, new: ResourceClaimTemplate, old: ResourceClaimTemplate, context: Context
    ) -> ErrorList:
        """Validate everything, and that the spec is unchanged."""
        found = self._check(new, context) + validate_metadata_update(new.metadata, old.metadata)
        if not semantic_equal(new.spec, old.spec):
            found.append(invalid(SPEC, internal_template(new.spec), IMMUTABLE))
        return found

    def _check(self, new: ResourceClaimTemplate, context: Context) -> ErrorList:
        found = validate_metadata(new.metadata, namespaced=True)
        found += validate_template_metadata(new.spec.metadata, SPEC.child("metadata"))
        return found + validate_claim_spec(new.spec.spec, SPEC.child("spec"), context)
