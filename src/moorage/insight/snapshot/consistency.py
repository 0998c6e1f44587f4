"""Missing and contradictory objects in a snapshot.

A dump is often only a part of a cluster. Every check names the missing or contradictory objects,
and the consequence for answers from this snapshot. Of many alike the first few are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from moorage.api.core import Pod
from moorage.api.core.pod import FAILED, SUCCEEDED
from moorage.api.resource.v1 import (
    DeviceClaim,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from moorage.claims.pod_claims import Named, NotCreated, Owner, group_name, reference_of
from moorage.claims.reservations import is_group_consumer, is_pod_consumer
from moorage.hardware.machine import EXAMPLE_PROFILES
from moorage.insight.messages import Concern, counted, full_name, listed, titled
from moorage.insight.snapshot.snapshot import Snapshot

# Rules about objects that seem to be missing where not all of a kind could be read.
_FOLLOWING: Final = {
    "Node": ("missing-nodes", "unknown-node"),
    "DeviceClass": ("missing-class",),
    "ResourceSlice": ("missing-slices", "incomplete-pool", "unknown-device"),
    "ResourceClaimTemplate": ("missing-template",),
    "ResourceClaim": ("missing-claim",),
    "PersistentVolumeClaim": ("missing-volume-claim",),
    "PodGroup": ("missing-group", "unknown-consumer"),
    "Pod": ("unknown-consumer",),
}


def check_consistency(snapshot: Snapshot) -> list[Concern]:
    """Return the missing and contradictory objects.

    The absence of objects that could not be read is not reported.
    """
    world = _Lookup(snapshot)
    unread = (each.kind for each in snapshot.unread.kinds)
    unknown = {rule for kind in unread for rule in _FOLLOWING.get(kind, ())}
    found = (concern for check in CHECKS for concern in check(world))
    return [concern for concern in found if concern.rule not in unknown]


class HeldName(NamedTuple):
    """The name of an allocated device."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.device} of pool {self.pool} ({self.driver})"


