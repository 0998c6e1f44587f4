"""How a job is scheduled as a group: policy, constraints, disruption mode and shared claims."""

from __future__ import annotations

from typing import Any

from moorage.api.batch import JobSpec
from moorage.api.codec import decode_tree
from moorage.api.field_path import Path
from moorage.api.scheduling.v1beta1 import (
    DisruptionMode,
    PodGroupResourceClaim,
    PodGroupSchedulingConstraints,
)
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, invalid
from moorage.validation.field_rules import declared_union
from moorage.validation.metadata import IMMUTABLE
from moorage.validation.pod_group_fields import (
    validate_claims,
    validate_constraints,
    validate_mode,
)

_ALL_TOGETHER = "the disruptionMode `all` is not supported with the Basic scheduling policy"
_SAME_POLICY = (
    "the basic/gang policy variant is immutable after creation; only "
    "schedulingPolicy.gang.minCount may be updated"
)
_SET = "field cannot be set once created"
_CLEARED = "field cannot be cleared once set"


def validate_scheduling(spec: JobSpec, path: Path) -> ErrorList:
    """Validate the scheduling of a job that has one."""
    scheduling: Any = spec.scheduling
    if scheduling is None:
        return []
    found: ErrorList = []
    policy, mode = scheduling.get("schedulingPolicy"), scheduling.get("disruptionMode")
    place = path.child("schedulingPolicy")
    if policy is not None:
        members = {name: policy.get(name) for name in ("basic", "gang")}
        found += declared_union(members, place)
        found += _validate_gang(policy.get("gang"), spec, place.child("gang"))
    if (constraints := scheduling.get("schedulingConstraints")) is not None:
        value = decode_tree(constraints, PodGroupSchedulingConstraints).value
        found += validate_constraints(value, path.child("schedulingConstraints"))
    if mode is not None:
        found += validate_mode(
            decode_tree(mode, DisruptionMode).value, path.child("disruptionMode")
        )
    claims = scheduling.get("resourceClaims") or ()
    values = tuple(decode_tree(claim or {}, PodGroupResourceClaim).value for claim in claims)
    found += validate_claims(values, None, path.child("resourceClaims"))
    is_basic = policy is None or policy.get("basic") is not None
    if is_basic and not found and (mode or {}).get("all") is not None:
        found.append(invalid(path.child("disruptionMode"), "", _ALL_TOGETHER))
    return found


def _validate_gang(gang: Any, spec: JobSpec, path: Path) -> ErrorList:
    """Validate the size of a gang; without one, it is the parallelism."""
    count = (gang or {}).get("minCount")
    if count is None:
        return []
    place = path.child("minCount")
    if count < 1:
        return [invalid(place, count, "must be greater than or equal to 1", declared=True)]
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    detail = f"must not be greater than parallelism ({parallelism})"
    return [] if count <= parallelism else [invalid(place, count, detail)]


def validate_scheduling_changes(new: Any, old: Any, path: Path) -> ErrorList:
    """Validate that only the size of a gang changed."""
    if (new is None) != (old is None):
        return [_fixed(path, _SET if old is None else _CLEARED)]
    if new is None:
        return []
    found = [
        _fixed(path.child(name), IMMUTABLE)
        for name in ("schedulingConstraints", "disruptionMode", "resourceClaims")
        if not semantic_equal(new.get(name), old.get(name))
    ]
    place = path.child("schedulingPolicy")
    policy, before = new.get("schedulingPolicy"), old.get("schedulingPolicy")
    if (policy is None) != (before is None):
        found.append(_fixed(place, _SET if before is None else _CLEARED))
    elif policy is not None and ("basic" in policy) != ("basic" in before):
        found.append(invalid(place, None, _SAME_POLICY))
    return found


def _fixed(path: Path, detail: str) -> Any:
    return invalid(path, None, detail, declared=True)
