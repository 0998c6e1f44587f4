"""Pods by topology: which are where, and what that means for pods of one signature.

    # pod kind: pods of one namespace with the same labels, terminating or not; few, for many pods
    # topology pair: a topology key and one value, such as (zone, a)
    # domain: the nodes with one value of a topology key

`PodIndex` follows every pod that comes or goes, at the cost of a look-up or two. Finding the pods
that match a selector costs a comparison for each kind, not for each pod.

A `TopologyState` is built from the index once for each signature that is scheduled: a comparison
for each kind of pods and each affinity term of theirs, and a look at each node if the signature is
spread. After that it follows the moves of pods in the node snapshot: a few comparisons for each pod
that came or went. The filters and scores of a node are then look-ups of its labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple, TypeVar

from moorage.api.core.node import ContainerImage
from moorage.scheduler.affinity import AffinityTerm
from moorage.scheduler.node_info import NodeFacts, NodeInfo
from moorage.scheduler.pod_signature import LabelsKey, PodInfo, PodSignature
from moorage.scheduler.topology_spread import HOSTNAME, SpreadConstraint

NO_DOMAIN_MINIMUM = 2**31 - 1  # what Kubernetes takes for the minimum over no domain

TopologyPair = tuple[str, str]
PodsByNode = dict[str, int]
K = TypeVar("K")


# --- which pods are where -------------------------------------------------------------------------


class PodKind(NamedTuple):
    """Pods that no selector can distinguish."""

    namespace: str
    labels_key: LabelsKey
    is_terminating: bool


class TermRole(Enum):
    """The effect of a placed pod's term on a pod that is being scheduled."""

    AFFINITY = "affinity"  # required, and so it attracts
    ANTI_AFFINITY = "anti-affinity"  # required: it forbids
    PREFERRED = "preferred"


class PodIndex:
    """Numbers of pods by kind and node, and of their terms; add and remove are exactly inverse."""

    def __init__(self) -> None:
        self.kinds: dict[str, dict[PodKind, PodsByNode]] = {}
        self.terms: dict[tuple[TermRole, AffinityTerm], PodsByNode] = {}
        self.priorities: dict[int, int] = {}  # pods by priority

    def count(self, pod: PodInfo, node: str, sign: int) -> None:
        """Add a pod on a node (sign 1), or remove it (-1)."""
        kind = _kind_of(pod)
        in_namespace = self.kinds.setdefault(kind.namespace, {})
        _count(in_namespace, kind, node, sign)
        if not in_namespace:
            del self.kinds[kind.namespace]
        for role, term in _terms_of(pod):
            _count(self.terms, (role, term), node, sign)
        _add(self.priorities, pod.priority, sign)

    def kinds_in(self, namespaces: frozenset[str] | None) -> Iterator[tuple[PodKind, PodsByNode]]:
        """Yield the kinds in some namespaces, or in all, with the nodes they are on."""
        for namespace in self.kinds if namespaces is None else namespaces:
            yield from self.kinds.get(namespace, {}).items()


class ImageIndex:
    """Which nodes have which image, and how large it is there."""

    def __init__(self) -> None:
        self._sizes: dict[str, dict[str, int]] = {}

    def sizes(self, image: str) -> Mapping[str, int]:
        """Return the size in bytes by node."""
        return self._sizes.get(image, {})

    def put(self, node: str, images: Iterable[ContainerImage]) -> None:
        """Add the images of a node; of several with one name the first counts."""
        for image in images:
            for name in image.names or ():
                self._sizes.setdefault(name, {}).setdefault(node, image.size_bytes)

    def remove(self, node: str, images: Iterable[ContainerImage]) -> None:
        """Remove the images of a node."""
        for image in images:
            for name in image.names or ():
                by_node = self._sizes.get(name, {})
                by_node.pop(node, None)
                if not by_node:
                    self._sizes.pop(name, None)


