"""Pods that leave: which taints evict them, which come back, and what happens to their claims.

A pod with a controller is created again and looks for a node. It would get a new name; here it
keeps the old one, so that one sees which pod it is. A pod without a controller is lost. Daemons
come back only if their node still accepts them; static pods go with their node, never before.

Claims created for a pod go with it. Others lose its reservation, and their devices with the last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from moorage.allocator.taints import TaintRules
from moorage.api.core import Node, Pod
from moorage.api.core.placement import NO_EXECUTE, Taint
from moorage.api.core.pod import PodStatus
from moorage.api.resource.v1 import DeviceTaintRule, ResourceClaim, ResourceClaimConsumerReference
from moorage.api.timestamp import Timestamp
from moorage.api.tolerations import HARD_EFFECTS, Tolerations
from moorage.cel.device import CelFeatures, DeviceCompiler
from moorage.claims import (
    Absent,
    ClaimFeatures,
    Eviction,
    EvictionCause,
    Present,
    RemoveFinalizer,
    Reservations,
    RuleStatus,
    TaintedDevices,
    WriteStatus,
    find_evictions,
    owning_pod,
    protected,
    release_steps,
    review,
    unprotected,
)
from moorage.claims.pod_claims import controller_of, statuses_of
from moorage.controllers.pod_control import is_active
from moorage.insight.messages import full_name, taint_text
from moorage.insight.plan.planner import Plan
from moorage.insight.snapshot.snapshot import Snapshot, stand_in_uid
from moorage.scheduler.features import Features
from moorage.validation.strategy import Context

MIRROR: Final = "kubernetes.io/config.mirror"


class EvictionOrder(NamedTuple):
    """Why a pod has to leave."""

    why: str
    is_asked_for: bool = False  # by its name
    eviction: Eviction | NodeEviction | None = None


class PodFate(StrEnum):
    """What happens to an evicted pod."""

    BACK = "back"  # created again, and looks for a node
    LOST = "lost"  # has no controller
    GONE = "gone"  # belongs to a node that does not accept it any more
    DELETED = "deleted"  # on request


class EvictedPod(Struct, frozen=True):
    """An evicted pod as it was, and what happens to it."""

    pod: Pod
    fate: PodFate
    order: EvictionOrder


def is_tied_to_node(pod: Pod) -> bool:
    """Return whether draining leaves a pod alone: a daemon or a static pod."""
    return _is_daemon(pod) or is_static(pod)


def is_static(pod: Pod) -> bool:
    """Return whether a pod is the mirror of a static pod."""
    return MIRROR in pod.metadata.annotations


def _is_daemon(pod: Pod) -> bool:
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind == "DaemonSet"


def evict(pod: Pod, order: EvictionOrder, nodes: Mapping[str, Node]) -> EvictedPod:
    """Return what happens to a pod that has to leave."""
    return EvictedPod(pod, _fate(pod, order, nodes.get(pod.spec.node_name)), order)


def _fate(pod: Pod, order: EvictionOrder, node: Node | None) -> PodFate:
    if not is_active(pod):
        return PodFate.DELETED if order.is_asked_for else PodFate.GONE
    if is_static(pod):
        return PodFate.GONE
    if _is_daemon(pod):
        return PodFate.BACK if node is not None and _may_run(pod, node) else PodFate.GONE
    if controller_of(pod.metadata) is not None:
        return PodFate.BACK
    return PodFate.DELETED if order.is_asked_for else PodFate.LOST


def _may_run(pod: Pod, node: Node) -> bool:
    hard = (taint for taint in node.spec.taints if taint.effect in HARD_EFFECTS)
    return Tolerations(pod.spec.tolerations).tolerate_all(hard)


def recreated(pod: Pod) -> Pod:
    """Return the pod that its controller creates instead: the same, with nothing allocated."""
    old = pod.metadata
    # A new uid: reservations of the old pod do not count for this one.
    uid = stand_in_uid(pod.kind, old.namespace, f"{old.name}/{old.uid}")
    metadata = replace(
        old, uid=uid, resource_version="", creation_timestamp=None, managed_fields=()
    )
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus())


class Released(NamedTuple):
    """The remaining claims, the deleted ones, and those that are deleted once unused."""

    kept: tuple[ResourceClaim, ...]
    gone: frozenset[tuple[str, str]]  # namespace and name
    held_back: tuple[str, ...]


def released(
    claims: Iterable[ResourceClaim],
    *,
    gone_uids: Collection[str],
    deleted: Collection[str],
    now: Timestamp,
    features: ClaimFeatures,
) -> Released:
    """Return the claims once pods are gone and some claims are deleted."""
    kept: list[ResourceClaim] = []
    gone: set[tuple[str, str]] = set()
    held_back: list[str] = []
    for claim in claims:
        is_deleted = full_name(claim) in deleted
        owner = owning_pod(claim)
        is_to_go = is_deleted or (owner is not None and owner.uid in gone_uids)
        users = {consumer.uid for consumer in claim.status.reserved_for}
        after: ResourceClaim | None = claim
        if is_to_go or not users.isdisjoint(gone_uids):
            marked = _marked(claim, now) if is_to_go else claim
            after = _without_users(marked, gone_uids, features)
        if after is None:
            gone.add((claim.metadata.namespace, claim.metadata.name))
        else:
            kept.append(after)
            held_back += [full_name(claim)] if is_deleted else []
    return Released(tuple(kept), frozenset(gone), tuple(held_back))


def _marked(claim: ResourceClaim, now: Timestamp) -> ResourceClaim:
    then = claim.metadata.deletion_timestamp or now
    return replace(claim, metadata=replace(claim.metadata, deletion_timestamp=then))


def _without_users(
    claim: ResourceClaim, gone_uids: Collection[str], features: ClaimFeatures
) -> ResourceClaim | None:
    """Return a claim without the evicted pods; None if nothing keeps it."""
    if claim.status.allocation is not None:
        claim = protected(claim)  # A file may lack the finalizer that every cluster writes.

    def know(consumer: ResourceClaimConsumerReference) -> Present | Absent:
        return Absent() if consumer.uid in gone_uids else Present(consumer.uid)

    reservations = review(claim, know, features)
    assert isinstance(reservations, Reservations)
    for step in release_steps(claim, reservations, Absent()):
        match step:
            case WriteStatus(status):
                claim = replace(claim, status=status)
            case RemoveFinalizer():
                claim = unprotected(claim)
    is_gone = claim.metadata.deletion_timestamp is not None and not claim.metadata.finalizers
    return None if is_gone else claim


def without_claims(pods: Iterable[Pod], gone: Collection[tuple[str, str]]) -> Iterator[Pod]:
    """Yield the pods; waiting ones forget generated claims that were deleted."""
    for pod in pods:
        namespace = pod.metadata.namespace
        statuses = tuple(
            each for each in statuses_of(pod) if (namespace, each.resource_claim_name) not in gone
        )
        if pod.spec.node_name or len(statuses) == len(statuses_of(pod)):
            yield pod
        else:
            status = replace(pod.status, resource_claim_statuses=statuses)
            yield replace(pod, status=status)


# --- evictions by taints of nodes and of devices -----------------------------------------


class TaintEviction(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A taint that evicts a pod."""

    pod: str
    after_seconds: int  # 0: at once
    taint: str
    node: str = ""  # of a taint on a node
    rule: str = ""
    claim: str = ""
    device: str = ""


