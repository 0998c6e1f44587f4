"""Which pods are evicted because of tainted devices, when and why; and the status of taint rules.

1. A device has the taints of its slice, if that is of its pool's newest generation, and those of
   the rules that select it. Rules select devices by name, also those that no slice has any more.
2. Only NoExecute evicts. The tolerations of the allocation count, not those of the claim's spec,
   and only with the effect NoExecute: a toleration of every effect lets a claim have the device,
   but does not keep its pods there.
3. A taint that is tolerated for some time evicts that long after it was added, by the shortest of
   the matching tolerations. A taint that is tolerated without end does not evict.
4. A pod with a node is evicted at the earliest time of all claims that it may use.

The status of a DeviceTaintRule has Kubernetes' messages. A rule with the effect None is a dry run:
what would happen with NoExecute?

# applied taint: a taint on a device, and where it comes from
# cause: an applied taint that evicts a pod, with the claim by which the pod has the device
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.core.placement import NO_EXECUTE
from moorage.api.core.pod import Pod
from moorage.api.meta import namespaced_name
from moorage.api.resource.v1 import (
    Device,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from moorage.api.timestamp import Timestamp
from moorage.api.tolerations import NONE, DeviceName, means_by_name, tolerates
from moorage.claims.pod_claims import ClaimFeatures, Named, check_made_for_pod, reference_of
from moorage.claims.reservations import is_reserved_for

FOREVER = -1

CONDITION = "EvictionInProgress"
OTHER_EFFECT = "Eviction only happens for the NoExecute effect."
NO_UPDATE = (
    "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
)


class AppliedTaint(NamedTuple):
    """A taint on a device, from a rule or else from a slice."""

    taint: DeviceTaint
    rule: str = ""
    slice_name: str = ""
    number: int = 0  # of the taint among those of the device in the slice

    def __str__(self) -> str:
        value = f"={self.taint.value}" if self.taint.value else ""
        return f"{self.taint.key}{value}:{self.taint.effect}"


class EvictionCause(NamedTuple):
    """An applied taint that evicts a pod, and the claim by which the pod has the device."""

    taint: AppliedTaint
    claim: str  # with its namespace
    device: DeviceName
    when: Timestamp
    tolerated_s: int | None  # None if it is not tolerated


class Eviction(Struct, frozen=True):
    """A pod to evict, at the earliest time of its causes."""

    pod: Pod
    when: Timestamp
    causes: tuple[EvictionCause, ...]

    def is_because_of(self, rule: str) -> bool:
        """Return whether a rule is among the causes."""
        return any(cause.taint.rule == rule for cause in self.causes)


# --- tainted devices ------------------------------------------------------------------------------

# Returns whether a rule selects a device; None is one that no slice has.
RuleSelects = Callable[[DeviceTaintRule, DeviceName, Device | None], bool]


class TaintedDevices:
    """The devices of slices, with the taints that evict pods."""

    def __init__(
        self,
        slices: Iterable[ResourceSlice],
        rules: Iterable[DeviceTaintRule] = (),
        *,
        means: RuleSelects = means_by_name,
    ) -> None:
        self._published = dict(_published(list(slices)))
        self._selects = means
        evicting = (rule for rule in rules if rule.spec.taint.effect == NO_EXECUTE)
        self._rules = sorted(evicting, key=lambda rule: rule.metadata.name)

    def taints(self, name: DeviceName) -> Iterator[AppliedTaint]:
        """Yield the evicting taints of a device: of rules by name, then of its slice."""
        slice_name, device = self._published.get(name, ("", None))
        for rule in self._rules:
            if self._selects(rule, name, device):
                yield AppliedTaint(rule.spec.taint, rule.metadata.name)
        for number, taint in enumerate(device.taints if device is not None else ()):
            if taint.effect == NO_EXECUTE:
                yield AppliedTaint(taint, "", slice_name, number)

    def meant_by(self, rule: DeviceTaintRule) -> Iterator[DeviceName]:
        """Yield the published devices that a rule selects, whatever its effect is."""
        for name, (_, device) in self._published.items():
            if self._selects(rule, name, device):
                yield name

    def selects(self, rule: DeviceTaintRule, name: DeviceName) -> bool:
        """Return whether a rule selects a device, published or not."""
        return self._selects(rule, name, self._published.get(name, ("", None))[1])


def _published(slices: list[ResourceSlice]) -> Iterator[tuple[DeviceName, tuple[str, Device]]]:
    newest: dict[tuple[str, str], int] = {}
    for each in slices:
        key, generation = _pool_key(each), each.spec.pool.generation
        newest[key] = max(generation, newest.get(key, generation))
    for each in slices:
        key = _pool_key(each)
        if each.spec.pool.generation == newest[key]:
            for device in each.spec.devices or ():
                yield DeviceName(*key, device.name), (each.metadata.name, device)


def _pool_key(slice_: ResourceSlice) -> tuple[str, str]:
    return slice_.spec.driver, slice_.spec.pool.name


def device_name(result: DeviceRequestAllocationResult) -> DeviceName:
    """Return the name of an allocated device."""
    return DeviceName(result.driver, result.pool, result.device)


# --- evictions ------------------------------------------------------------------------------------


def find_evictions(
    pods: Iterable[Pod],
    claims: Iterable[ResourceClaim],
    devices: TaintedDevices,
    *,
    now: Timestamp,
    features: ClaimFeatures,
) -> tuple[Eviction, ...]:
    """Return the pods to evict, in the order of `pods`; a taint without a time is added now."""
    marked = _TaintedClaims(claims, devices, now)
    found = []
    for pod in pods:
        if not pod.spec.node_name or pod.metadata.deletion_timestamp is not None:
            continue
        if causes := sorted(set(marked.causes_for(pod, features)), key=_order):
            found.append(Eviction(pod, min(cause.when for cause in causes), tuple(causes)))
    return tuple(found)


class _TaintedClaims:
    """The allocated claims, and what evicts the pods that use them."""

    def __init__(
        self, claims: Iterable[ResourceClaim], devices: TaintedDevices, now: Timestamp
    ) -> None:
        self._claims = {
            (each.metadata.namespace, each.metadata.name): each
            for each in claims
            if each.status.allocation is not None
        }
        self._devices = devices
        self._now = now
        self._causes: dict[tuple[str, str], tuple[EvictionCause, ...]] = {}

    def causes_for(self, pod: Pod, features: ClaimFeatures) -> Iterator[EvictionCause]:
        """Yield the causes from the claims that the pod may use."""
        for entry in pod.spec.resource_claims:
            reference = reference_of(pod, entry)
            if not isinstance(reference, Named):
                continue
            key = pod.metadata.namespace, reference.name
            claim = self._claims.get(key)
            if claim is None or not is_reserved_for(claim, pod, features):
                continue
            if reference.is_generated and check_made_for_pod(claim, pod, features) is not None:
                continue
            if key not in self._causes:
                self._causes[key] = tuple(self._causes_of(claim))
            yield from self._causes[key]

    def _causes_of(self, claim: ResourceClaim) -> Iterator[EvictionCause]:
        assert claim.status.allocation is not None
        for result in claim.status.allocation.devices.results:
            name = device_name(result)
            for mark in self._devices.taints(name):
                tolerated_s = _tolerated_s(mark.taint, result.tolerations)
                if tolerated_s != FOREVER:
                    when = (mark.taint.time_added or self._now).after(tolerated_s or 0)
                    yield EvictionCause(
                        mark, namespaced_name(claim.metadata), name, when, tolerated_s
                    )


def _tolerated_s(taint: DeviceTaint, tolerations: Iterable[DeviceToleration]) -> int | None:
    """Return how long a taint is tolerated: FOREVER, seconds, or None if it is not."""
    shortest: int | None = None
    for toleration in tolerations:
        if toleration.effect != NO_EXECUTE or not tolerates(toleration, taint):
            continue
        if toleration.toleration_seconds is None:
            return FOREVER
        seconds = max(toleration.toleration_seconds, 0)
        shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest


def _order(cause: EvictionCause) -> tuple[bool, str, DeviceName, int, str]:
    """Sort rules by name, then slices by device and number of the taint."""
    mark = cause.taint
    return not mark.rule, mark.rule, cause.device, mark.number, cause.claim


# --- the status of rules --------------------------------------------------------------------------


class EvictionCounts(NamedTuple):
    """The effect of a rule, in numbers."""

    published: int = 0  # devices in slices
    allocated: int = 0  # devices of claims, each time that one is allocated
    pods: int = 0  # to be evicted
    namespaces: int = 0  # of these pods
    evicted: int = 0  # pods already evicted


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
    devices: TaintedDevices,
    claims: Iterable[ResourceClaim],
    *,
    evicted: int = 0,
) -> EvictionCounts:
    """Return the effect of a rule; `evictions` are those still to come."""
    leaving = [each.pod for each in evictions if each.is_because_of(rule.metadata.name)]
    allocations = (claim.status.allocation for claim in claims)
    results = (result for each in allocations if each for result in each.devices.results)
    return EvictionCounts(
        published=sum(1 for _ in devices.meant_by(rule)),
        allocated=sum(devices.selects(rule, device_name(result)) for result in results),
        pods=len(leaving),
        namespaces=len({pod.metadata.namespace for pod in leaving}),
        evicted=evicted,
    )


def rule_status(effect: str, counts: EvictionCounts) -> RuleStatus:
    """Return the condition of a rule with this effect."""
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


def _pending(counts: EvictionCounts) -> str:
    need = "1 pod needs" if counts.pods == 1 else f"{counts.pods} pods need"
    return f"{need} to be evicted in {_namespaces(counts)}"


def _preview(counts: EvictionCounts) -> str:
    return (
        f"{_number(counts.published, 'published device')} selected. "
        f"{_number(counts.allocated, 'allocated device')} selected. "
        f"{_number(counts.pods, 'pod')} would be evicted in {_namespaces(counts)} "
        f"if the effect was NoExecute. {NO_UPDATE}"
    )


def _namespaces(counts: EvictionCounts) -> str:
    return "1 namespace" if counts.namespaces == 1 else f"{counts.namespaces} different namespaces"


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
