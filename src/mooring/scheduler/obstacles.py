"""What stops a pod before any node is asked."""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.core.pod import Pod
from mooring.api.labels import SelectorFault
from mooring.scheduler.nodeneeds import NodeTaste, read_node_names
from mooring.scheduler.podterms import PodTerms
from mooring.scheduler.refusals import Fault, Obstacle, Refusal
from mooring.scheduler.spreading import Spreading

SCHEDULING_GATES = "SchedulingGates"
GANG_SCHEDULING = "GangScheduling"
NODE_NAME = "NodeName"
NODE_AFFINITY = "NodeAffinity"
POD_TOPOLOGY_SPREAD = "PodTopologySpread"
INTER_POD_AFFINITY = "InterPodAffinity"


class Naming(NamedTuple):
    """The only nodes that a pod can mean, if it names them."""

    nodes: frozenset[str] | None = None
    elsewhere: Refusal | None = None  # what is said of all others
    conflict: Refusal | None = None  # why there can be none


def waiting(pod: Pod) -> Refusal | None:
    """Return what the pod waits for before it may be scheduled at all."""
    if not pod.spec.scheduling_gates:
        return None
    listed = " ".join(gate.name for gate in pod.spec.scheduling_gates)
    text = f"waiting for scheduling gates: [{listed}]"
    return Refusal(SCHEDULING_GATES, (text,), is_unresolvable=True)


def named_nodes(pod: Pod) -> Naming:
    """Return the nodes that the pod names, by its node name or by its node affinity."""
    by_affinity = read_node_names(pod)
    if by_affinity is not None and not by_affinity:
        text = "pod affinity terms conflict"
        return Naming(conflict=Refusal(NODE_AFFINITY, (text,), is_unresolvable=True))
    named = {NODE_NAME: frozenset((pod.spec.node_name,))} if pod.spec.node_name else {}
    if by_affinity is not None:
        named[NODE_AFFINITY] = by_affinity
    if not named:
        return Naming()
    plugins = " ".join(sorted(named))
    said = f"node(s) didn't satisfy plugin(s) [{plugins}]"
    nodes = frozenset.intersection(*named.values())
    if not nodes:
        return Naming(conflict=Refusal("", (f"{said} simultaneously",), is_unresolvable=True))
    return Naming(nodes, elsewhere=Refusal("", (said,), is_unresolvable=True))


def unreadable(
    terms: PodTerms | SelectorFault,
    spreading: Spreading | SelectorFault,
    tastes: tuple[NodeTaste, ...] | SelectorFault,
) -> Obstacle | None:
    """Return the first thing in the pod that could not be read."""
    if isinstance(spreading, SelectorFault):
        text = f'running PreFilter plugin "{POD_TOPOLOGY_SPREAD}": get constraints from pod: '
        return Fault(POD_TOPOLOGY_SPREAD, text + spreading.text)
    if isinstance(terms, SelectorFault):
        text = f"parsing pod: {terms.text}"
        return Refusal(INTER_POD_AFFINITY, (text,), is_unresolvable=True)
    if isinstance(tastes, SelectorFault):
        return Fault(NODE_AFFINITY, f'running PreScore plugin "{NODE_AFFINITY}": {tastes.text}')
    return None
