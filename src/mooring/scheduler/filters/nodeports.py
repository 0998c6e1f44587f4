"""Two pods on one node cannot have the same port of the host."""

from __future__ import annotations

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.podports import is_free
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shape import PodShape

PLUGIN = "NodePorts"
REFUSAL = Refusal(PLUGIN, ("node(s) didn't have free ports for the requested pod ports",))


def applies(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    """Return whether the pod wants ports of the host."""
    return bool(shape.ports)


def check(shape: PodShape, state: NodeState, outlook: Outlook) -> Refusal | None:  # noqa: ARG001
    """Return a refusal if some port is taken: a look-up for each port."""
    taken = state.ports
    if not taken or all(is_free(port, taken) for port in shape.ports):
        return None
    return REFUSAL
