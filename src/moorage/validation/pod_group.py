"""Strategies of PodGroups and CompositePodGroups."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from moorage.api.field_path import Path, root
from moorage.api.gates import Gate
from moorage.api.scheduling.v1beta1 import (
    PREEMPT_LOWER_PRIORITY,
    CompositePodGroup,
    DisruptionMode,
    EmptyMode,
    PodGroup,
    PodGroupResourceClaimStatus,
    PodGroupSpec,
)
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, invalid, required, too_many
from moorage.validation.field_rules import duplicates
from moorage.validation.metadata import (
    validate_conditions,
)
from moorage.validation.pod_group_fields import (
    CLAIMS_MAX,
    GATED_PREEMPTION,
    GATED_TEMPLATE_FIELDS,
    PRIORITY,
    GatedFields,
    SetOnce,
    name_of,
    validate_claims,
    validate_constraints,
    validate_long_name,
    validate_mode,
    validate_policy,
    validate_reference,
    validate_set_once,
    without_disabled,
)
from moorage.validation.strategy import Context, ObjectStrategy

SPEC = root("spec")
STATUS = root("status")

G = TypeVar("G", PodGroup, CompositePodGroup)


def _default_group(group: G, context: Context) -> G:
    spec = group.spec
    if spec.disruption_mode is None:
        spec = replace(spec, disruption_mode=DisruptionMode(single=EmptyMode()))
    if not spec.preemption_policy and context.enabled(Gate.POD_GROUP_PREEMPTION_POLICY):
        spec = replace(spec, preemption_policy=PREEMPT_LOWER_PRIORITY)
    return group if spec is group.spec else replace(group, spec=spec)


# --- PodGroup -----------------------------------------------------------------------------


def _validate_group_spec(spec: PodGroupSpec, old: PodGroupSpec | None) -> ErrorList:
    policy_path, claims_path = SPEC.child("schedulingPolicy"), SPEC.child("resourceClaims")
    old_policy = None if old is None else old.scheduling_policy
    old_claims = None if old is None else old.resource_claims
    return (
        validate_set_once(spec, old, _PARENT, SPEC)
        + validate_policy(spec.scheduling_policy, old_policy, policy_path)
        + validate_set_once(spec, old, _CONSTRAINTS, SPEC)
        + validate_claims(spec.resource_claims, old_claims, claims_path)
        + validate_set_once(spec, old, _REST, SPEC)
    )


_GATED_FIELDS: GatedFields = {
    **GATED_TEMPLATE_FIELDS,
    "parent_composite_pod_group_name": (Gate.COMPOSITE_POD_GROUP, None),
}
_PARENT = {
    "parent_composite_pod_group_name": SetOnce(validate_long_name),
    "workload_ref": SetOnce(validate_reference),
}
_CONSTRAINTS = {"scheduling_constraints": SetOnce(validate_constraints)}
_REST = {"disruption_mode": SetOnce(validate_mode, is_required=True), **PRIORITY}


def _validate_claim_statuses(new: PodGroup, old: PodGroup, path: Path) -> ErrorList:
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
            found += _validate_claim_name(status, path.index(position))
    return found


def _validate_claim_name(status: PodGroupResourceClaimStatus, path: Path) -> ErrorList:
    if status.resource_claim_name is None:
        return []
    return validate_long_name(status.resource_claim_name, path.child("resourceClaimName"))


class PodGroupStrategy(ObjectStrategy[PodGroup]):
    """The strategy of PodGroups."""

    allow_unconditional_update = False

    def default(self, value: PodGroup, api_version: str, context: Context) -> PodGroup:  # noqa: ARG002
        """Set the disruption mode and the preemption policy."""
        return _default_group(value, context)

    def drop_disabled_fields(
        self, new: PodGroup, old: PodGroup | None, context: Context
    ) -> PodGroup:
        """Drop fields of disabled features that the old group does not use."""
        old_spec = None if old is None else old.spec
        return replace(new, spec=without_disabled(new.spec, old_spec, _GATED_FIELDS, context.gates))

    def validate(self, new: PodGroup, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything."""
        found, spec = self.validate_metadata(new), new.spec
        if spec.parent_composite_pod_group_name is not None and spec.workload_ref is None:
            detail = "must be set when parentCompositePodGroupName is set"
            found.append(required(SPEC.child("workloadRef"), detail))
        return found + _validate_group_spec(spec, None)

    def validate_changes(self, new: PodGroup, old: PodGroup) -> ErrorList:
        """Validate that only fields that may change did."""
        return _validate_group_spec(new.spec, old.spec)

    def prepare_for_status_update(self, new: PodGroup, old: PodGroup, context: Context) -> PodGroup:
        """Keep everything but the status; drop disabled fields."""
        uses_claims = bool(old.spec.resource_claims)
        if not context.enabled(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS) and not uses_claims:
            new = replace(new, status=replace(new.status, resource_claim_statuses=()))
        return super().prepare_for_status_update(new, old, context)

    def validate_status(self, new: PodGroup, old: PodGroup) -> ErrorList:
        """Validate conditions and claims."""
        found = validate_conditions(new.status.conditions, STATUS.child("conditions"))
        return found + _validate_claim_statuses(new, old, STATUS.child("resourceClaimStatuses"))


# --- CompositePodGroup --------------------------------------------------------------------


_COMPOSITE = {
    "parent_composite_pod_group_name": SetOnce(validate_long_name),
    "workload_ref": SetOnce(validate_reference, is_required=True),
    "scheduling_policy": SetOnce(lambda policy, path: validate_policy(policy, None, path)),
    **_CONSTRAINTS,
    **_REST,
}


class CompositePodGroupStrategy(ObjectStrategy[CompositePodGroup]):
    """The strategy of CompositePodGroups."""

    allow_unconditional_update = False

    def default(
        self,
        value: CompositePodGroup,
        api_version: str,  # noqa: ARG002
        context: Context,
    ) -> CompositePodGroup:
        """Set the disruption mode and the preemption policy."""
        return _default_group(value, context)

    def drop_disabled_fields(
        self, new: CompositePodGroup, old: CompositePodGroup | None, context: Context
    ) -> CompositePodGroup:
        """Drop the preemption policy while its feature is off."""
        old_spec, gates = None if old is None else old.spec, context.gates
        return replace(new, spec=without_disabled(new.spec, old_spec, GATED_PREEMPTION, gates))

    def validate(self, new: CompositePodGroup, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything."""
        return self.validate_metadata(new) + validate_set_once(new.spec, None, _COMPOSITE, SPEC)

    def validate_changes(self, new: CompositePodGroup, old: CompositePodGroup) -> ErrorList:
        """Validate that the spec is unchanged."""
        return validate_set_once(new.spec, old.spec, _COMPOSITE, SPEC)

    def validate_status(self, new: CompositePodGroup, old: CompositePodGroup) -> ErrorList:  # noqa: ARG002
        """Validate the conditions."""
        return validate_conditions(new.status.conditions, STATUS.child("conditions"))
