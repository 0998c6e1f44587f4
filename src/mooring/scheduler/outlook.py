"""How pods of one shape see the other pods: counts by topology, kept while pods come and go.

    # place: a topology's key and one value of it, such as (zone, a)
    # repelled: how many terms of placed pods forbid a place to this shape
    # near, apart: how many placed pods this shape's own required terms mean, by place
    # pull: by place the sum of weights, of this shape's preferences and of placed pods' terms
    # tally: for a spread constraint, the pods it means by domain

An outlook is made from the census once, for each shape that is asked about: a comparison for
each kind of pods and each kind of terms, and a look at each node if the shape is spread. After
that it follows the journal of the fleet: a few comparisons for each pod that came or went. The
filters and scores of a node are then look-ups of its labels.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.scheduler.census import Kind, Role, add, kind_of, labels_of, terms_of
from mooring.scheduler.podterms import PodTerm
from mooring.scheduler.shape import Occupant, PodShape
from mooring.scheduler.tally import Tally
from mooring.scheduler.world import World

Place = tuple[str, str]

REQUIRED_WEIGHT = 1  # what a placed pod's required term weighs in scores


class Outlook:
    """What the pods in a fleet mean for pods of one shape."""

    def __init__(self, shape: PodShape, world: World) -> None:
        self.shape = shape
        self.world = world
        terms = shape.terms
        self._near = tuple(term.unrolled(world.namespaces) for term in terms.near)
        self._apart = tuple(term.unrolled(world.namespaces) for term in terms.apart)
        self._preferred = tuple(term.unrolled(world.namespaces) for term in terms.preferred)
        self._namespace_labels = world.namespaces.get(shape.namespace, {})
        self.repelled: dict[Place, int] = {}
        self.near: dict[Place, int] = {}
        self.apart: dict[Place, int] = {}
        self.pulls: dict[str, dict[str, int]] = {}
        spreading = shape.spreading
        self.hard = _tallies(shape, world, is_hard=True) if spreading.hard else ()
        self.soft = _tallies(shape, world, is_hard=False) if spreading.soft else ()
        self.is_near_itself = _all_mean(self._near, shape.namespace, shape.labels)
        # Whether pods without terms of their own cannot change anything here.
        self.is_idle = not (self._near or self._apart or self._preferred or self.hard or self.soft)
        self._take_census()

    def count(self, occupant: Occupant, node: str, sign: int) -> None:
        """Follow a pod that came to a node (sign 1) or left it (-1)."""
        by_node = {node: sign}
        if not self.is_idle:
            self._count_kind(kind_of(occupant), by_node)
        for role, term in terms_of(occupant):
            self._count_term(role, term, by_node)

    # --- making ---------------------------------------------------------------------------------

    def _take_census(self) -> None:
        census = self.world.census
        if not self.is_idle:
            for kind, by_node in census.kinds_in(self._namespaces()):
                self._count_kind(kind, by_node)
        for (role, term), by_node in census.terms.items():
            self._count_term(role, term, by_node)

    def _namespaces(self) -> frozenset[str] | None:
        """Return the namespaces whose pods can matter; None for all."""
        terms = (*self._near, *self._apart, *self._preferred)
        if any(term.namespace_selector.is_empty for term in terms):
            return None
        return frozenset((self.shape.namespace,)).union(*(term.namespaces for term in terms))

    def _count_kind(self, kind: Kind, by_node: Mapping[str, int]) -> None:
        """Count pods of one kind: how they stand to this shape is worked out once for all."""
        labels = labels_of(kind)
        if _all_mean(self._near, kind.namespace, labels):
            for term in self._near:
                self._at_places(self.near, term.topology_key, by_node)
        for term in self._apart:
            if term.matches(kind.namespace, labels, {}):
                self._at_places(self.apart, term.topology_key, by_node)
        for term in self._preferred:
            if term.matches(kind.namespace, labels, {}):
                self._pull(term.topology_key, term.weight, by_node)
        for tally in (*self.hard, *self.soft):
            if tally.means(kind, labels):
                tally.count(by_node)

    def _count_term(self, role: Role, term: PodTerm, by_node: Mapping[str, int]) -> None:
        """Count placed pods' terms, if they mean pods of this shape."""
        shape = self.shape
        if not term.matches(shape.namespace, shape.labels, self._namespace_labels):
            return
        if role is Role.APART:
            self._at_places(self.repelled, term.topology_key, by_node)
        else:
            weight = term.weight if role is Role.PREFERRED else REQUIRED_WEIGHT
            self._pull(term.topology_key, weight, by_node)

    def _at_places(self, counts: dict[Place, int], key: str, by_node: Mapping[str, int]) -> None:
        for node, count in by_node.items():
            value = self.world.nodes[node].facts.labels.get(key)
            if value is not None:
                add(counts, (key, value), count)

    def _pull(self, key: str, weight: int, by_node: Mapping[str, int]) -> None:
        pulls = self.pulls.setdefault(key, {})
        for node, count in by_node.items():
            value = self.world.nodes[node].facts.labels.get(key)
            if value is not None:
                add(pulls, value, weight * count)
        if not pulls:
            del self.pulls[key]


def _all_mean(terms: tuple[PodTerm, ...], namespace: str, labels: Mapping[str, str]) -> bool:
    """Return whether unrolled terms, of which there is one at least, all mean such pods."""
    return bool(terms) and all(term.matches(namespace, labels, {}) for term in terms)


def _tallies(shape: PodShape, world: World, *, is_hard: bool) -> tuple[Tally, ...]:
    """Return empty tallies; nodes must have the labels of all constraints of the same sort."""
    spreading = shape.spreading
    constraints = spreading.hard if is_hard else spreading.soft
    needs_all = is_hard or spreading.needs_all_keys
    keys = tuple(constraint.topology_key for constraint in constraints) if needs_all else ()
    return tuple(Tally(constraint, shape, keys, world.nodes) for constraint in constraints)
