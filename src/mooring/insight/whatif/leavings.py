"""Taints that make pods leave, in plain terms."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mooring.api.timestamp import Timestamp
from mooring.claims import Cause, Eviction
from mooring.insight.concerns import full_name
from mooring.insight.plan.planner import Plan
from mooring.insight.whatif.departures import Departure
from mooring.insight.whatif.nodetaints import NodeEviction
from mooring.insight.whatif.worlds import RuleOutlook, evictions_in
from mooring.scheduler.features import Features
from mooring.validation.context import Context


class Leaving(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A taint that makes a pod leave."""

    pod: str
    after_seconds: int  # 0: at once
    taint: str
    node: str = ""  # of a taint on a node
    rule: str = ""
    claim: str = ""
    device: str = ""


class Preview(Struct, frozen=True, rename="camel"):
    """A new rule: what Kubernetes writes into its status, and who leaves.

    For the effect None these are the pods that would leave if it were NoExecute.
    """

    rule: str
    effect: str
    status: str
    reason: str
    message: str
    evictions: tuple[Leaving, ...]


def leavings_of(departure: Departure, now: Timestamp) -> Iterator[Leaving]:
    """Give the taints that make a pod leave; none if it leaves for another reason."""
    match departure.order.eviction:
        case NodeEviction(pod, when, taint):
            value = f"={taint.value}" if taint.value else ""
            text = f"{taint.key}{value}:{taint.effect}"
            yield Leaving(full_name(pod), _seconds(when, now), text, node=pod.spec.node_name)
        case Eviction() as eviction:
            yield from _of_devices(eviction, now)


def preview_of(outlook: RuleOutlook, now: Timestamp) -> Preview:
    """Return a rule with what it comes to."""
    return Preview(
        outlook.rule.metadata.name,
        outlook.rule.spec.taint.effect,
        *outlook.status,
        tuple(leaving for each in outlook.evictions for leaving in _of_devices(each, now)),
    )


def leaving_again(plan: Plan, context: Context) -> dict[str, str]:
    """Return why pods would leave the devices that they just got, by their full names."""
    features = Features.of(context.gates)
    if not features.allocator.device_taints:
        return {}
    after = plan.after
    rules = after.taint_rules if features.taint_rules else ()
    evictions = evictions_in(after, [each.pod for each in plan.placed], rules, context)
    return {full_name(each.pod): _again(each.causes[0]) for each in evictions}


def _again(cause: Cause) -> str:
    if cause.tolerated_s is None:
        how_long = "no toleration with effect NoExecute covers it"
    else:
        how_long = f"tolerated for {cause.tolerated_s}s only"
    return f"{cause.device} has {cause.mark}, {how_long}"


def _of_devices(eviction: Eviction, now: Timestamp) -> Iterator[Leaving]:
    for cause in eviction.causes:
        yield Leaving(
            full_name(eviction.pod),
            _seconds(cause.when, now),
            str(cause.mark),
            rule=cause.mark.rule,
            claim=cause.claim,
            device=str(cause.device),
        )


def _seconds(when: Timestamp, now: Timestamp) -> int:
    # Taints are added at whole seconds, so the part of one that has passed does not count.
    return max(0, int((when.instant - now.truncated().instant).total_seconds()))
