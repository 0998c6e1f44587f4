"""On which nodes a DaemonSet wants a pod, and how the pod is tied to its node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from mooring.api.core import Node, Pod
from mooring.api.core.placement import (
    NO_EXECUTE,
    NO_SCHEDULE,
    Affinity,
    NodeAffinity,
    Toleration,
)
from mooring.api.core.pod import PodSpec, PodTemplateSpec
from mooring.api.labels import IN
from mooring.api.nodeneeds import read_need
from mooring.api.nodequery import NAME_FIELD
from mooring.api.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.tolerations import HARD_EFFECTS, Tolerations

# Daemons stay on nodes in trouble, and start on nodes that others are kept away from.
_TROUBLES: Final = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_NETWORK_TROUBLE: Final = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


def nodes_for(template: PodTemplateSpec, nodes: Iterable[Node]) -> Iterator[str]:
    """Give the names of the nodes that a pod of the template may go to."""
    pod = Pod(metadata=template.metadata, spec=template.spec)
    need = read_need(pod)
    tolerations = Tolerations(daemon_tolerations(template.spec))
    for node in nodes:
        name, labels = node.metadata.name, node.metadata.labels
        if template.spec.node_name not in ("", name):
            continue
        if need is not None and not need.is_met(name, labels):
            continue
        hard = (taint for taint in node.spec.taints if taint.effect in HARD_EFFECTS)
        if tolerations.tolerate_all(hard):
            yield name


def daemon_tolerations(spec: PodSpec) -> tuple[Toleration, ...]:
    """Return the tolerations of a template with those that every daemon has."""
    troubles = (*_TROUBLES, _NETWORK_TROUBLE) if spec.host_network else _TROUBLES
    added = [Toleration(key=key, operator="Exists", effect=effect) for key, effect in troubles]
    # One that is there already is replaced: it must hold without end.
    own = (each for each in spec.tolerations if replace(each, toleration_seconds=None) not in added)
    return (*own, *added)


def pinned(spec: PodSpec, node: str) -> PodSpec:
    """Return the spec of a daemon that can go to this node only."""
    affinity = spec.affinity or Affinity()
    of_node = affinity.node_affinity or NodeAffinity()
    name = NodeSelectorRequirement(key=NAME_FIELD, operator=IN, values=(node,))
    term = NodeSelectorTerm(match_fields=(name,))
    required = NodeSelector(node_selector_terms=(term,))
    of_node = replace(of_node, required_during_scheduling_ignored_during_execution=required)
    return replace(
        spec,
        affinity=replace(affinity, node_affinity=of_node),
        tolerations=daemon_tolerations(spec),
    )


def node_of_daemon(pod: Pod) -> str:
    """Return the node that a daemon has, or waits for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    for term in (required and required.node_selector_terms) or ():
        for field in term.match_fields:
            if field.key == NAME_FIELD and field.operator == IN and len(field.values) == 1:
                return field.values[0]
    return ""
