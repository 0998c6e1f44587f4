"""Affinity terms of a pod about nodes and about other pods, read once for each signature.

# required terms decide where a pod may go
# preferred terms have a weight, which is negative for anti-affinity
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from moorage.api.core.placement import (
    Affinity,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PreferredSchedulingTerm,
)
from moorage.api.core.pod import Pod
from moorage.api.labels import (
    EVERYTHING,
    IN,
    NOT_IN,
    NOTHING,
    Selector,
    SelectorFault,
    joined,
    read_selector,
)
from moorage.api.meta import LabelSelectorRequirement
from moorage.api.node_affinity import NAME_FIELD, NodeTerm, read_node_term, required_nodes

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
HOST_NETWORK_WITH_USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
BIND_MOUNT_OPTIONS = "VolumeBindMountOptions"


class AffinityTerm(Struct, frozen=True, gc=False):
    """Selected pods, and the topology in which to be near them or apart from them."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING
    weight: int = 0

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Return whether the term selects a pod with these labels in this namespace."""
        if namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(labels)
        return False

    def unrolled(self, namespaces: Mapping[str, Mapping[str, str]]) -> AffinityTerm:
        """Return the term with names in place of a namespace selector.

        Only existing namespaces are named; the empty selector stays and selects all.
        """
        if self.namespace_selector in (EVERYTHING, NOTHING):
            return self
        chosen = {n for n, labels in namespaces.items() if self.namespace_selector.matches(labels)}
        return AffinityTerm(
            topology_key=self.topology_key,
            selector=self.selector,
            namespaces=self.namespaces | chosen,
            weight=self.weight,
        )


class AffinityTerms(Struct, frozen=True, gc=False):
    """All terms of one pod about other pods."""

    affinity: tuple[AffinityTerm, ...] = ()  # required
    anti_affinity: tuple[AffinityTerm, ...] = ()  # required
    preferred: tuple[AffinityTerm, ...] = ()

    @property
    def are_none(self) -> bool:
        """Whether there is no term."""
        return not (self.affinity or self.anti_affinity or self.preferred)


NO_TERMS = AffinityTerms()


class PreferredNodeTerm(NamedTuple):
    """Nodes that are better by a weight."""

    term: NodeTerm
    weight: int


# --- other pods ---------------------------------------------------------------------------------


def read_affinity_terms(pod: Pod) -> AffinityTerms | SelectorFault:
    """Return the terms of a pod about others, or all errors of their selectors.

    Of each list the first error is reported.
    """
    affinity = pod.spec.affinity or Affinity()
    near = affinity.pod_affinity or PodAffinity()
    apart = affinity.pod_anti_affinity or PodAntiAffinity()
    if near == PodAffinity() and apart == PodAntiAffinity():
        return NO_TERMS
    required = "required_during_scheduling_ignored_during_execution"
    preferred = "preferred_during_scheduling_ignored_during_execution"
    lists = {
        "requiredAffinityTerms": [(term, 0) for term in getattr(near, required)],
        "requiredAntiAffinityTerms": [(term, 0) for term in getattr(apart, required)],
        "preferredAffinityTerms": [
            (each.pod_affinity_term, each.weight) for each in getattr(near, preferred)
        ],
        "preferredAntiAffinityTerms": [
            (each.pod_affinity_term, -each.weight) for each in getattr(apart, preferred)
        ],
    }
    found: list[tuple[AffinityTerm, ...]] = []
    faults: list[str] = []
    for place, terms in lists.items():
        read = [_read_term(pod, term, weight) for term, weight in terms]
        fault = next((each for each in read if isinstance(each, SelectorFault)), None)
        if fault is not None:
            faults.append(f"{place}: {fault.text}")
        found.append(tuple(each for each in read if isinstance(each, AffinityTerm)))
    if faults:
        return SelectorFault(joined(faults))
    return AffinityTerms(found[0], found[1], (*found[2], *found[3]))


def _read_term(pod: Pod, term: PodAffinityTerm, weight: int) -> AffinityTerm | SelectorFault:
    selector = read_selector(term.label_selector)
    if isinstance(selector, SelectorFault):
        return selector
    namespace_selector = read_selector(term.namespace_selector)
    if isinstance(namespace_selector, SelectorFault):
        return namespace_selector
    names = frozenset(term.namespaces)
    if not names and term.namespace_selector is None:
        names = frozenset((pod.metadata.namespace,))
    return AffinityTerm(
        topology_key=term.topology_key,
        selector=_with_label_keys(selector, pod, term),
        namespaces=names,
        namespace_selector=namespace_selector,
        weight=weight,
    )


def _with_label_keys(selector: Selector, pod: Pod, term: PodAffinityTerm) -> Selector:
    """Return the selector with the pod's own values of `matchLabelKeys` and `mismatchLabelKeys`.

    A cluster writes them into the selector when it creates the pod; then they are there already.
    """
    if term.label_selector is None:
        return selector
    added = []
    for operator, keys in ((IN, term.match_label_keys), (NOT_IN, term.mismatch_label_keys)):
        for key in keys:
            value = pod.metadata.labels.get(key)
            if value is not None and not selector.asks_for(key):
                added.append(LabelSelectorRequirement(key=key, operator=operator, values=(value,)))
    return selector.and_requirements(added)


# --- nodes --------------------------------------------------------------------------------------


def read_preferred_node_terms(pod: Pod) -> tuple[PreferredNodeTerm, ...] | SelectorFault:
    """Return which nodes are better; terms without a weight or requirements count for nothing."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if not affinity:
        return ()
    found, faults = preferred_node_terms(
        affinity.preferred_during_scheduling_ignored_during_execution
    )
    return SelectorFault(joined(faults)) if faults else tuple(found)


def preferred_node_terms(
    terms: Iterable[PreferredSchedulingTerm],
) -> tuple[list[PreferredNodeTerm], list[str]]:
    """Return the terms that count, and the errors in them."""
    found: list[PreferredNodeTerm] = []
    faults: list[str] = []
    for index, term in enumerate(terms):
        preference = term.preference
        if term.weight == 0 or not (preference.match_expressions or preference.match_fields):
            continue
        one = PreferredNodeTerm(read_node_term(preference, f"[{index}]"), term.weight)
        found.append(one)
        faults += one.term.faults
    return found, faults


def read_node_names(pod: Pod) -> frozenset[str] | None:
    """Return the only nodes that required affinity admits, if every term names its nodes."""
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


def _names_of(term: NodeSelectorTerm) -> frozenset[str] | None:
    named = [
        frozenset(requirement.values)
        for requirement in term.match_fields
        if requirement.key == NAME_FIELD and requirement.operator == "In"
    ]
    return frozenset.intersection(*named) if named else None


def read_required_features(pod: Pod) -> frozenset[str]:
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


def _any_has(lists: Iterable[tuple[Any, ...]], key: str, value: str | None) -> bool:
    """Return whether some item has the key: with the value, or with anything that is not empty."""
    for items in lists:
        for item in items:
            found = item.get(key) if isinstance(item, dict) else None
            if found and value in (None, found):
                return True
    return False
