"""What a pod needs of a node's name and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mooring.api.core.pod import Pod
from mooring.api.labels import EVERYTHING, Selector, exactly
from mooring.api.nodequery import NodeQuery, read_node_selector
from mooring.api.nodeselector import NodeSelector


class NodeNeed(NamedTuple):
    """The pod's node selector and its required node affinity: both must hold."""

    labels: Selector
    query: NodeQuery | None

    def is_met(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the pod may go to a node of this name with these labels."""
        if not self.labels.matches(labels):
            return False
        return self.query is None or self.query.matches(name, labels)


def read_need(pod: Pod) -> NodeNeed | None:
    """Return what nodes must be like, or None where every node will do."""
    required = required_nodes(pod)
    if required is None and not pod.spec.node_selector:
        return None
    labels = exactly(pod.spec.node_selector) if pod.spec.node_selector else EVERYTHING
    return NodeNeed(labels, None if required is None else read_node_selector(required))


def required_nodes(pod: Pod) -> NodeSelector | None:
    """Return which nodes the affinity of a pod admits, if it has one."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None
