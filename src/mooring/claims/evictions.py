"""Which pods leave because devices of theirs are tainted, when, and because of what.

1. A device has the taints of its slice, if that is of its pool's newest generation, and those of
   the rules that mean it. Rules mean devices by name, also ones that no slice has any more.
2. Only NoExecute evicts. The tolerations that count are those of the allocation, not of the
   claim's spec, and only if their effect is NoExecute: one for every effect lets a claim have the
   device, but does not keep its pods there.
3. A taint that is tolerated for some time evicts that long after it was added, by the shortest of
   the tolerations that cover it. One that is tolerated without end does not.
4. A pod with a node leaves when the first of the claims that it may use wants it to.

# mark: a taint on a device, and where it comes from
# cause: a mark that makes a pod leave, with the claim by which the pod has the device
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from msgspec import Struct

from mooring.api.core.pod import Pod
from mooring.api.devicetaints import NO_EXECUTE, DeviceName, means_by_name, tolerates
from mooring.api.resource.v1 import (
    Device,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from mooring.api.timestamp import Timestamp
from mooring.claims.consumers import is_reserved_for
from mooring.claims.features import Features
from mooring.claims.owners import check_made_for_pod, key_of
from mooring.claims.references import Named, reference_of

LATEST = Timestamp(datetime.max.replace(tzinfo=UTC))


class Mark(NamedTuple):
    """A taint on a device, from a rule or else from a slice."""

    taint: DeviceTaint
    rule: str = ""
    slice_name: str = ""
    number: int = 0  # of the taint among those of the device in the slice

    def __str__(self) -> str:
        value = f"={self.taint.value}" if self.taint.value else ""
        return f"{self.taint.key}{value}:{self.taint.effect}"


class Cause(NamedTuple):
    """A mark that makes a pod leave, and the claim by which the pod has the device."""

    mark: Mark
    claim: str  # with its namespace
    device: DeviceName
    when: Timestamp
    tolerated_s: int | None  # None if it is not tolerated at all


class Eviction(Struct, frozen=True):
    """A pod that leaves, at the earliest time that one of the causes asks for."""

    pod: Pod
    when: Timestamp
    causes: tuple[Cause, ...]

    def is_because_of(self, rule: str) -> bool:
        """Tell whether a rule is among the causes."""
        return any(cause.mark.rule == rule for cause in self.causes)


# --- what is tainted --------------------------------------------------------------------------

# Tells whether a rule means a device; None is one that no slice has.
Means = Callable[[DeviceTaintRule, DeviceName, Device | None], bool]


class MarkedDevices:
    """The devices of slices, with the taints that make pods leave."""

    def __init__(
        self,
        slices: Iterable[ResourceSlice],
        rules: Iterable[DeviceTaintRule] = (),
        *,
        means: Means = means_by_name,
    ) -> None:
        self._published = dict(_published(list(slices)))
        self._means = means
        evicting = (rule for rule in rules if rule.spec.taint.effect == NO_EXECUTE)
        self._rules = sorted(evicting, key=lambda rule: rule.metadata.name)

    def marks(self, name: DeviceName) -> Iterator[Mark]:
        """Give what makes pods leave a device: of rules by their names, then of its slice."""
        slice_name, device = self._published.get(name, ("", None))
        for rule in self._rules:
            if self._means(rule, name, device):
                yield Mark(rule.spec.taint, rule.metadata.name)
        for number, taint in enumerate(device.taints if device is not None else ()):
            if taint.effect == NO_EXECUTE:
                yield Mark(taint, "", slice_name, number)

    def meant_by(self, rule: DeviceTaintRule) -> Iterator[DeviceName]:
        """Give the published devices that a rule means, whatever its effect is."""
        for name, (_, device) in self._published.items():
            if self._means(rule, name, device):
                yield name

    def means(self, rule: DeviceTaintRule, name: DeviceName) -> bool:
        """Tell whether a rule means a device, which need not be published."""
        return self._means(rule, name, self._published.get(name, ("", None))[1])


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
    """Return the name of a device that a request got."""
    return DeviceName(result.driver, result.pool, result.device)


# --- who leaves -------------------------------------------------------------------------------


def find_evictions(
    pods: Iterable[Pod],
    claims: Iterable[ResourceClaim],
    devices: MarkedDevices,
    *,
    now: Timestamp,
    features: Features,
) -> tuple[Eviction, ...]:
    """Return the pods that leave, in the order given; a taint without a time is added now."""
    marked = _MarkedClaims(claims, devices, now)
    found = []
    for pod in pods:
        if not pod.spec.node_name or pod.metadata.deletion_timestamp is not None:
            continue
        if causes := sorted(set(marked.causes_for(pod, features)), key=_order):
            found.append(Eviction(pod, min(cause.when for cause in causes), tuple(causes)))
    return tuple(found)


class _MarkedClaims:
    """The allocated claims, and what makes pods leave that use them."""

    def __init__(
        self, claims: Iterable[ResourceClaim], devices: MarkedDevices, now: Timestamp
    ) -> None:
        self._claims = {
            (each.metadata.namespace, each.metadata.name): each
            for each in claims
            if each.status.allocation is not None
        }
        self._devices = devices
        self._now = now
        self._causes: dict[tuple[str, str], tuple[Cause, ...]] = {}

    def causes_for(self, pod: Pod, features: Features) -> Iterator[Cause]:
        """Give what speaks against the claims that the pod may use."""
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

    def _causes_of(self, claim: ResourceClaim) -> Iterator[Cause]:
        assert claim.status.allocation is not None
        for result in claim.status.allocation.devices.results:
            name = device_name(result)
            for mark in self._devices.marks(name):
                tolerated_s = _tolerated_s(mark.taint, result.tolerations)
                if tolerated_s != FOREVER:
                    when = _later(mark.taint.time_added or self._now, tolerated_s or 0)
                    yield Cause(mark, key_of(claim.metadata), name, when, tolerated_s)


FOREVER = -1


def _tolerated_s(taint: DeviceTaint, tolerations: Iterable[DeviceToleration]) -> int | None:
    """Return how long a taint is tolerated: FOREVER, seconds, or None for not at all."""
    shortest: int | None = None
    for toleration in tolerations:
        if toleration.effect != NO_EXECUTE or not tolerates(toleration, taint):
            continue
        if toleration.toleration_seconds is None:
            return FOREVER
        seconds = max(toleration.toleration_seconds, 0)
        shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest


def _later(then: Timestamp, seconds: int) -> Timestamp:
    try:
        return Timestamp(then.instant + timedelta(seconds=seconds))
    except OverflowError:  # Seconds may be more than any calendar has.
        return LATEST


def _order(cause: Cause) -> tuple[bool, str, DeviceName, int, str]:
    """Return where a cause stands: rules by name, then slices by device and number of the taint."""
    mark = cause.mark
    return not mark.rule, mark.rule, cause.device, mark.number, cause.claim
