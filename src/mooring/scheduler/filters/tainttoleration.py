"""A node's taints keep away pods that do not tolerate them."""

from __future__ import annotations

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shape import PodShape

PLUGIN = "TaintToleration"
REFUSAL = Refusal(PLUGIN, ("node(s) had untolerated taint(s)",), is_unresolvable=True)


def applies(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    """Return whether there is any node with such a taint."""
    return outlook.world.hard_tainted > 0


def check(shape: PodShape, state: NodeState, outlook: Outlook) -> Refusal | None:  # noqa: ARG001
    """Return a refusal if some taint is not tolerated: taints × tolerations comparisons."""
    taints = state.facts.hard_taints
    if not taints or shape.tolerations.tolerate_all(taints):
        return None
    return REFUSAL