class _Lookup:
    """A snapshot, indexed for the checks."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.nodes = {node.metadata.name for node in snapshot.nodes}
        self.classes = {each.metadata.name for each in snapshot.classes}
        self.templates = {full_name(each) for each in snapshot.templates}
        self.claims = {full_name(each) for each in snapshot.claims}
        self.pods = {full_name(each): each.metadata.uid for each in snapshot.pods}
        self.groups = {full_name(each): each.metadata.uid for each in snapshot.groups}
        self.devices = {
            HeldName(each.spec.driver, each.spec.pool.name, device.name)
            for each in snapshot.slices
            for device in each.spec.devices or ()
        }

    @property
    def has_seekers(self) -> bool:
        """Whether anything needs a node or devices."""
        found = self.snapshot
        return bool(found.pods or found.controllers or found.claims or found.templates)

    def owners(self) -> Iterator[Owner]:
        """Yield all objects that may have claims."""
        yield from self.snapshot.groups
        yield from filter(_is_alive, self.snapshot.pods)


def _is_alive(pod: Pod) -> bool:
    return pod.status.phase not in (SUCCEEDED, FAILED)


# --- nodes --------------------------------------------------------------------------------


def _missing_nodes(world: _Lookup) -> Iterator[Concern]:
    named = {each.spec.node_name for each in world.snapshot.slices if each.spec.node_name}
    missing = sorted(named - world.nodes)
    if not missing:
        return
    if not world.nodes:
        if not world.has_seekers:
            return  # Slices by themselves are fine.
        fact = f"there are no Node objects, though slices are of {_nodes(missing)}"
        yield Concern("missing-nodes", fact, "pods have nowhere to go; add the nodes")
        return
    fact = f"slices are of {_nodes(missing)} not among the objects"
    yield Concern("missing-nodes", fact, "nothing is placed there")


def _nodes(names: list[str]) -> str:
    return f"{counted(len(names), 'node')} ({listed(names)})"


def _nodes_without_capacity(world: _Lookup) -> Iterator[Concern]:
    bare = [
        node.metadata.name
        for node in world.snapshot.nodes
        if not bool(node.status.allocatable or node.status.capacity)
    ]
    if bare:
        fact = f"{_nodes(bare)} without capacity and allocatable"
        yield Concern("no-capacity", fact, "no pod fits there; status.capacity says what they have")


def _pods_on_unknown_nodes(world: _Lookup) -> Iterator[Concern]:
    lost = [
        f"{full_name(pod)} on {pod.spec.node_name}"
        for pod in world.snapshot.pods
        if pod.spec.node_name and pod.spec.node_name not in world.nodes and _is_alive(pod)
    ]
    if lost:
        fact = f"{counted(len(lost), 'pod')} on nodes that are not among the objects: "
        meaning = "what they use counts on no node"
        yield Concern("unknown-node", fact + listed(lost), meaning)


# --- classes and pools --------------------------------------------------------------------


def _missing_classes(world: _Lookup) -> Iterator[Concern]:
    users: dict[str, list[str]] = {}
    for each in world.snapshot.claims:
        if each.status.allocation is None:
            _note_classes(each.spec.devices, titled(each), world, users)
    for template in world.snapshot.templates:
        _note_classes(template.spec.spec.devices, titled(template), world, users)
    for name, subjects in sorted(users.items()):
        fact = f"DeviceClass {name} is not among the objects, but asked for by {listed(subjects)}"
        yield Concern("missing-class", fact, f"no device can be found for it{_with_profile(name)}")


def _with_profile(class_name: str) -> str:
    profile = EXAMPLE_PROFILES.get(class_name)
    return f"; --profile {profile} has machines with such devices" if profile else ""


def _note_classes(
    devices: DeviceClaim, subject: str, world: _Lookup, users: dict[str, list[str]]
) -> None:
    for name in dict.fromkeys(classes_of(devices)):
        if name not in world.classes:
            users.setdefault(name, []).append(subject)


def classes_of(devices: DeviceClaim) -> Iterator[str]:
    """Yield the names of the classes that a claim asks for."""
    for request in devices.requests or ():
        if request.exactly is not None:
            yield request.exactly.device_class_name
        yield from (each.device_class_name for each in request.first_available)


def _missing_slices(world: _Lookup) -> Iterator[Concern]:
    if world.snapshot.slices or not world.nodes:
        return
    waiting = [titled(each) for each in world.snapshot.claims if each.status.allocation is None]
    waiting += map(titled, world.snapshot.templates)
    if waiting:
        fact = "there are no ResourceSlice objects, though devices are asked for by "
        meaning = "no device can be found; add the slices"
        yield Concern("missing-slices", fact + listed(waiting), meaning)


def _incomplete_pools(world: _Lookup) -> Iterator[Concern]:
    newest: dict[tuple[str, str], int] = {}
    for each in world.snapshot.slices:
        pool = (each.spec.driver, each.spec.pool.name)
        newest[pool] = max(newest.get(pool, 0), each.spec.pool.generation)
    found: Counter[tuple[str, str]] = Counter()
    wanted: dict[tuple[str, str], int] = {}
    for each in world.snapshot.slices:
        pool = (each.spec.driver, each.spec.pool.name)
        if each.spec.pool.generation == newest[pool]:
            found[pool] += 1
            wanted[pool] = each.spec.pool.resource_slice_count
    short = [
        f"{name} ({driver}) has {found[driver, name]} of {wanted[driver, name]}"
        for driver, name in newest
        if found[driver, name] < wanted[driver, name]
    ]
    if short:
        fact = f"{counted(len(short), 'pool')} without all slices: {listed(short)}"
        yield Concern("incomplete-pool", fact, "no device of theirs is allocated")


# --- claims -------------------------------------------------------------------------------


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.results


def _unknown_devices(world: _Lookup) -> Iterator[Concern]:
    lost = [
        f"{full_name(claim)} holds {name}"
        for claim in world.snapshot.claims
        for result in _results(claim)
        if (name := _device(result)) not in world.devices
    ]
    if lost:
        fact = f"{counted(len(lost), 'device')} held by claims that no slice has: {listed(lost)}"
        meaning = "they count neither as free nor as taken; are all slices there?"
        yield Concern("unknown-device", fact, meaning)


def _device(result: DeviceRequestAllocationResult) -> HeldName:
    return HeldName(result.driver, result.pool, result.device)


def _twice_held(world: _Lookup) -> Iterator[Concern]:
    holders: dict[HeldName, list[str]] = {}
    for claim in world.snapshot.claims:
        for result in _results(claim):
            if not result.admin_access and result.share_id is None:
                holders.setdefault(_device(result), []).append(full_name(claim))
    twice = [f"{name} by {' and '.join(of)}" for name, of in holders.items() if len(of) > 1]
    if twice:
        fact = f"{counted(len(twice), 'device')} held twice: {listed(twice)}"
        meaning = "a cluster cannot be like this; freeing one holder will not free the device"
        yield Concern("contradiction", fact, meaning)


def _unknown_consumers(world: _Lookup) -> Iterator[Concern]:
    lost = [
        f"{full_name(claim)} for {consumer.resource} {consumer.name}"
        for claim in world.snapshot.claims
        for consumer in claim.status.reserved_for
        if not _is_known(consumer, claim, world)
    ]
    if lost:
        fact = f"{counted(len(lost), 'reservation')} for what is not among the objects: "
        meaning = "the claims stay taken, though the cluster may be about to free them"
        yield Concern("unknown-consumer", fact + listed(lost), meaning)


def _is_known(
    consumer: ResourceClaimConsumerReference, claim: ResourceClaim, world: _Lookup
) -> bool:
    name = f"{claim.metadata.namespace}/{consumer.name}"
    if is_pod_consumer(consumer):
        return world.pods.get(name) == consumer.uid
    if is_group_consumer(consumer):
        return world.groups.get(name) == consumer.uid
    return True  # other kinds are not known here


# --- references ---------------------------------------------------------------------------


def _missing_templates(world: _Lookup) -> Iterator[Concern]:
    missing: dict[str, list[str]] = {}
    for owner in world.owners():
        for entry in owner.spec.resource_claims:
            name = f"{owner.metadata.namespace}/{entry.resource_claim_template_name}"
            is_due = isinstance(reference_of(owner, entry), NotCreated)
            if is_due and name not in world.templates:
                missing.setdefault(name, []).append(titled(owner))
    for controller in world.snapshot.controllers:
        for entry in controller.spec.template.spec.resource_claims:
            wanted = entry.resource_claim_template_name
            name = f"{controller.metadata.namespace}/{wanted}"
            if wanted is not None and name not in world.templates:
                missing.setdefault(name, []).append(titled(controller))
    for name, users in sorted(missing.items()):
        fact = f"ResourceClaimTemplate {name} is not among the objects, but used by {listed(users)}"
        yield Concern("missing-template", fact, "their claims are not made, and they stay pending")


def _missing_claims(world: _Lookup) -> Iterator[Concern]:
    missing: dict[str, list[str]] = {}
    for owner in world.owners():
        for entry in owner.spec.resource_claims:
            match reference_of(owner, entry):
                case Named(name=claim):
                    name = f"{owner.metadata.namespace}/{claim}"
                    if name not in world.claims:
                        missing.setdefault(name, []).append(titled(owner))
    for name, users in sorted(missing.items()):
        fact = f"ResourceClaim {name} is not among the objects, but used by {listed(users)}"
        yield Concern("missing-claim", fact, "its devices count as free, and its pods as waiting")


def _missing_volume_claims(world: _Lookup) -> Iterator[Concern]:
    known = {full_name(each) for each in world.snapshot.volume_claims}
    missing: dict[str, list[str]] = {}
    users: list[tuple[Any, Any]] = [
        (each, each.spec.template.spec) for each in world.snapshot.controllers
    ]
    users += ((pod, pod.spec) for pod in world.snapshot.pods if _is_waiting(pod))
    for user, spec in users:
        for volume in spec.volumes:
            match volume:
                case {"persistentVolumeClaim": {"claimName": str(claim)}}:
                    name = f"{user.metadata.namespace}/{claim}"
                    if name not in known:
                        missing.setdefault(name, []).append(titled(user))
    for name, found in sorted(missing.items()):
        fact = f"PersistentVolumeClaim {name} is not among the objects, but used by {listed(found)}"
        yield Concern("missing-volume-claim", fact, "pods with it stay pending")


def _is_waiting(pod: Pod) -> bool:
    return not pod.spec.node_name and _is_alive(pod)


def _missing_groups(world: _Lookup) -> Iterator[Concern]:
    lost = [
        f"{full_name(pod)} of {group}"
        for pod in world.snapshot.pods
        if (group := group_name(pod)) and f"{pod.metadata.namespace}/{group}" not in world.groups
    ]
    if lost:
        fact = f"{counted(len(lost), 'pod')} of PodGroups that are not among the objects: "
        yield Concern("missing-group", fact + listed(lost), "they wait for their group")


CHECKS: Final[tuple[Callable[[_Lookup], Iterable[Concern]], ...]] = (
    _missing_nodes,
    _nodes_without_capacity,
    _pods_on_unknown_nodes,
    _missing_classes,
    _missing_slices,
    _incomplete_pools,
    _unknown_devices,
    _twice_held,
    _unknown_consumers,
    _missing_templates,
    _missing_claims,
    _missing_volume_claims,
    _missing_groups,
)