class RulePreview(Struct, frozen=True, rename="camel"):
    """A new rule: what Kubernetes writes into its status, and whom it evicts.

    For the effect None these are the pods that NoExecute would evict.
    """

    rule: str
    effect: str
    status: str
    reason: str
    message: str
    evictions: tuple[TaintEviction, ...]


def taint_evictions_of(
    eviction: Eviction | NodeEviction | None, now: Timestamp
) -> Iterator[TaintEviction]:
    """Yield the taints behind an eviction; none if the pod leaves for another reason."""
    match eviction:
        case NodeEviction(pod, when, taint):
            text = taint_text(taint.key, taint.value, taint.effect)
            yield TaintEviction(full_name(pod), _seconds(when, now), text, node=pod.spec.node_name)
        case Eviction():
            yield from _of_devices(eviction, now)


def preview_of(outlook: RuleOutlook, now: Timestamp) -> RulePreview:
    """Return the preview of a rule."""
    return RulePreview(
        outlook.rule.metadata.name,
        outlook.rule.spec.taint.effect,
        *outlook.status,
        tuple(leaving for each in outlook.evictions for leaving in _of_devices(each, now)),
    )


def evicted_again(plan: Plan, context: Context) -> dict[str, str]:
    """Return why pods would be evicted from the devices that they just got, by full name."""
    features = Features.of(context.gates)
    if not features.allocator.device_taints:
        return {}
    after = plan.after
    rules = after.taint_rules if features.taint_rules else ()
    evictions = evictions_in(after, [each.pod for each in plan.placed], rules, context)
    return {full_name(each.pod): _again(each.causes[0]) for each in evictions}


