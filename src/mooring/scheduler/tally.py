"""The pods that one spread constraint means, by domain.

Making a tally looks at every node once: which nodes make domains depends on the pod's node
affinity and tolerations. Counting a pod is then two look-ups; the minimum is found when it is
asked for after a change, at the price of a look at each domain.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.scheduler.census import Kind, add
from mooring.scheduler.nodestate import NodeFacts, NodeState
from mooring.scheduler.shape import PodShape
from mooring.scheduler.spreading import HOSTNAME, SpreadConstraint

NO_DOMAIN_MINIMUM = 2**31 - 1  # what Kubernetes takes for the minimum over no domain


class Tally:
    """Counts by domain, and by node where the topology is the host itself."""

    def __init__(
        self,
        constraint: SpreadConstraint,
        shape: PodShape,
        needed_keys: tuple[str, ...],
        nodes: Mapping[str, NodeState],
    ) -> None:
        self.constraint = constraint
        self._namespace = shape.namespace
        self._domain_of = {
            name: state.facts.labels.get(constraint.topology_key, "")
            for name, state in nodes.items()
            if _makes_domain(state.facts, constraint, shape, needed_keys)
        }
        self.pods_in: dict[str, int] = dict.fromkeys(self._domain_of.values(), 0)
        self.pods_on: dict[str, int] = {}
        self._is_by_host = constraint.topology_key == HOSTNAME
        self._minimum: int | None = None

    @property
    def minimum(self) -> int:
        """The fewest pods in a domain; none if there are too few domains."""
        if self._minimum is None:
            self._minimum = min(self.pods_in.values(), default=NO_DOMAIN_MINIMUM)
            if len(self.pods_in) < self.constraint.min_domains:
                self._minimum = 0
        return self._minimum

    def means(self, kind: Kind, labels: Mapping[str, str]) -> bool:
        """Return whether pods of the kind are counted; an empty selector counts none."""
        if kind.is_terminating or kind.namespace != self._namespace:
            return False
        selector = self.constraint.selector
        return not selector.is_empty and selector.matches(labels)

    def count(self, by_node: Mapping[str, int]) -> None:
        """Count pods on nodes."""
        for node, count in by_node.items():
            if self._is_by_host:
                add(self.pods_on, node, count)
            domain = self._domain_of.get(node)
            if domain is not None:
                self.pods_in[domain] += count
                self._minimum = None


def _makes_domain(
    facts: NodeFacts, constraint: SpreadConstraint, shape: PodShape, needed_keys: tuple[str, ...]
) -> bool:
    labels = facts.labels
    if not all(key in labels for key in needed_keys):
        return False
    if constraint.honors_affinity and shape.need and not shape.need.is_met(facts.name, labels):
        return False
    return not constraint.honors_taints or shape.tolerations.tolerate_all(facts.hard_taints)
