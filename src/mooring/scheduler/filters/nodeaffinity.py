"""A pod's node selector and required node affinity decide by a node's labels and name."""

from __future__ import annotations

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shape import PodShape

PLUGIN = "NodeAffinity"
REFUSAL = Refusal(
    PLUGIN, ("node(s) didn't match Pod's node affinity/selector",), is_unresolvable=True
)


def applies(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    """Return whether the pod has either."""
    return shape.need is not None


def check(shape: PodShape, state: NodeState, outlook: Outlook) -> Refusal | None:  # noqa: ARG001
    """Return a refusal if the node is not meant: a look-up for each rule."""
    facts = state.facts
    if shape.need is None or shape.need.is_met(facts.name, facts.labels):
        return None
    return REFUSAL
