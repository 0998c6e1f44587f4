"""Why a pod fits no node: the status of each node, and Kubernetes' message made of them.

    0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s). preemption: …

Reasons are counted over nodes and sorted as texts with their counts, so that `10 …` comes before
`2 …`, as in Kubernetes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from msgspec import Struct

from moorage.scheduler.framework import PluginError, PluginStatus, Unschedulable
from moorage.scheduler.node_info import NodeInfo

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
CLAIM_DEALLOCATED = "deallocation of ResourceClaim completed"
CLAIM_DELETED = "deletion of ResourceClaim completed"
NO_PREEMPTION = "preemption: not eligible due to preemptionPolicy=Never."
ONGOING_PREEMPTION = "preemption: not eligible due to a terminating pod on the nominated node."


class FitDiagnosis(Struct, frozen=True):
    """The feasible nodes, and the statuses of the others, in the order of their names."""

    nodes_count: int
    feasible: tuple[NodeInfo, ...] = ()
    node_to_status: Mapping[str, Unschedulable] = {}  # of the nodes that were filtered
    excluded: Unschedulable | None = None  # the status of those that were not
    pre_filter_status: PluginStatus | None = None  # why none was


def within(diagnosis: FitDiagnosis, nodes: Collection[str]) -> FitDiagnosis:
    """Return the part of a diagnosis about some nodes."""
    statuses = diagnosis.node_to_status
    return FitDiagnosis(
        len(nodes),
        tuple(each for each in diagnosis.feasible if each.facts.name in nodes),
        {name: status for name, status in statuses.items() if name in nodes},
        diagnosis.excluded,
        diagnosis.pre_filter_status,
    )


def fit_message(diagnosis: FitDiagnosis, *after: str) -> str:
    """Return why no node is feasible, and what was tried after that, such as preemption."""
    if diagnosis.nodes_count == 0:
        return NO_NODES
    status = diagnosis.pre_filter_status
    if isinstance(status, PluginError):
        return status.message
    if status is not None:
        message = _sentence(diagnosis.nodes_count, ", ".join(status.reasons))
    else:
        message = _sentence(diagnosis.nodes_count, _counted(_reasons(diagnosis)))
    return f"{message} {', '.join(after)}" if after else message


def preemption_message(
    diagnosis: FitDiagnosis, outcomes: Mapping[str, Unschedulable] | None = None
) -> str:
    """Return why preemption does not help.

    `outcomes` are the statuses that were left on nodes without all pods of lower priority; where
    there are no such pods, there are no victims. Nodes that reject for good are not tried.
    """
    reasons: Counter[str] = Counter()
    tried = 0
    if diagnosis.pre_filter_status is None:
        for name, status in diagnosis.node_to_status.items():
            if not status.is_unresolvable:
                tried += 1
                outcome = (outcomes or {}).get(name)
                reasons.update(outcome.reasons if outcome else (NO_VICTIMS,))
    if diagnosis.nodes_count > tried:
        reasons[NOT_HELPFUL] = diagnosis.nodes_count - tried
    return f"preemption: {_sentence(diagnosis.nodes_count, _counted(reasons))}"


def _reasons(diagnosis: FitDiagnosis) -> Counter[str]:
    reasons: Counter[str] = Counter()
    for status in diagnosis.node_to_status.values():
        reasons.update(status.reasons)
    unfiltered = diagnosis.nodes_count - len(diagnosis.node_to_status)
    if unfiltered and diagnosis.excluded is not None:
        for reason in diagnosis.excluded.reasons:
            reasons[reason] += unfiltered
    return reasons


def _counted(reasons: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))


def _sentence(nodes_count: int, reasons: str) -> str:
    text = f"0/{nodes_count} nodes are available:"
    return f"{text} {reasons}." if reasons else text
