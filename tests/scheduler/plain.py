"""Company and spreading as one would write them down: walk over all pods, for every node.

It is what the topology states are compared with. It reads the API objects itself and shares nothing
with them but the matching of selectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moorage.api.core.node import Node
from moorage.api.core.placement import PodAffinityTerm, TopologySpreadConstraint
from moorage.api.core.pod import Pod
from moorage.api.labels import EVERYTHING, Selector, read_selector

Labels = Mapping[str, str]


class World(NamedTuple):
    nodes: Mapping[str, Node]
    placed: list[tuple[Pod, str]]
    namespaces: Mapping[str, Labels]


def selector(term: PodAffinityTerm | TopologySpreadConstraint) -> Selector:
    found = read_selector(term.label_selector)
    assert isinstance(found, Selector)
    return found


def means(
    term: PodAffinityTerm, owner: Pod, other: Pod, namespaces: Mapping[str, Labels], known: bool
) -> bool:
    """Return whether a term of one pod means another pod.

    Of a pod that looks for a node only namespaces that are known can be selected by labels.
    """
    names = set(term.namespaces)
    if not names and term.namespace_selector is None:
        names = {owner.metadata.namespace}
    namespace = other.metadata.namespace
    if namespace not in names:
        chosen = read_selector(term.namespace_selector)
        assert isinstance(chosen, Selector)
        if known and chosen != EVERYTHING and namespace not in namespaces:
            return False
        if not chosen.matches(namespaces.get(namespace, {})):
            return False
    return selector(term).matches(other.metadata.labels)


def near_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity and pod.spec.affinity.pod_affinity
    return affinity.required_during_scheduling_ignored_during_execution if affinity else ()


def apart_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity and pod.spec.affinity.pod_anti_affinity
    return affinity.required_during_scheduling_ignored_during_execution if affinity else ()


def company(pod: Pod, node: Node, world: World) -> str | None:
    """Return which of the three rules about company refuses the node."""
    if near_terms(pod) and not is_near(pod, node, world):
        return "near"
    for other, where in world.placed:
        for term in apart_terms(pod):
            if shares(term, node, world.nodes[where]) and means(
                term, pod, other, world.namespaces, known=True
            ):
                return "apart"
    for other, where in world.placed:
        for term in apart_terms(other):
            if shares(term, node, world.nodes[where]) and means(
                term, other, pod, world.namespaces, known=False
            ):
                return "repelled"
    return None


def shares(term: PodAffinityTerm, node: Node, other: Node) -> bool:
    value = node.metadata.labels.get(term.topology_key)
    return value is not None and other.metadata.labels.get(term.topology_key) == value


def is_near(pod: Pod, node: Node, world: World) -> bool:
    terms = near_terms(pod)

    def all_mean(other: Pod) -> bool:
        return all(means(term, pod, other, world.namespaces, known=True) for term in terms)

    if any(term.topology_key not in node.metadata.labels for term in terms):
        return False
    meant = [world.nodes[where] for other, where in world.placed if all_mean(other)]
    if all(any(shares(term, node, there) for there in meant) for term in terms):
        return True
    keys = {term.topology_key for term in terms}
    is_anywhere = any(keys & there.metadata.labels.keys() for there in meant)
    return not is_anywhere and all_mean(pod)


def spread(pod: Pod, node: Node, world: World) -> str | None:
    """Return whether the node is uneven or no domain at all."""
    hard = [
        constraint
        for constraint in pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == "DoNotSchedule"
    ]
    keys = [constraint.topology_key for constraint in hard]
    for constraint in hard:
        here = node.metadata.labels.get(constraint.topology_key)
        if here is None:
            return "no domain"
        counts = domains(pod, constraint, keys, world)
        least = min(counts.values(), default=2**31 - 1)
        if len(counts) < (constraint.min_domains or 1):
            least = 0
        itself = selector(constraint).matches(pod.metadata.labels)
        if counts.get(here, 0) + itself - least > constraint.max_skew:
            return "uneven"
    return None


def domains(
    pod: Pod, constraint: TopologySpreadConstraint, keys: Iterable[str], world: World
) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name, node in world.nodes.items():
        labels = node.metadata.labels
        if not set(keys) <= labels.keys():
            continue
        wanted = pod.spec.node_selector
        if constraint.node_affinity_policy != "Ignore" and not wanted.items() <= labels.items():
            continue
        domain = labels[constraint.topology_key]
        counts[domain] = counts.get(domain, 0) + pods_on(pod, constraint, name, world)
    return counts


def pods_on(pod: Pod, constraint: TopologySpreadConstraint, name: str, world: World) -> int:
    chosen = selector(constraint)
    if chosen == EVERYTHING:
        return 0
    return sum(
        where == name
        and other.metadata.namespace == pod.metadata.namespace
        and other.metadata.deletion_timestamp is None
        and chosen.matches(other.metadata.labels)
        for other, where in world.placed
    )
