"""Charges quotas for objects at admission, and recalculates usage from all objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from moorage.api.core import ResourceQuota
from moorage.api.core.resources import ResourceList
from moorage.api.timestamp import Timestamp
from moorage.claims.extended_resources import DeviceClassIndex
from moorage.claims.pod_claims import ClaimRejection
from moorage.claims.quotas.evaluators import (
    CLAIMS,
    PODS,
    Evaluator,
    GroupResource,
    evaluator_for,
    scopes_of,
)
from moorage.claims.quotas.usage import (
    ZERO,
    UsageContext,
    added,
    format_amounts,
    format_names,
    grown,
    is_unserved,
    names_beyond,
    restricted_to,
    special_by_pod,
    without_zeros,
)

NamespaceObjects = Mapping[GroupResource, Sequence[Any]]  # of one namespace


def charged(
    quotas: Sequence[ResourceQuota], evaluator: Evaluator, new: Any, old: Any | None = None
) -> list[ResourceQuota] | ClaimRejection:
    """Return the quotas charged for a new or changed object, or why it exceeds one.

    1. Quotas that match the object must have a status, and the object must specify its usage.
    2. The increase over the old object is added, or everything if that did not match the quota.
    3. The sum must fit each quota. Quotas that the object does not use are returned unchanged.
    """
    for quota in quotas:
        if matches(quota, evaluator, new):
            rejected = _check_status(quota, evaluator, new)
            if rejected is not None:
                return rejected
    usage = evaluator.usage(new)
    negative = [name for name, amount in usage.items() if amount.sign < 0]
    if negative:
        return ClaimRejection(f"quota usage is negative for resource(s): {format_names(negative)}")
    before = None if old is None else evaluator.usage(old)
    result = []
    for quota in quotas:
        is_match = matches(quota, evaluator, new)
        more = _increase(quota, evaluator, usage, (old, before)) if is_match else {}
        outcome = _charged_quota(quota, restricted_to(more, quota.status.hard))
        if isinstance(outcome, ClaimRejection):
            return outcome
        result.append(outcome)
    return result


def matches(quota: ResourceQuota, evaluator: Evaluator, value: Any) -> bool:
    """Return whether a quota limits something that the object uses."""
    if not evaluator.names(quota.status.hard):
        return False
    return all(evaluator.has(scope, value) for scope in scopes_of(quota))


def _check_status(quota: ResourceQuota, evaluator: Evaluator, value: Any) -> ClaimRejection | None:
    name, names = quota.metadata.name, evaluator.names(quota.status.hard)
    missing = evaluator.missing(names, value)
    if missing:
        return ClaimRejection(f"failed quota: {name}: {missing}")
    if names - quota.status.used.keys():
        return ClaimRejection(f"status unknown for quota: {name}, resources: {format_names(names)}")
    return None


def _increase(
    quota: ResourceQuota,
    evaluator: Evaluator,
    usage: ResourceList,
    past: tuple[Any | None, ResourceList | None],
) -> ResourceList:
    """Return the amounts charged to a quota."""
    old, before = past
    if before is None or not matches(quota, evaluator, old):
        return without_zeros(usage)
    return grown(before, usage)


def _charged_quota(quota: ResourceQuota, more: ResourceList) -> ResourceQuota | ClaimRejection:
    if not more:
        return quota
    status = quota.status
    used = added(status.used, more)
    over = names_beyond(restricted_to(used, more), status.hard)
    if over:
        requested, taken, limited = (
            format_amounts(restricted_to(amounts, over))
            for amounts in (more, status.used, status.hard)
        )
        return ClaimRejection(
            f"exceeded quota: {quota.metadata.name}, requested: {requested}, used: {taken}, "
            f"limited: {limited}"
        )
    return replace(quota, status=replace(status, used=used))


# --- recalculation --------------------------------------------------------------------------------


def usage_context(
    objects: NamespaceObjects,
    *,
    now: Timestamp,
    classes: DeviceClassIndex,
    has_extended: bool = True,
) -> UsageContext:
    """Return the context of usage in a namespace with these objects."""
    return UsageContext(
        now=now,
        classes=classes,
        has_extended=has_extended,
        pods={pod.metadata.name: pod for pod in objects.get(PODS, ())},
        special=special_by_pod(objects.get(CLAIMS, ())),
    )


def counted_resources(
    quotas: Iterable[ResourceQuota], resources: Iterable[GroupResource], context: UsageContext
) -> list[GroupResource]:
    """Return the resources whose objects are needed to recalculate the quotas.

    Special claims need their pods.
    """
    hard = {name for quota in quotas for name in quota.spec.hard}
    evaluators = ((resource, evaluator_for(resource, context)) for resource in resources)
    found = [resource for resource, each in evaluators if each and each.names(hard)]
    return [*found, PODS] if CLAIMS in found and PODS not in found else found


def recalculated(
    quota: ResourceQuota, objects: NamespaceObjects, context: UsageContext
) -> ResourceQuota:
    """Return a quota with its status recalculated; itself if that is unchanged."""
    hard = quota.spec.hard
    used = restricted_to(quota.status.used, hard)  # resources without an evaluator stay unchanged
    counted: ResourceList = {name: ZERO for name in hard if is_unserved(name)}
    for resource, values in objects.items():
        evaluator = evaluator_for(resource, context)
        names = set() if evaluator is None else evaluator.names(hard)
        if evaluator is not None and names:
            counted = added(counted, dict.fromkeys(sorted(names), ZERO))
            counted = added(counted, restricted_to(_usage(quota, evaluator, values), names))
    used |= counted
    if quota.status.hard == hard and quota.status.used == used:
        return quota
    return replace(quota, status=replace(quota.status, hard=dict(hard), used=used))


def _usage(quota: ResourceQuota, evaluator: Evaluator, values: Iterable[Any]) -> ResourceList:
    scopes = scopes_of(quota)
    total: ResourceList = {}
    for value in values:
        if all(evaluator.has(scope, value) for scope in scopes):
            total = added(total, evaluator.usage(value))
    return total
