"""How PodGroups and CompositePodGroups are admitted."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from mooring.api.fieldpath import Path, root
from mooring.api.gates import Gate, Gates
from mooring.api.scheduling.v1beta1 import (
    PREEMPT_LOWER_PRIORITY,
    CompositePodGroup,
    CompositePodGroupStatus,
    DisruptionMode,
    EmptyMode,
    PodGroup,
    PodGroupResourceClaimStatus,
    PodGroupSpec,
    PodGroupStatus,
)
from mooring.api.timestamp import Timestamp
from mooring.validation.equality import semantic_equal
from mooring.validation.errors import Errors, invalid, required, too_many
from mooring.validation.field_rules import duplicates
from mooring.validation.metadata import (
    check_conditions,
    check_metadata,
    check_metadata_update,
)
from mooring.validation.pod_group_fields import (
    CLAIMS_MAX,
    GATED_PREEMPTION,
    GATED_TEMPLATE_FIELDS,
    PRIORITY,
    GatedFields,
    Once,
    check_claims,
    check_constraints,
    check_long_name,
    check_mode,
    check_once,
    check_policy,
    check_reference,
    name_of,
    without_disabled,
)
from mooring.validation.resource_claim import metadata_for_status
from mooring.validation.strategy import Context, Strategy

SPEC = root("spec")
STATUS = root("status")

G = TypeVar("G", PodGroup, CompositePodGroup)


def default_pod_group(group: G) -> G:
    """Return the group with its disruption mode set."""
    if group.spec.disruption_mode is not None:
        return group
    mode = DisruptionMode(single=EmptyMode())
    return replace(group, spec=replace(group.spec, disruption_mode=mode))


def default_preemption(group: G, gates: Gates) -> G:
    """Return the group with its preemption policy set, if there are such policies."""
    if group.spec.preemption_policy or not gates.enabled(Gate.POD_GROUP_PREEMPTION_POLICY):
        return group
    return replace(group, spec=replace(group.spec, preemption_policy=PREEMPT_LOWER_PRIORITY))


# --- PodGroup -----------------------------------------------------------------------------


def _check_group_spec(spec: PodGroupSpec, old: PodGroupSpec | None) -> Errors:
    policy_path, claims_path = SPEC.child("schedulingPolicy"), SPEC.child("resourceClaims")
    old_policy = None if old is None else old.scheduling_policy
    old_claims = None if old is None else old.resource_claims
    return (
        check_once(spec, old, _PARENT, SPEC)
        + check_policy(spec.scheduling_policy, old_policy, policy_path)
        + check_once(spec, old, _CONSTRAINTS, SPEC)
        + check_claims(spec.resource_claims, old_claims, claims_path)
        + check_once(spec, old, _REST, SPEC)
    )


_GATED_FIELDS: GatedFields = {
    **GATED_TEMPLATE_FIELDS,
    "parent_composite_pod_group_name": (Gate.COMPOSITE_POD_GROUP, None),
}
_PARENT = {
    "parent_composite_pod_group_name": Once(check_long_name),
    "workload_ref": Once(check_reference),
}
_CONSTRAINTS = {"scheduling_constraints": Once(check_constraints)}
_REST = {"disruption_mode": Once(check_mode, is_required=True), **PRIORITY}


def _check_claim_statuses(new: PodGroup, old: PodGroup, path: Path) -> Errors:
    statuses = new.status.resource_claim_statuses
    known = {claim.name for claim in new.spec.resource_claims}
    detail = "must match the name of an entry in `spec.resourceClaims`"
    found = [
        invalid(path.index(position).child("name"), status.name, detail)
        for position, status in enumerate(statuses)
        if status.name not in known
    ]
    if semantic_equal(statuses, old.status.resource_claim_statuses):
        return found
    if len(statuses) > CLAIMS_MAX:
        return [*found, too_many(path, len(statuses), CLAIMS_MAX, declared=True)]
    found += duplicates(statuses, name_of, path, declared=True)
    before = {status.name: status for status in reversed(old.status.resource_claim_statuses)}
    for position, status in enumerate(statuses):
        if status != before.get(status.name):
            found += _check_claim_name(status, path.index(position))
    return found


def _check_claim_name(status: PodGroupResourceClaimStatus, path: Path) -> Errors:
    if status.resource_claim_name is None:
        return []
    return check_long_name(status.resource_claim_name, path.child("resourceClaimName"))


class PodGroupStrategy(Strategy[PodGroup]):
    """The strategy of PodGroups."""

    allows_unconditional_update = False

    def default(self, value: PodGroup, api_version: str, now: Timestamp) -> PodGroup:  # noqa: ARG002
        """Set the disruption mode."""
        return default_pod_group(value)

    def default_features(self, value: PodGroup, gates: Gates) -> PodGroup:
        """Set the preemption policy."""
        return default_preemption(value, gates)

    def prepare_create(self, new: PodGroup, context: Context) -> PodGroup:
        """Drop the status and disabled fields."""
        return _drop_disabled(replace(new, status=PodGroupStatus()), None, context)

    def check_create(self, new: PodGroup, context: Context) -> Errors:  # noqa: ARG002
        """Validate everything."""
        found = check_metadata(new.metadata, namespaced=True)
        spec = new.spec
        if spec.parent_composite_pod_group_name is not None and spec.workload_ref is None:
            detail = "must be set when parentCompositePodGroupName is set"
            found.append(required(SPEC.child("workloadRef"), detail))
        return found + _check_group_spec(spec, None)

    def prepare_update(self, new: PodGroup, old: PodGroup, context: Context) -> PodGroup:
        """Keep the status; drop disabled fields that were not in use."""
        return _drop_disabled(replace(new, status=old.status), old, context)

    def check_update(self, new: PodGroup, old: PodGroup, context: Context) -> Errors:  # noqa: ARG002
        """Validate the metadata, and that only fields that may change did."""
        found = check_metadata_update(new.metadata, old.metadata)
        return found + _check_group_spec(new.spec, old.spec)

    def prepare_status(self, new: PodGroup, old: PodGroup, context: Context) -> PodGroup:
        """Keep spec and metadata; drop disabled fields."""
        status, uses_claims = new.status, bool(old.spec.resource_claims)
        if not context.enabled(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS) and not uses_claims:
            status = replace(status, resource_claim_statuses=())
        metadata = metadata_for_status(new.metadata, old.metadata)
        return replace(new, spec=old.spec, metadata=metadata, status=status)

    def check_status(self, new: PodGroup, old: PodGroup, context: Context) -> Errors:  # noqa: ARG002
        """Validate conditions and claims."""
        found = check_metadata_update(new.metadata, old.metadata)
        found += check_conditions(new.status.conditions, STATUS.child("conditions"))
        return found + _check_claim_statuses(new, old, STATUS.child("resourceClaimStatuses"))


def _drop_disabled(new: PodGroup, old: PodGroup | None, context: Context) -> PodGroup:
    old_spec = None if old is None else old.spec
    return replace(new, spec=without_disabled(new.spec, old_spec, _GATED_FIELDS, context.gates))


# --- CompositePodGroup --------------------------------------------------------------------


_COMPOSITE = {
    "parent_composite_pod_group_name": Once(check_long_name),
    "workload_ref": Once(check_reference, is_required=True),
    "scheduling_policy": Once(lambda policy, path: check_policy(policy, None, path)),
    **_CONSTRAINTS,
    **_REST,
}


class CompositePodGroupStrategy(Strategy[CompositePodGroup]):
    """Admission of CompositePodGroups."""

    allows_unconditional_update = False

    def default(
        self,
        value: CompositePodGroup,
        api_version: str,  # noqa: ARG002
        now: Timestamp,  # noqa: ARG002
    ) -> CompositePodGroup:
        """Set the disruption mode."""
        return default_pod_group(value)

    def default_features(self, value: CompositePodGroup, gates: Gates) -> CompositePodGroup:
        """Set the preemption policy."""
        return default_preemption(value, gates)

    def prepare_create(self, new: CompositePodGroup, context: Context) -> CompositePodGroup:
        """Drop the status and disabled fields."""
        new = replace(new, status=CompositePodGroupStatus())
        return _drop_disabled_composite(new, None, context)

    def check_create(self, new: CompositePodGroup, context: Context) -> Errors:  # noqa: ARG002
        """Check everything."""
        found = check_metadata(new.metadata, namespaced=True)
        return found + check_once(new.spec, None, _COMPOSITE, SPEC)

    def prepare_update(
        self,
        new: CompositePodGroup,
        old: CompositePodGroup,
        context: Context,
    ) -> CompositePodGroup:
        """Keep the status; drop disabled fields that were not in use."""
        return _drop_disabled_composite(replace(new, status=old.status), old, context)

    def check_update(
        self,
        new: CompositePodGroup,
        old: CompositePodGroup,
        context: Context,  # noqa: ARG002
    ) -> Errors:
        """Check that nothing changed."""
        found = check_metadata_update(new.metadata, old.metadata)
        return found + check_once(new.spec, old.spec, _COMPOSITE, SPEC)

    def prepare_status(
        self,
        new: CompositePodGroup,
        old: CompositePodGroup,
        context: Context,  # noqa: ARG002
    ) -> CompositePodGroup:
        """Keep spec and metadata."""
        metadata = metadata_for_status(new.metadata, old.metadata)
        return replace(new, spec=old.spec, metadata=metadata)

    def check_status(
        self,
        new: CompositePodGroup,
        old: CompositePodGroup,
        context: Context,  # noqa: ARG002
    ) -> Errors:
        """Check the conditions."""
        found = check_metadata_update(new.metadata, old.metadata)
        return found + check_conditions(new.status.conditions, STATUS.child("conditions"))


def _drop_disabled_composite(
    new: CompositePodGroup, old: CompositePodGroup | None, context: Context
) -> CompositePodGroup:
    old_spec = None if old is None else old.spec
    return replace(new, spec=without_disabled(new.spec, old_spec, GATED_PREEMPTION, context.gates))
