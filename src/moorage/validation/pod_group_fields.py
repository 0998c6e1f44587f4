"""Rules that pod groups, composite pod groups and their templates share.

All are declared rules: a part that an update leaves unchanged is not validated again. `old` is None
for a new object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import fields, replace

from moorage.api import names
from moorage.api.field_path import Path
from moorage.api.gates import Gate, Gates
from moorage.api.names import BYTES
from moorage.api.scheduling.v1beta1 import (
    PREEMPT_LOWER_PRIORITY,
    PREEMPT_NEVER,
    CompositeGangSchedulingPolicy,
    CompositePodGroupSchedulingPolicy,
    DisruptionMode,
    GangSchedulingPolicy,
    PodGroupResourceClaim,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    TopologyConstraint,
    TypedLocalObjectReference,
    WorkloadReference,
)
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, invalid, required, too_many
from moorage.validation.field_rules import (
    declared_enum,
    declared_list,
    declared_short_name,
    declared_union,
    duplicates,
    each,
    each_invalid,
)
from moorage.validation.metadata import IMMUTABLE

CLAIMS_MAX = 4
TOPOLOGY_MAX = 1
PRIORITY_MAX = 1_000_000_000

Policy = PodGroupSchedulingPolicy | CompositePodGroupSchedulingPolicy
Check = Callable[[Any, Path], ErrorList]


class SetOnce(NamedTuple):
    """The rules of a field that is set once."""

    check: Check
    is_required: bool = False


def validate_set_once(
    value: Struct, old: Struct | None, rules: Mapping[str, SetOnce], path: Path
) -> ErrorList:
    """Validate fields that are set once: new values, and that old ones are unchanged."""
    found: ErrorList = []
    json_names = {info.name: info.encode_name for info in fields(value)}
    for name, rule in rules.items():
        new_field = getattr(value, name)
        place = path.child(json_names[name])
        if old is not None:
            if semantic_equal(new_field, getattr(old, name)):
                continue
            found.append(invalid(place, None, IMMUTABLE, declared=True))
        if new_field is None:
            found += [required(place, declared=True)] if rule.is_required else []
        elif old is None:
            found += rule.check(new_field, place)
    return found


# --- names and numbers --------------------------------------------------------------------


def validate_long_name(value: str, path: Path) -> ErrorList:
    """Validate a DNS subdomain."""
    return each_invalid(path, value, names.dns1123_subdomain(value, unit=BYTES), declared=True)


def validate_given_long_name(value: str, path: Path) -> ErrorList:
    """Validate an optional DNS subdomain."""
    return validate_long_name(value, path) if value else []


def validate_priority(value: int, path: Path) -> ErrorList:
    """Validate that users may set a priority."""
    if value <= PRIORITY_MAX:
        return []
    detail = f"must be less than or equal to {PRIORITY_MAX}"
    return [invalid(path, value, detail, declared=True)]


def validate_preemption(value: str, path: Path) -> ErrorList:
    """Validate a preemption policy."""
    return declared_enum(value, (PREEMPT_NEVER, PREEMPT_LOWER_PRIORITY), path)


def _validate_count(value: int, path: Path) -> ErrorList:
    if value == 0:
        return [required(path, declared=True)]
    if value < 1:
        return [invalid(path, value, "must be greater than or equal to 1", declared=True)]
    return []


# --- parts --------------------------------------------------------------------------------


def validate_policy(policy: Policy, old: Policy | None, path: Path) -> ErrorList:
    """Validate the scheduling policy: exactly one, set once; only the count may change."""
    if old is not None and semantic_equal(policy, old):
        return []
    is_update = old is not None
    basic, gang = policy.basic, policy.gang
    old_basic, old_gang = (old.basic, old.gang) if old is not None else (None, None)
    found: ErrorList = []
    if not is_update or (basic is None, gang is None) != (old_basic is None, old_gang is None):
        found += declared_union({"basic": basic, "gang": gang}, path)
    if is_update and basic != old_basic:
        found.append(invalid(path.child("basic"), None, IMMUTABLE, declared=True))
    gang_path = path.child("gang")
    if is_update and (gang is None) != (old_gang is None):
        detail = (
            "field cannot be set once created"
            if old_gang is None
            else "field cannot be cleared once set"
        )
        return [*found, invalid(gang_path, None, detail, declared=True)]
    if gang is not None and gang != old_gang:
        found += _validate_gang(gang, gang_path)
    return found


def _validate_gang(
    gang: GangSchedulingPolicy | CompositeGangSchedulingPolicy, path: Path
) -> ErrorList:
    if isinstance(gang, GangSchedulingPolicy):
        return _validate_count(gang.min_count, path.child("minCount"))
    return _validate_count(gang.min_group_count, path.child("minGroupCount"))


def validate_constraints(constraints: PodGroupSchedulingConstraints, path: Path) -> ErrorList:
    """Validate topology constraints."""
    path = path.child("topology")
    return declared_list(constraints.topology, TOPOLOGY_MAX, _validate_topology, path)


def _validate_topology(constraint: TopologyConstraint, path: Path) -> ErrorList:
    path = path.child("key")
    if not constraint.key:
        return [required(path, declared=True)]
    return each_invalid(path, constraint.key, names.label_name(constraint.key), declared=True)


def validate_mode(mode: DisruptionMode, path: Path) -> ErrorList:
    """Validate the disruption mode."""
    return declared_union({"single": mode.single, "all": mode.all}, path)


def validate_reference(reference: WorkloadReference, path: Path) -> ErrorList:
    """Validate the reference to a workload template."""
    found: ErrorList = []
    if not reference.workload_name:
        found.append(required(path.child("workloadName"), declared=True))
    else:
        found += validate_long_name(reference.workload_name, path.child("workloadName"))
    return found + declared_short_name(reference.template_name, path.child("templateName"))


def validate_controller(reference: TypedLocalObjectReference, path: Path) -> ErrorList:
    """Validate the reference to the controller of a workload."""
    found: ErrorList = []
    if reference.api_group:
        found += validate_long_name(reference.api_group, path.child("apiGroup"))
    for name, value in (("kind", reference.kind), ("name", reference.name)):
        if not value:
            found.append(required(path.child(name), declared=True))
        else:
            messages = _path_segment(value)
            found += each_invalid(path.child(name), value, messages, declared=True)
    return found


def _path_segment(text: str) -> list[str]:
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in text]


# The last fields of groups, composite groups and templates.
PRIORITY: Mapping[str, SetOnce] = {
    "priority_class_name": SetOnce(validate_given_long_name),
    "priority": SetOnce(validate_priority),
    "preemption_policy": SetOnce(validate_preemption),
}


# --- claims -------------------------------------------------------------------------------


def validate_claims(
    claims: tuple[PodGroupResourceClaim, ...],
    old: tuple[PodGroupResourceClaim, ...] | None,
    path: Path,
) -> ErrorList:
    """Validate the claims of a group: limited in number, with unique names, set once."""
    if claims == old:
        return []
    found: ErrorList = []
    if old is not None:
        found.append(invalid(path, None, IMMUTABLE, declared=True))
    if len(claims) > CLAIMS_MAX:
        found.append(too_many(path, len(claims), CLAIMS_MAX, declared=True))
    if found:
        return found
    return duplicates(claims, name_of, path, declared=True) + each(claims, _validate_claim, path)


def _validate_claim(claim: PodGroupResourceClaim, path: Path) -> ErrorList:
    name, template = claim.resource_claim_name, claim.resource_claim_template_name
    members = {
        "resourceClaimName": name,
        "resourceClaimTemplateName": template,
    }
    found = declared_union(members, path)
    found += declared_short_name(claim.name, path.child("name"))
    if name is not None:
        found += validate_long_name(name, path.child("resourceClaimName"))
    if template is not None:
        found += validate_long_name(template, path.child("resourceClaimTemplateName"))
    return found


def name_of(item: Any) -> str:
    """Return the name: the key function of the lists here."""
    name: str = item.name
    return name


# --- fields of disabled features ----------------------------------------------------------

S = TypeVar("S", bound=Struct)
# of a struct: the gate of a field, and the value of the field when it is unset
GatedFields = Mapping[str, tuple[Gate, Any]]

GATED_PREEMPTION: GatedFields = {"preemption_policy": (Gate.POD_GROUP_PREEMPTION_POLICY, None)}
GATED_TEMPLATE_FIELDS: GatedFields = {
    "scheduling_constraints": (Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING, None),
    "resource_claims": (Gate.DRA_WORKLOAD_RESOURCE_CLAIMS, ()),
    **GATED_PREEMPTION,
}
GATED_COMPOSITE: GatedFields = {"composite_pod_group_templates": (Gate.COMPOSITE_POD_GROUP, ())}


def without_disabled(new: S, old: Struct | None, gated: GatedFields, gates: Gates) -> S:
    """Return a struct without fields of disabled features that the old one does not use."""
    changes = {
        name: unset
        for name, (gate, unset) in gated.items()
        if not gates.enabled(gate) and (old is None or getattr(old, name) == unset)
    }
    return replace(new, **changes)
