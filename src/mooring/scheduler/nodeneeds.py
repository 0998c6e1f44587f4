"""What a pod needs or likes of a node's own labels, name and features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mooring.api.core.pod import Pod
from mooring.api.labels import EVERYTHING, Selector, SelectorFault, exactly, joined
from mooring.api.nodequery import (
    NAME_FIELD,
    NodeQuery,
    NodeTerm,
    read_node_selector,
    read_node_term,
)
from mooring.api.nodeselector import NodeSelector, NodeSelectorTerm

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
HOST_NETWORK_WITH_USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
BIND_MOUNT_OPTIONS = "VolumeBindMountOptions"


class NodeNeed(NamedTuple):
    """The pod's node selector and its required node affinity: both must hold."""

    labels: Selector
    query: NodeQuery | None

    def is_met(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the pod may go to a node of this name with these labels."""
        if not self.labels.matches(labels):
            return False
        return self.query is None or self.query.matches(name, labels)


class NodeTaste(NamedTuple):
    """Nodes that are better by a weight."""

    term: NodeTerm
    weight: int


def read_need(pod: Pod) -> NodeNeed | None:
    """Return what nodes must be like, or None where every node will do."""
    required = _required(pod)
    if required is None and not pod.spec.node_selector:
        return None
    labels = exactly(pod.spec.node_selector) if pod.spec.node_selector else EVERYTHING
    return NodeNeed(labels, None if required is None else read_node_selector(required))


def read_tastes(pod: Pod) -> tuple[NodeTaste, ...] | SelectorFault:
    """Return which nodes are better; terms without weight or rules say nothing."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if not affinity:
        return ()
    found: list[NodeTaste] = []
    faults: list[str] = []
    for index, term in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        if term.weight == 0 or _is_empty(term.preference):
            continue
        taste = NodeTaste(read_node_term(term.preference, f"[{index}]"), term.weight)
        found.append(taste)
        faults += taste.term.faults
    return SelectorFault(joined(faults)) if faults else tuple(found)


def read_node_names(pod: Pod) -> frozenset[str] | None:
    """Return the only nodes that the required affinity can mean, if it names them in every term."""
    required = _required(pod)
    if required is None or not required.node_selector_terms:
        return None
    names: frozenset[str] = frozenset()
    for term in required.node_selector_terms:
        of_term = _names_of(term)
        if of_term is None:
            return None
        names |= of_term
    return names


def read_features(pod: Pod) -> frozenset[str]:
    """Return the features that a node must have declared to run the pod."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    found = set()
    if _any_has((c.restart_policy_rules for c in containers), "action", "RestartAllContainers"):
        found.add(RESTART_ALL_CONTAINERS)
    if pod.spec.host_network and pod.spec.host_users is False:
        found.add(HOST_NETWORK_WITH_USER_NAMESPACES)
    if _any_has((c.volume_mounts for c in containers), "bindMountOptions", None):
        found.add(BIND_MOUNT_OPTIONS)
    return frozenset(found)


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not (term.match_expressions or term.match_fields)


def _names_of(term: NodeSelectorTerm) -> frozenset[str] | None:
    named = [
        frozenset(requirement.values)
        for requirement in term.match_fields
        if requirement.key == NAME_FIELD and requirement.operator == "In"
    ]
    return frozenset.intersection(*named) if named else None


def _any_has(lists: Iterable[tuple[Any, ...]], key: str, value: str | None) -> bool:
    """Return whether some item has the key: with the value, or with anything that is not empty."""
    for items in lists:
        for item in items:
            found = item.get(key) if isinstance(item, dict) else None
            if found and value in (None, found):
                return True
    return False
