"""A plan as `moor plan -o json` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from moorage.insight.errors import UnreadError
from moorage.insight.explain.pods import kubernetes_writes
from moorage.insight.messages import counted
from moorage.insight.plan.arrival_orders import BetterOrder
from moorage.insight.plan.placements import Placement, chosen_results, placement_of
from moorage.insight.plan.planner import Plan, Result
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.unread import unread_tree
from moorage.scheduler.scheduling_cycle import Pending

T = TypeVar("T")


def shown_results(plan: Plan, manifests: Snapshot) -> tuple[Result, ...]:
    """Return the results for pods of the manifests, or all results if there are no manifests."""
    if not any(manifests.objects()):
        return plan.results
    return tuple(chosen_results(plan.results, manifests))


def shown_placement(result: Result, plan: Plan) -> Placement:
    """Return the result for a pod, with Kubernetes' message if its scheduler writes none."""
    placement = placement_of(result)
    if isinstance(result, Pending) and not (result.message or placement.unknown):
        written = kubernetes_writes(plan.before, plan.cluster.features.claims, result)
        return replace(placement, written=written)
    return placement


def decisive(pods: Sequence[T], stand_ins: Sequence[T]) -> Sequence[T]:
    """Return those whose outcome is that of a command: stand-ins, only if there are no pods."""
    return pods or stand_ins


def plan_tree(
    placements: Sequence[Placement],
    stand_ins: Sequence[Placement],
    snapshot: Snapshot,
    better: BetterOrder | None = None,
) -> dict[str, Any]:
    """Return placements, the number of nodes, and an order of arrival that would place more."""
    unknown = sum(each.unknown for each in placements)
    order = {"placed": better.placed, "pods": list(better.arrival)} if better is not None else None
    return {
        "pods": msgspec.to_builtins(placements),
        "standIns": msgspec.to_builtins(stand_ins),
        "summary": {
            "placed": sum(each.node is not None for each in placements),
            "pending": sum(each.node is None for each in placements),
            **({"unknown": unknown} if unknown else {}),
            "nodes": len(snapshot.nodes),
        },
        **unread_tree(snapshot.unread),
        **({"betterOrder": order} if order is not None else {}),
    }


def stand_ins_text(stand_ins: Sequence[Placement], *, is_after_pods: bool) -> str:
    """Return how many claims and templates that no pod uses would get devices, and how tried."""
    kinds = {(each.stands_for or "").partition("/")[0] for each in stand_ins}
    number, placed = len(stand_ins), sum(each.node is not None for each in stand_ins)
    noun = counted(number, kinds.pop()) if len(kinds) == 1 else f"{number:,} claims and templates"
    alone = ", each alone" if number > 1 else ""
    left = " on what the pods leave" if is_after_pods else ""
    return f"{placed:,} of {noun} that no pod uses would get a node{alone}{left}"


def nothing_text(plan: Plan) -> str:
    """Return why a plan has no pods, or that it is unknown."""
    if hidden := plan.before.unread.hidden(("Pod",)):
        return str(UnreadError(hidden, "which pods wait for a node"))
    with_nodes = sum(bool(pod.spec.node_name) for pod in plan.before.pods)
    if with_nodes:
        return f"Nothing to plan: none of {counted(with_nodes, 'pod')} waits for a node."
    return "Nothing to plan: there are no pods, and nothing that makes any."
