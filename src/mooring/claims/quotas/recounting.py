"""What a quota's status is to be, from all that there is in its namespace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mooring.api.core import ResourceQuota
from mooring.api.core.resources import ResourceList
from mooring.api.timestamp import Timestamp
from mooring.claims.classindex import ClassIndex
from mooring.claims.quotas.amounts import ZERO, added, masked
from mooring.claims.quotas.claimusage import Surroundings, special_by_pod
from mooring.claims.quotas.measures import CLAIMS, PODS, Counted, Measure, measure_of
from mooring.claims.quotas.names import is_of_nothing
from mooring.claims.quotas.scopes import scopes_of

Objects = Mapping[Counted, Sequence[Any]]  # of one namespace


def surroundings(
    objects: Objects, *, now: Timestamp, classes: ClassIndex, has_extended: bool = True
) -> Surroundings:
    """Return what usage depends on in a namespace with these objects."""
    return Surroundings(
        now=now,
        classes=classes,
        has_extended=has_extended,
        pods={pod.metadata.name: pod for pod in objects.get(PODS, ())},
        special=special_by_pod(objects.get(CLAIMS, ())),
    )


def counted_in(
    quotas: Iterable[ResourceQuota], resources: Iterable[Counted], around: Surroundings
) -> list[Counted]:
    """Return the resources whose objects must be known to recount the quotas.

    To measure special claims their pods must be known.
    """
    hard = {name for quota in quotas for name in quota.spec.hard}
    measures = ((resource, measure_of(resource, around)) for resource in resources)
    found = [resource for resource, measure in measures if measure and measure.names(hard)]
    return [*found, PODS] if CLAIMS in found and PODS not in found else found


def recounted(quota: ResourceQuota, objects: Objects, around: Surroundings) -> ResourceQuota:
    """Return a quota with its bounds and what is used of them; itself if it says that already."""
    hard = quota.spec.hard
    used = masked(quota.status.used, hard)  # what nobody here can count stays as it is
    counted: ResourceList = {name: ZERO for name in hard if is_of_nothing(name)}
    for resource, values in objects.items():
        measure = measure_of(resource, around)
        names = set() if measure is None else measure.names(hard)
        if measure is not None and names:
            counted = added(counted, dict.fromkeys(names, ZERO))
            counted = added(counted, masked(_used(quota, measure, values), names))
    used |= counted
    if quota.status.hard == hard and quota.status.used == used:
        return quota
    return replace(quota, status=replace(quota.status, hard=dict(hard), used=used))


def _used(quota: ResourceQuota, measure: Measure, values: Iterable[Any]) -> ResourceList:
    scopes = scopes_of(quota)
    total: ResourceList = {}
    for value in values:
        if all(measure.has(scope, value) for scope in scopes):
            total = added(total, measure.usage(value))
    return total
