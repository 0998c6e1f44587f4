"""A node with the pods on it, as a value: putting a pod on it gives another value.

    # facts: what follows from the node alone, read once for each version of it
    # held: sums over the pods on it, kept by adding and taking away, never summed up anew

`with_pod` and `without_pod` are exactly inverse. Both cost a copy of the table of pods and a few
additions, some µs, whatever the pods are. Undoing a trial is keeping the earlier value.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import force_setattr

from mooring.api.core.node import Node
from mooring.api.core.placement import PREFER_NO_SCHEDULE, Taint
from mooring.api.core.resources import PODS
from mooring.api.quantity import Quantity
from mooring.api.tolerations import HARD_EFFECTS
from mooring.scheduler.amounts import Amounts, Weights, amounts
from mooring.scheduler.podports import TakenPorts, with_ports, without_ports
from mooring.scheduler.room import NO_ROOM, Room, room_of
from mooring.scheduler.shape import Occupant


class NodeFacts(Struct, frozen=True, gc=False):
    """What counts of a node itself."""

    name: str
    labels: Mapping[str, str]
    is_unschedulable: bool
    hard_taints: tuple[Taint, ...]  # pods without a toleration stay away
    soft_taints: tuple[Taint, ...]  # they should rather
    allocatable: Amounts
    pods_max: int
    features: frozenset[str]


class NodeState(Struct, frozen=True, gc=False):
    """A node and what the pods on it hold."""

    facts: NodeFacts
    pods: Mapping[str, Occupant] = {}
    held: Amounts = Amounts()
    held_in_scores: Weights = Weights(0, 0)
    ports: TakenPorts = {}
    room: Room = NO_ROOM  # follows from the others

    def __post_init__(self) -> None:
        pods_free = self.facts.pods_max - len(self.pods)
        room = room_of(self.facts.allocatable, pods_free, self.held, self.held_in_scores)
        force_setattr(self, "room", room)

    def with_pod(self, occupant: Occupant) -> NodeState:
        """Return the node with one pod more."""
        assert occupant.key not in self.pods, f"{occupant.key} is on {self.facts.name} already"
        ports = occupant.shape.ports
        return NodeState(
            self.facts,
            {**self.pods, occupant.key: occupant},
            _added(self.held, occupant.shape.held, 1),
            _weighed(self.held_in_scores, occupant.shape.held_in_scores, 1),
            with_ports(self.ports, ports) if ports else self.ports,
        )

    def without_pod(self, key: str) -> NodeState:
        """Return the node with one pod less."""
        pods = dict(self.pods)
        shape = pods.pop(key).shape
        return NodeState(
            self.facts,
            pods,
            _added(self.held, shape.held, -1),
            _weighed(self.held_in_scores, shape.held_in_scores, -1),
            without_ports(self.ports, shape.ports) if shape.ports else self.ports,
        )

    def with_facts(self, facts: NodeFacts) -> NodeState:
        """Return the same pods on a newer version of the node."""
        return NodeState(facts, self.pods, self.held, self.held_in_scores, self.ports)


def read_facts(node: Node) -> NodeFacts:
    """Return what counts of a node."""
    allocatable = node.status.allocatable
    return NodeFacts(
        name=node.metadata.name,
        labels=node.metadata.labels,
        is_unschedulable=node.spec.unschedulable,
        hard_taints=tuple(t for t in node.spec.taints if t.effect in HARD_EFFECTS),
        soft_taints=tuple(t for t in node.spec.taints if t.effect == PREFER_NO_SCHEDULE),
        allocatable=amounts({n: q for n, q in allocatable.items() if n != PODS}),
        pods_max=allocatable.get(PODS, Quantity.ZERO).value,
        features=frozenset(node.status.declared_features),
    )


def _added(held: Amounts, more: Amounts, sign: int) -> Amounts:
    return Amounts(
        held.milli_cpu + sign * more.milli_cpu,
        held.memory + sign * more.memory,
        held.ephemeral_storage + sign * more.ephemeral_storage,
        _added_others(held.others, more.others, sign) if more.others else held.others,
    )


def _added_others(held: Mapping[str, int], more: Mapping[str, int], sign: int) -> Mapping[str, int]:
    result = dict(held)
    for name, amount in more.items():
        total = result.get(name, 0) + sign * amount
        if total:
            result[name] = total
        else:  # So that taking away leaves no trace of what was added.
            del result[name]
    return result


def _weighed(held: Weights, more: Weights, sign: int) -> Weights:
    return Weights(held.milli_cpu + sign * more.milli_cpu, held.memory + sign * more.memory)
