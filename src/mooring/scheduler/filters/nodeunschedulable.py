"""A node that is closed takes no pods, but those that tolerate the taint of closed nodes."""

from __future__ import annotations

from mooring.api.core.placement import NO_SCHEDULE, Taint
from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shape import PodShape

PLUGIN = "NodeUnschedulable"
REFUSAL = Refusal(PLUGIN, ("node(s) were unschedulable",), is_unresolvable=True)
TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


def applies(shape: PodShape, outlook: Outlook) -> bool:
    """Return whether there are closed nodes, and the pod cannot go to them."""
    return outlook.world.closed > 0 and not shape.tolerations.tolerate(TAINT)


def check(shape: PodShape, state: NodeState, outlook: Outlook) -> Refusal | None:  # noqa: ARG001
    """Return a refusal if the node is closed."""
    return REFUSAL if state.facts.is_unschedulable else None
