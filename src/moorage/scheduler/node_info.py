"""A node with the pods on it, as a value: adding a pod gives another value.

    # facts: what follows from the node alone, read once for each version of it
    # requested: sums over the pods on it, kept by adding and subtracting, never summed up again

`with_pod` and `without_pod` are exactly inverse. Both cost a copy of the table of pods and a few
additions, some µs, whatever the pods are. Undoing a trial is keeping the earlier value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from moorage.api.core.node import Node
from moorage.api.core.placement import PREFER_NO_SCHEDULE, Taint
from moorage.api.core.resources import PODS
from moorage.api.quantity import Quantity
from moorage.api.tolerations import HARD_EFFECTS
from moorage.scheduler.pod_signature import PodInfo
from moorage.scheduler.resources import (
    NOTHING_FREE,
    FreeResources,
    NonZeroRequests,
    ResourceAmounts,
    UsedPorts,
    free_resources,
    resource_amounts,
    with_ports,
    without_ports,
)

NodeReaders = Mapping[str, Callable[[Node], Hashable]]  # by plugin
NO_READERS: NodeReaders = {}


class NodeFacts(Struct, frozen=True, gc=False):
    """What plugins read of a node itself."""

    name: str
    labels: Mapping[str, str]
    is_unschedulable: bool
    hard_taints: tuple[Taint, ...]  # NoSchedule and NoExecute
    soft_taints: tuple[Taint, ...]  # PreferNoSchedule
    allocatable: ResourceAmounts
    pods_max: int
    features: frozenset[str]
    by_plugin: Mapping[str, Any] = {}  # what plugins read themselves


class NodeInfo(Struct, frozen=True, gc=False):
    """A node and the requests of the pods on it."""

    facts: NodeFacts
    pods: Mapping[str, PodInfo] = {}
    requested: ResourceAmounts = ResourceAmounts()
    non_zero_requested: NonZeroRequests = NonZeroRequests(0, 0)
    used_ports: UsedPorts = {}
    free: FreeResources = NOTHING_FREE  # follows from the others

    def __post_init__(self) -> None:
        pods_free = self.facts.pods_max - len(self.pods)
        free = free_resources(
            self.facts.allocatable, pods_free, self.requested, self.non_zero_requested
        )
        force_setattr(self, "free", free)

    def with_pod(self, pod: PodInfo) -> NodeInfo:
        """Return the node with one pod more."""
        assert pod.key not in self.pods, f"{pod.key} is on {self.facts.name} already"
        ports = pod.signature.host_ports
        return NodeInfo(
            self.facts,
            {**self.pods, pod.key: pod},
            _added(self.requested, pod.signature.requests_on_node, 1),
            _added_non_zero(self.non_zero_requested, pod.signature.non_zero_requests_on_node, 1),
            with_ports(self.used_ports, ports) if ports else self.used_ports,
        )

    def without_pod(self, key: str) -> NodeInfo:
        """Return the node with one pod less."""
        pods = dict(self.pods)
        signature = pods.pop(key).signature
        ports = signature.host_ports
        return NodeInfo(
            self.facts,
            pods,
            _added(self.requested, signature.requests_on_node, -1),
            _added_non_zero(self.non_zero_requested, signature.non_zero_requests_on_node, -1),
            without_ports(self.used_ports, ports) if ports else self.used_ports,
        )

    def with_newer_pod(self, pod: PodInfo) -> NodeInfo:
        """Return the node with a newer version of a pod that requests the same."""
        pods = {**self.pods, pod.key: pod}
        return NodeInfo(self.facts, pods, self.requested, self.non_zero_requested, self.used_ports)

    def with_facts(self, facts: NodeFacts) -> NodeInfo:
        """Return the same pods on a newer version of the node."""
        return NodeInfo(facts, self.pods, self.requested, self.non_zero_requested, self.used_ports)


def node_amounts(name: str, node: NodeInfo, *, is_non_zero: bool) -> tuple[int, int]:
    """Return how much of a resource a node has, and how much is in use, as scores count it."""
    total, requested = node.facts.allocatable, node.requested
    counted = node.non_zero_requested if is_non_zero else requested
    match name:
        case "cpu":
            return total.milli_cpu, counted.milli_cpu
        case "memory":
            return total.memory, counted.memory
        case "ephemeral-storage":
            return total.ephemeral_storage, requested.ephemeral_storage
    return total.others.get(name, 0), requested.others.get(name, 0)


def read_facts(node: Node, readers: NodeReaders = NO_READERS) -> NodeFacts:
    """Return what plugins read of a node."""
    allocatable = node.status.allocatable
    return NodeFacts(
        name=node.metadata.name,
        labels=node.metadata.labels,
        is_unschedulable=node.spec.unschedulable,
        hard_taints=tuple(t for t in node.spec.taints if t.effect in HARD_EFFECTS),
        soft_taints=tuple(t for t in node.spec.taints if t.effect == PREFER_NO_SCHEDULE),
        allocatable=resource_amounts({n: q for n, q in allocatable.items() if n != PODS}),
        pods_max=allocatable.get(PODS, Quantity.ZERO).value,
        features=frozenset(node.status.declared_features),
        by_plugin={plugin: read(node) for plugin, read in readers.items()},
    )


def node_essence(node: Node, readers: NodeReaders = NO_READERS) -> tuple[object, ...]:
    """Return all fields of a node that can decide something; its heartbeats cannot."""
    status = node.status
    return (
        node.metadata.labels,
        node.spec,
        status.allocatable,
        status.declared_features,
        status.images,
        *(read(node) for read in readers.values()),
    )


def _added(requested: ResourceAmounts, more: ResourceAmounts, sign: int) -> ResourceAmounts:
    return ResourceAmounts(
        requested.milli_cpu + sign * more.milli_cpu,
        requested.memory + sign * more.memory,
        requested.ephemeral_storage + sign * more.ephemeral_storage,
        _added_others(requested.others, more.others, sign) if more.others else requested.others,
    )


def _added_others(
    requested: Mapping[str, int], more: Mapping[str, int], sign: int
) -> Mapping[str, int]:
    result = dict(requested)
    for name, amount in more.items():
        total = result.get(name, 0) + sign * amount
        if total:
            result[name] = total
        else:  # Subtracting restores the sums exactly.
            del result[name]
    return result


def _added_non_zero(
    requested: NonZeroRequests, more: NonZeroRequests, sign: int
) -> NonZeroRequests:
    return NonZeroRequests(
        requested.milli_cpu + sign * more.milli_cpu, requested.memory + sign * more.memory
    )
