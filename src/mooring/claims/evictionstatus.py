"""What the status of a DeviceTaintRule tells of the pods that leave because of it.

The words are those of Kubernetes. A rule with the effect None is a question: what would happen if
it were NoExecute?
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from mooring.api.devicetaints import NO_EXECUTE, NONE
from mooring.api.resource.v1 import DeviceTaintRule, ResourceClaim
from mooring.claims.evictions import Eviction, MarkedDevices, device_name

CONDITION = "EvictionInProgress"
OTHER_EFFECT = "Eviction only happens for the NoExecute effect."
NO_UPDATE = (
    "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
)


class Counts(NamedTuple):
    """What a rule comes to."""

    published: int = 0  # devices in slices
    allocated: int = 0  # devices of claims, each time that one is allocated
    pods: int = 0  # still to leave
    namespaces: int = 0  # of these pods
    evicted: int = 0  # pods that have left already


class RuleStatus(NamedTuple):
    """The condition of a rule."""

    status: str
    reason: str
    message: str


def as_evicting(rule: DeviceTaintRule) -> DeviceTaintRule:
    """Return the rule as if its effect were NoExecute."""
    taint = replace(rule.spec.taint, effect=NO_EXECUTE)
    return replace(rule, spec=replace(rule.spec, taint=taint))


def counts_of(
    rule: DeviceTaintRule,
    evictions: Iterable[Eviction],
    devices: MarkedDevices,
    claims: Iterable[ResourceClaim],
    *,
    evicted: int = 0,
) -> Counts:
    """Return what a rule comes to, of evictions that are still to be."""
    leaving = [each.pod for each in evictions if each.is_because_of(rule.metadata.name)]
    allocations = (claim.status.allocation for claim in claims)
    results = (result for each in allocations if each for result in each.devices.results)
    return Counts(
        published=sum(1 for _ in devices.meant_by(rule)),
        allocated=sum(devices.means(rule, device_name(result)) for result in results),
        pods=len(leaving),
        namespaces=len({pod.metadata.namespace for pod in leaving}),
        evicted=evicted,
    )


def rule_status(effect: str, counts: Counts) -> RuleStatus:
    """Return the condition that a rule with this effect has."""
    status, reason, message = "False", "OtherEffect", OTHER_EFFECT
    match effect:
        case _ if effect == NONE:
            reason, message = "NoEffect", _preview(counts)
        case _ if effect == NO_EXECUTE and counts.pods:
            status, reason, message = "True", "PodsPendingEviction", f"{_pending(counts)}."
        case _ if effect == NO_EXECUTE:
            reason, message = "Completed" if counts.evicted else "NotStarted", ""
    if counts.evicted:
        past = f"{_number(counts.evicted, 'pod')} evicted since starting the controller."
        message = f"{message} {past}".lstrip()
    return RuleStatus(status, reason, message)


def _pending(counts: Counts) -> str:
    need = "1 pod needs" if counts.pods == 1 else f"{counts.pods} pods need"
    return f"{need} to be evicted in {_namespaces(counts)}"


def _preview(counts: Counts) -> str:
    return (
        f"{_number(counts.published, 'published device')} selected. "
        f"{_number(counts.allocated, 'allocated device')} selected. "
        f"{_number(counts.pods, 'pod')} would be evicted in {_namespaces(counts)} "
        f"if the effect was NoExecute. {NO_UPDATE}"
    )


def _namespaces(counts: Counts) -> str:
    return "1 namespace" if counts.namespaces == 1 else f"{counts.namespaces} different namespaces"


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
