"""A pod that needs a feature of the node agent goes only where that feature is declared."""

from __future__ import annotations

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shape import PodShape

PLUGIN = "NodeDeclaredFeatures"
REFUSAL = Refusal(PLUGIN, ("node(s) didn't match Pod's required features",), is_unresolvable=True)


def applies(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    """Return whether the pod needs any."""
    return bool(shape.features)


def check(shape: PodShape, state: NodeState, outlook: Outlook) -> Refusal | None:  # noqa: ARG001
    """Return a refusal if the node lacks one."""
    return None if shape.features <= state.facts.features else REFUSAL