def _again(cause: EvictionCause) -> str:
    if cause.tolerated_s is None:
        how_long = "no toleration with effect NoExecute covers it"
    else:
        how_long = f"tolerated for {cause.tolerated_s}s only"
    return f"{cause.device} has {cause.taint}, {how_long}"


def _of_devices(eviction: Eviction, now: Timestamp) -> Iterator[TaintEviction]:
    for cause in eviction.causes:
        yield TaintEviction(
            full_name(eviction.pod),
            _seconds(cause.when, now),
            str(cause.taint),
            rule=cause.taint.rule,
            claim=cause.claim,
            device=str(cause.device),
        )


def _seconds(when: Timestamp, now: Timestamp) -> int:
    # Taints are added at whole seconds, so the part of one that has passed does not count.
    return max(0, int((when.instant - now.truncated().instant).total_seconds()))


class NodeEviction(Struct, frozen=True):
    """A pod, and the taint of its node that evicts it."""

    pod: Pod
    when: Timestamp
    taint: Taint


def find_node_evictions(
    pods: Iterable[Pod], nodes: Mapping[str, Node], *, now: Timestamp
) -> tuple[NodeEviction, ...]:
    """Return the pods that do not tolerate the taints of their nodes."""
    found = []
    for pod in pods:
        node = nodes.get(pod.spec.node_name)
        taints = () if node is None else node.spec.taints
        evicting = [taint for taint in taints if taint.effect == NO_EXECUTE]
        if evicting and (eviction := _eviction(pod, evicting, now)) is not None:
            found.append(eviction)
    return tuple(found)


def _eviction(pod: Pod, taints: list[Taint], now: Timestamp) -> NodeEviction | None:
    """Return when a pod is evicted: at once if a taint is not tolerated, else after the shortest
    toleration. Of several tolerations that cover a taint the first counts.
    """
    earliest: NodeEviction | None = None
    for taint in taints:
        covering = (t for t in pod.spec.tolerations if Tolerations((t,)).tolerate(taint))
        first = next(covering, None)
        if first is None:
            return NodeEviction(pod, now, taint)
        if first.toleration_seconds is not None:
            when = (taint.time_added or now).after(max(first.toleration_seconds, 0))
            if earliest is None or when < earliest.when:
                earliest = NodeEviction(pod, when, taint)
    return earliest


class RuleOutlook(Struct, frozen=True):
    """A rule, what Kubernetes writes into its status first, and whom it evicts.

    For the effect None these are the pods that NoExecute would evict.
    """

    rule: DeviceTaintRule
    status: RuleStatus
    evictions: tuple[Eviction, ...]


def evictions_in(
    snapshot: Snapshot, pods: Iterable[Pod], rules: Sequence[DeviceTaintRule], context: Context
) -> tuple[Eviction, ...]:
    """Return which of the pods device taints evict, with these rules."""
    if not rules and not _has_taints(snapshot):
        return ()
    return find_evictions(
        pods,
        snapshot.claims,
        marked_devices(snapshot, rules, context),
        now=context.now,
        features=Features.of(context.gates).claims,
    )


def _has_taints(snapshot: Snapshot) -> bool:
    return any(device.taints for each in snapshot.slices for device in each.spec.devices or ())


def marked_devices(
    snapshot: Snapshot, rules: Iterable[DeviceTaintRule], context: Context
) -> TaintedDevices:
    """Return the devices of a snapshot with the taints that evict pods."""
    compiler = DeviceCompiler(CelFeatures(list_attributes=True), extensions=context.extensions)
    known = TaintRules(compiler)
    for device_class in snapshot.classes:
        known.put_class(device_class)
    return TaintedDevices(snapshot.slices, rules, means=known.selects)
