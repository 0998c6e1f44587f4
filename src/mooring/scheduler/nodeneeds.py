"""What a pod likes of a node's own labels, and what it needs of its name and features."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from mooring.api.core.pod import Pod
from mooring.api.labels import SelectorFault, joined
from mooring.api.nodeneeds import required_nodes
from mooring.api.nodequery import NAME_FIELD, NodeTerm, read_node_term
from mooring.api.nodeselector import NodeSelectorTerm

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
HOST_NETWORK_WITH_USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
BIND_MOUNT_OPTIONS = "VolumeBindMountOptions"


class NodeTaste(NamedTuple):
    """Nodes that are better by a weight."""

    term: NodeTerm
    weight: int


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
    required = required_nodes(pod)
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
