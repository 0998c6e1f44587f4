"""Whether quotas have room for something, and what they then say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from mooring.api.core import ResourceQuota
from mooring.api.core.resources import ResourceList
from mooring.claims.quotas.amounts import (
    added,
    beyond,
    grown,
    masked,
    told,
    told_names,
    without_zeros,
)
from mooring.claims.quotas.measures import Measure
from mooring.claims.quotas.scopes import scopes_of
from mooring.claims.refusals import Refused


def charged(
    quotas: Sequence[ResourceQuota], measure: Measure, new: Any, old: Any | None = None
) -> list[ResourceQuota] | Refused:
    """Return the quotas with a new or changed object counted in, or why one has no room for it.

    1. Those that are about the object must know what is used, and the object must say what it uses.
    2. What it uses more than before is added; where it was in another scope before, all of it.
    3. What is added must fit each of them. Those that it does not touch are returned as they are.
    """
    for quota in quotas:
        if is_about(quota, measure, new):
            refused = _check_known(quota, measure, new)
            if refused is not None:
                return refused
    usage = measure.usage(new)
    negative = [name for name, amount in usage.items() if amount.sign < 0]
    if negative:
        return Refused(f"quota usage is negative for resource(s): {told_names(negative)}")
    before = None if old is None else measure.usage(old)
    result = []
    for quota in quotas:
        more = _more(quota, measure, usage, (old, before)) if is_about(quota, measure, new) else {}
        outcome = _with(quota, masked(more, quota.status.hard))
        if isinstance(outcome, Refused):
            return outcome
        result.append(outcome)
    return result


def is_about(quota: ResourceQuota, measure: Measure, value: Any) -> bool:
    """Return whether a quota bounds something that the object uses."""
    if not measure.names(quota.status.hard):
        return False
    return all(measure.has(scope, value) for scope in scopes_of(quota))


def _check_known(quota: ResourceQuota, measure: Measure, value: Any) -> Refused | None:
    name, names = quota.metadata.name, measure.names(quota.status.hard)
    missing = measure.missing(names, value)
    if missing:
        return Refused(f"failed quota: {name}: {missing}")
    if names - quota.status.used.keys():
        return Refused(f"status unknown for quota: {name}, resources: {told_names(names)}")
    return None


def _more(
    quota: ResourceQuota,
    measure: Measure,
    usage: ResourceList,
    past: tuple[Any | None, ResourceList | None],
) -> ResourceList:
    """Return what a quota must have room for."""
    old, before = past
    if before is None or not is_about(quota, measure, old):
        return without_zeros(usage)
    return grown(before, usage)


def _with(quota: ResourceQuota, more: ResourceList) -> ResourceQuota | Refused:
    if not more:
        return quota
    status = quota.status
    used = added(status.used, more)
    over = beyond(masked(used, more), status.hard)
    if over:
        requested, taken, limited = (
            told(masked(amounts, over)) for amounts in (more, status.used, status.hard)
        )
        return Refused(
            f"exceeded quota: {quota.metadata.name}, requested: {requested}, used: {taken}, "
            f"limited: {limited}"
        )
    return replace(quota, status=replace(status, used=used))
