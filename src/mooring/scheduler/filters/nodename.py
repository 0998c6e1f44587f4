"""A pod that names its node goes to no other."""

from __future__ import annotations

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shape import PodShape

PLUGIN = "NodeName"
REFUSAL = Refusal(PLUGIN, ("node(s) didn't match the requested node name",), is_unresolvable=True)


def applies(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    """Return whether the pod names nodes; others are then not asked, unless someone insists."""
    return shape.node_name != ""


def check(shape: PodShape, state: NodeState, outlook: Outlook) -> Refusal | None:  # noqa: ARG001
    """Return a refusal if this is another node."""
    return None if state.facts.name == shape.node_name else REFUSAL
