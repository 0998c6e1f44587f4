"""Pods that taints of their nodes and of their devices evict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from msgspec import Struct

from mooring.allocator.taints import TaintRules
from mooring.api.core import Node, Pod
from mooring.api.core.placement import NO_EXECUTE, Taint
from mooring.api.resource.v1 import DeviceTaintRule
from mooring.api.timestamp import Timestamp
from mooring.api.tolerations import Tolerations
from mooring.cel.device import CelFeatures, DeviceCompiler
from mooring.claims import Eviction, EvictionCause, RuleStatus, TaintedDevices, find_evictions
from mooring.claims.taint_evictions import LATEST
from mooring.insight.messages import full_name, taint_text
from mooring.insight.plan.planner import Plan
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.scheduler.features import Features
from mooring.validation.strategy import Context


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
            when = _later(taint.time_added or now, max(first.toleration_seconds, 0))
            if earliest is None or when < earliest.when:
                earliest = NodeEviction(pod, when, taint)
    return earliest


def _later(then: Timestamp, seconds: int) -> Timestamp:
    try:
        return Timestamp(then.instant + timedelta(seconds=seconds))
    except OverflowError:
        return LATEST


class RuleOutlook(Struct, frozen=True):
    """A rule, what Kubernetes writes into its status first, and whom it evicts.

    For the effect None these are the pods that NoExecute would evict.
    """

    rule: DeviceTaintRule
    status: RuleStatus
    evictions: tuple[Eviction, ...]


def evictions_in(
    snapshot: Snapshot, pods: Iterable[Pod], rules: Iterable[DeviceTaintRule], context: Context
) -> tuple[Eviction, ...]:
    """Return which of the pods device taints evict, with these rules."""
    return find_evictions(
        pods,
        snapshot.claims,
        marked_devices(snapshot, rules, context),
        now=context.now,
        features=Features.of(context.gates).claims,
    )


def marked_devices(
    snapshot: Snapshot, rules: Iterable[DeviceTaintRule], context: Context
) -> TaintedDevices:
    """Return the devices of a snapshot with the taints that evict pods."""
    compiler = DeviceCompiler(CelFeatures(list_attributes=True), extensions=context.extensions)
    known = TaintRules(compiler)
    for device_class in snapshot.classes:
        known.put_class(device_class)
    return TaintedDevices(snapshot.slices, rules, means=known.selects)
