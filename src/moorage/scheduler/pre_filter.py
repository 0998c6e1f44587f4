"""PreFilter: what rules a pod out, or narrows its nodes, before any node is filtered."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

from moorage.api.core.pod import DEFAULT_SCHEDULER, Pod
from moorage.api.labels import SelectorFault
from moorage.scheduler.affinity import AffinityTerms, PreferredNodeTerm, read_node_names
from moorage.scheduler.framework import (
    SCHEDULING_GATES,
    PluginError,
    PluginStatus,
    Unschedulable,
)
from moorage.scheduler.topology_spread import SpreadConstraints

NODE_NAME = "NodeName"
NODE_AFFINITY = "NodeAffinity"
POD_TOPOLOGY_SPREAD = "PodTopologySpread"
INTER_POD_AFFINITY = "InterPodAffinity"
UNMODELLED = "Unmodelled"  # no plugin of Kubernetes: what this scheduler does not know

# Volumes that restrict where a pod may go, by rules on other objects or on other pods.
BINDING_VOLUMES = {
    "persistentVolumeClaim": "a persistent volume claim",
    "ephemeral": "a volume claim of its own",
    "awsElasticBlockStore": "a disk that one pod mounts at a time",
    "azureDisk": "a disk that nodes attach",
    "cinder": "a disk that nodes attach",
    "gcePersistentDisk": "a disk that one pod mounts at a time",
    "iscsi": "a disk that one pod mounts at a time",
    "rbd": "a disk that one pod mounts at a time",
}


class PreFilterResult(NamedTuple):
    """The only nodes that a pod can go to, if it names them."""

    node_names: frozenset[str] | None = None
    excluded: Unschedulable | None = None  # the status of all other nodes
    conflict: Unschedulable | None = None  # why no node is left


def scheduling_gates(pod: Pod) -> Unschedulable | None:
    """Return the scheduling gates of a pod, until which it is not tried."""
    if not pod.spec.scheduling_gates:
        return None
    listed = " ".join(gate.name for gate in pod.spec.scheduling_gates)
    text = f"waiting for scheduling gates: [{listed}]"
    return Unschedulable(SCHEDULING_GATES, (text,), is_unresolvable=True)


def named_nodes(pod: Pod, plugins: Container[str] = (NODE_NAME, NODE_AFFINITY)) -> PreFilterResult:
    """Return the nodes that the pod names, by its node name or by its node affinity."""
    by_affinity = read_node_names(pod) if NODE_AFFINITY in plugins else None
    if by_affinity is not None and not by_affinity:
        text = "pod affinity terms conflict"
        return PreFilterResult(conflict=Unschedulable(NODE_AFFINITY, (text,), is_unresolvable=True))
    named = {}
    if pod.spec.node_name and NODE_NAME in plugins:
        named[NODE_NAME] = frozenset((pod.spec.node_name,))
    if by_affinity is not None:
        named[NODE_AFFINITY] = by_affinity
    if not named:
        return PreFilterResult()
    text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(named))}]"
    nodes = frozenset.intersection(*named.values())
    if not nodes:
        text = f"{text} simultaneously"
        return PreFilterResult(conflict=Unschedulable("", (text,), is_unresolvable=True))
    return PreFilterResult(nodes, excluded=Unschedulable("", (text,), is_unresolvable=True))


def unreadable(
    terms: AffinityTerms | SelectorFault,
    constraints: SpreadConstraints | SelectorFault,
    preferred: tuple[PreferredNodeTerm, ...] | SelectorFault,
) -> PluginStatus | None:
    """Return the first thing in the pod that could not be read."""
    if isinstance(constraints, SelectorFault):
        text = f'running PreFilter plugin "{POD_TOPOLOGY_SPREAD}": get constraints from pod: '
        return PluginError(POD_TOPOLOGY_SPREAD, text + constraints.text)
    if isinstance(terms, SelectorFault):
        text = f"parsing pod: {terms.text}"
        return Unschedulable(INTER_POD_AFFINITY, (text,), is_unresolvable=True)
    if isinstance(preferred, SelectorFault):
        text = f'running PreScore plugin "{NODE_AFFINITY}": {preferred.text}'
        return PluginError(NODE_AFFINITY, text)
    return None


def unmodelled(
    pod: Pod,
    *,
    scheduler_names: tuple[str, ...] = (DEFAULT_SCHEDULER,),
    checks_volumes: bool = True,
    is_admitted: bool = False,
) -> Unschedulable | None:
    """Return why this scheduler cannot place the pod: it rejects such pods, never misplaces them.

    A pod that a cluster has admitted has the rules of its runtime class in its own fields.
    """
    volumes = pod.spec.volumes if checks_volumes else ()
    texts = [text for volume in volumes if (text := _of_volume(volume))]
    wanted = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    if wanted not in scheduler_names:
        texts.append(f'the pod asks for the scheduler "{wanted}", this is "{scheduler_names[0]}"')
    if pod.spec.runtime_class_name and not is_admitted:
        texts.append(
            f'the runtime class "{pod.spec.runtime_class_name}" may restrict nodes, '
            "which is known only once a cluster has admitted the pod"
        )
    return Unschedulable(UNMODELLED, tuple(texts), is_unresolvable=True) if texts else None


def _of_volume(volume: Any) -> str | None:
    if not isinstance(volume, dict):
        return None
    for source, words in BINDING_VOLUMES.items():
        if volume.get(source) is not None:
            return f'volume "{volume.get("name", "")}" is {words}, which is not modelled'
    return None
