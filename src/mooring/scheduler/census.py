"""Which kinds of pods are on which nodes, and which terms those pods bring with them.

    # kind: pods of one namespace with the same labels, terminating or not; few, for many pods
    # terms: affinity of pods that are placed, by what it says; on which nodes, and how often

The census follows every pod that comes or goes, for the price of a look-up or two. To ask who
matches a selector costs a comparison for each kind, not for each pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple, TypeVar

from mooring.scheduler.podterms import PodTerm
from mooring.scheduler.shape import LabelsKey, Occupant

PodsByNode = dict[str, int]
K = TypeVar("K")


class Kind(NamedTuple):
    """Pods that no selector can tell apart."""

    namespace: str
    labels_key: LabelsKey
    is_terminating: bool


class Role(Enum):
    """What a term of a placed pod does to a pod that looks for a node."""

    NEAR = "near"  # required, and so it attracts
    APART = "apart"  # required: it forbids
    PREFERRED = "preferred"


class Census:
    """Counts of kinds and of terms by node; add and remove are exactly inverse."""

    def __init__(self) -> None:
        self.kinds: dict[str, dict[Kind, PodsByNode]] = {}
        self.terms: dict[tuple[Role, PodTerm], PodsByNode] = {}
        self.priorities: dict[int, int] = {}  # pods by priority

    def count(self, occupant: Occupant, node: str, sign: int) -> None:
        """Add a pod on a node, or take it away."""
        kind = kind_of(occupant)
        in_namespace = self.kinds.setdefault(kind.namespace, {})
        _count(in_namespace, kind, node, sign)
        if not in_namespace:
            del self.kinds[kind.namespace]
        for role, term in terms_of(occupant):
            _count(self.terms, (role, term), node, sign)
        add(self.priorities, occupant.priority, sign)

    def kinds_in(self, namespaces: frozenset[str] | None) -> Iterator[tuple[Kind, PodsByNode]]:
        """Yield the kinds in some namespaces, or in all, with the nodes they are on."""
        for namespace in self.kinds if namespaces is None else namespaces:
            yield from self.kinds.get(namespace, {}).items()


def kind_of(occupant: Occupant) -> Kind:
    """Return the kind that a pod belongs to."""
    shape = occupant.shape
    return Kind(shape.namespace, shape.labels_key, occupant.is_terminating)


def terms_of(occupant: Occupant) -> Iterator[tuple[Role, PodTerm]]:
    """Yield the terms that a pod brings with it."""
    terms = occupant.shape.terms
    for term in terms.apart:
        yield Role.APART, term
    for term in terms.near:
        yield Role.NEAR, term
    for term in terms.preferred:
        yield Role.PREFERRED, term


def labels_of(kind: Kind) -> Mapping[str, str]:
    """Return the labels of the pods of a kind."""
    return dict(kind.labels_key)


def add(counts: dict[K, int], key: K, count: int) -> None:
    """Add to a count; what is zero leaves no trace, so that taking away undoes adding."""
    total = counts.get(key, 0) + count
    if total:
        counts[key] = total
    else:
        counts.pop(key, None)


def _count(table: dict[K, PodsByNode], key: K, node: str, sign: int) -> None:
    by_node = table.setdefault(key, {})
    add(by_node, node, sign)
    assert by_node.get(node, 0) >= 0, "a pod is taken away that was never added"
    if not by_node:
        del table[key]