class TopologyInputs:
    """What topology states are built from, and plugins read; only the node snapshot changes it."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.pod_index = PodIndex()
        self.images = ImageIndex()
        self.unschedulable_nodes = 0
        self.hard_tainted_nodes = 0
        self.soft_tainted_nodes = 0
        # Extended resources that device classes provide, where a node does not have them itself.
        self.class_resources: frozenset[str] = frozenset()
        # By node and resource: how many devices stand for it, and how many of them are in use.
        self.device_totals: Callable[[str, str], tuple[int, int]] = lambda _node, _resource: (0, 0)


# --- what that means for pods of one signature ----------------------------------------------------


class DomainCounts:
    """The pods that one spread constraint selects, by domain; by node for the host topology.

    Building it looks at every node once: which nodes make domains depends on the pod's node
    affinity and tolerations. Counting a pod is then two look-ups; the minimum is found when it is
    read after a change, at the cost of a look at each domain.
    """

    def __init__(
        self,
        constraint: SpreadConstraint,
        signature: PodSignature,
        required_keys: tuple[str, ...],
        nodes: Mapping[str, NodeInfo],
    ) -> None:
        self.constraint = constraint
        self._namespace = signature.namespace
        self._domain_of = {
            name: info.facts.labels.get(constraint.topology_key, "")
            for name, info in nodes.items()
            if _makes_domain(info.facts, constraint, signature, required_keys)
        }
        self.pods_in: dict[str, int] = dict.fromkeys(self._domain_of.values(), 0)
        self.pods_on: dict[str, int] = {}
        self._is_by_host = constraint.topology_key == HOSTNAME
        self._minimum: int | None = None

    @property
    def minimum(self) -> int:
        """The fewest pods in a domain; 0 if there are too few domains."""
        if self._minimum is None:
            self._minimum = min(self.pods_in.values(), default=NO_DOMAIN_MINIMUM)
            if len(self.pods_in) < self.constraint.min_domains:
                self._minimum = 0
        return self._minimum

    def selects(self, kind: PodKind, labels: Mapping[str, str]) -> bool:
        """Return whether pods of the kind are counted; an empty selector counts none."""
        if kind.is_terminating or kind.namespace != self._namespace:
            return False
        selector = self.constraint.selector
        return not selector.is_empty and selector.matches(labels)

    def count(self, by_node: Mapping[str, int]) -> None:
        """Count pods on nodes."""
        for node, count in by_node.items():
            if self._is_by_host:
                _add(self.pods_on, node, count)
            domain = self._domain_of.get(node)
            if domain is not None:
                self.pods_in[domain] += count
                self._minimum = None


class TopologyState:
    """The effect of placed pods on pods of one signature, as counts by topology pair.

    affinity, anti_affinity   placed pods that the signature's own required terms select
    existing_anti_affinity    required terms of placed pods that keep the signature away
    scores                    sums of weights: its preferences, and the terms of placed pods
    hard_spread, soft_spread  for each spread constraint the pods it selects, by domain
    """

    def __init__(self, signature: PodSignature, inputs: TopologyInputs) -> None:
        self.signature = signature
        self.inputs = inputs
        terms, constraints = signature.affinity_terms, signature.spread_constraints
        namespaces = inputs.namespaces
        self._affinity = tuple(term.unrolled(namespaces) for term in terms.affinity)
        self._anti_affinity = tuple(term.unrolled(namespaces) for term in terms.anti_affinity)
        self._preferred = tuple(term.unrolled(namespaces) for term in terms.preferred)
        self._namespace_labels = namespaces.get(signature.namespace, {})
        self.existing_anti_affinity: dict[TopologyPair, int] = {}
        self.affinity: dict[TopologyPair, int] = {}
        self.anti_affinity: dict[TopologyPair, int] = {}
        self.scores: dict[str, dict[str, int]] = {}  # by key and value
        hard, soft = constraints.hard, constraints.soft
        self.hard_spread = _domain_counts(hard, signature, inputs) if hard else ()
        needs_all = constraints.needs_all_keys
        self.soft_spread = (
            _domain_counts(soft, signature, inputs, needs_all=needs_all) if soft else ()
        )
        self.matches_itself = _all_match(self._affinity, signature.namespace, signature.labels)
        # Whether pods without terms of their own cannot change anything here.
        self.is_idle = not (
            self._affinity or self._anti_affinity or self._preferred or hard or soft
        )
        if not self.is_idle:
            for kind, by_node in inputs.pod_index.kinds_in(self._namespaces()):
                self._count_kind(kind, by_node)
        reading = signature.reading
        self._required_weight = reading.required_affinity_weight
        self._scores_placed = bool(terms.preferred) or not reading.ignores_placed_preferences
        for (role, term), by_node in inputs.pod_index.terms.items():
            self._count_term(role, term, by_node)

    def count(self, pod: PodInfo, node: str, sign: int) -> None:
        """Follow a pod that came to a node (sign 1) or left it (-1)."""
        by_node = {node: sign}
        if not self.is_idle:
            self._count_kind(_kind_of(pod), by_node)
        for role, term in _terms_of(pod):
            self._count_term(role, term, by_node)

    def _namespaces(self) -> frozenset[str] | None:
        """Return the namespaces whose pods can matter; None for all."""
        terms = (*self._affinity, *self._anti_affinity, *self._preferred)
        if any(term.namespace_selector.is_empty for term in terms):
            return None
        return frozenset((self.signature.namespace,)).union(*(term.namespaces for term in terms))

    def _count_kind(self, kind: PodKind, by_node: Mapping[str, int]) -> None:
        """Count pods of one kind, which is matched once for all of them."""
        labels = dict(kind.labels_key)
        if _all_match(self._affinity, kind.namespace, labels):
            for term in self._affinity:
                self._count_pairs(self.affinity, term.topology_key, by_node)
        for term in self._anti_affinity:
            if term.matches(kind.namespace, labels, {}):
                self._count_pairs(self.anti_affinity, term.topology_key, by_node)
        for term in self._preferred:
            if term.matches(kind.namespace, labels, {}):
                self._add_score(term.topology_key, term.weight, by_node)
        for counts in (*self.hard_spread, *self.soft_spread):
            if counts.selects(kind, labels):
                counts.count(by_node)

    def _count_term(self, role: TermRole, term: AffinityTerm, by_node: Mapping[str, int]) -> None:
        """Count terms of placed pods, if they select pods of this signature."""
        signature = self.signature
        if not term.matches(signature.namespace, signature.labels, self._namespace_labels):
            return
        if role is TermRole.ANTI_AFFINITY:
            self._count_pairs(self.existing_anti_affinity, term.topology_key, by_node)
        elif self._scores_placed:
            weight = term.weight if role is TermRole.PREFERRED else self._required_weight
            if weight:
                self._add_score(term.topology_key, weight, by_node)

    def _count_pairs(
        self, counts: dict[TopologyPair, int], key: str, by_node: Mapping[str, int]
    ) -> None:
        for node, count in by_node.items():
            value = self.inputs.nodes[node].facts.labels.get(key)
            if value is not None:
                _add(counts, (key, value), count)

    def _add_score(self, key: str, weight: int, by_node: Mapping[str, int]) -> None:
        scores = self.scores.setdefault(key, {})
        for node, count in by_node.items():
            value = self.inputs.nodes[node].facts.labels.get(key)
            if value is not None:
                _add(scores, value, weight * count)
        if not scores:
            del self.scores[key]


def _kind_of(pod: PodInfo) -> PodKind:
    signature = pod.signature
    return PodKind(signature.namespace, signature.labels_key, pod.is_terminating)


def _terms_of(pod: PodInfo) -> Iterator[tuple[TermRole, AffinityTerm]]:
    terms = pod.signature.affinity_terms
    for term in terms.anti_affinity:
        yield TermRole.ANTI_AFFINITY, term
    for term in terms.affinity:
        yield TermRole.AFFINITY, term
    for term in terms.preferred:
        yield TermRole.PREFERRED, term


def _add(counts: dict[K, int], key: K, count: int) -> None:
    """Add to a count; a zero leaves no trace, so that removing undoes adding."""
    total = counts.get(key, 0) + count
    if total:
        counts[key] = total
    else:
        counts.pop(key, None)


def _count(table: dict[K, PodsByNode], key: K, node: str, sign: int) -> None:
    by_node = table.setdefault(key, {})
    _add(by_node, node, sign)
    assert by_node.get(node, 0) >= 0, "a pod is removed that was never added"
    if not by_node:
        del table[key]


def _all_match(terms: tuple[AffinityTerm, ...], namespace: str, labels: Mapping[str, str]) -> bool:
    """Return whether unrolled terms, at least one, all select such pods."""
    return bool(terms) and all(term.matches(namespace, labels, {}) for term in terms)


def _domain_counts(
    constraints: tuple[SpreadConstraint, ...],
    signature: PodSignature,
    inputs: TopologyInputs,
    *,
    needs_all: bool = True,
) -> tuple[DomainCounts, ...]:
    """Return empty counts; nodes must have the labels of all constraints of the same sort."""
    keys = tuple(constraint.topology_key for constraint in constraints) if needs_all else ()
    return tuple(DomainCounts(each, signature, keys, inputs.nodes) for each in constraints)


def _makes_domain(
    facts: NodeFacts,
    constraint: SpreadConstraint,
    signature: PodSignature,
    required_keys: tuple[str, ...],
) -> bool:
    labels = facts.labels
    if not all(key in labels for key in required_keys):
        return False
    need = signature.required_node_affinity
    if constraint.honors_affinity and need and not need.is_met(facts.name, labels):
        return False
    return not constraint.honors_taints or signature.tolerations.tolerate_all(facts.hard_taints)
