"""Whether a pod would get a node if pods of lower priority left, and which these would be.

On each node that refuses the pod, but not for good:

1. All pods of lower priority are thought away. If the node still refuses, it is no use.
2. They are let back one by one, the most important first, as long as the pod still fits. Those
   that cannot come back are the victims.

The node with the least important victims is chosen. Nothing is changed: pods are taken from a
copy of the node, and what is counted of them for the pod's shape is counted back.

    # candidate: a node with the victims that it would take there
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct

from mooring.scheduler.claimcheck import Grant
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.errors import CycleFault
from mooring.scheduler.filtering import Survey
from mooring.scheduler.filters import FILTERS, LAST, Check
from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.ranking import AskClaims
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shape import Occupant, PodShape

# So many candidates are enough, as in Kubernetes: 100, or a tenth of the nodes.
CANDIDATES_MIN = 100
CANDIDATES_PERCENT = 10
NOT_STARTED = datetime.max.replace(tzinfo=UTC)
PRIORITY_OFFSET = 2**31  # makes all priorities count as positive


class Preemption(Struct, frozen=True):
    """The pod would get this node, once these pods have left it."""

    node: str
    victims: tuple[Occupant, ...]  # the most important first


class NoPreemption(Struct, frozen=True):
    """No pods' leaving would help, or that could not be found out."""

    outcomes: Mapping[str, Refusal] = {}  # what nodes say with all victims thought away
    fault: str | None = None


def preempt(
    cluster: Cluster, shape: PodShape, priority: int, survey: Survey, ask: AskClaims
) -> Preemption | NoPreemption:
    """Return what Kubernetes would do for a pod of this priority that all nodes refuse."""
    if survey.obstacle is not None or not _has_lower(cluster, priority):
        return NoPreemption()
    tried = [name for name, said in survey.refusals.items() if not said.is_unresolvable]
    enough = max(CANDIDATES_MIN, len(tried) * CANDIDATES_PERCENT // 100)
    room = _Room(cluster, shape, ask)
    candidates: list[Preemption] = []
    outcomes: dict[str, Refusal] = {}
    fault: str | None = None
    for name in tried:
        state = cluster.fleet.nodes[name]
        lower = [each for each in state.pods.values() if cluster.priority_of(each) < priority]
        if not lower:
            continue
        try:
            found = room.victims(state, sorted(lower, key=lambda each: _importance(cluster, each)))
        except CycleFault as error:
            fault = fault or str(error)
            continue
        if isinstance(found, Refusal):
            outcomes[name] = found
        elif found:
            candidates.append(Preemption(name, found))
            if len(candidates) >= enough:
                break
    if candidates:
        return min(candidates, key=_cost)
    return NoPreemption(outcomes, fault)


def _has_lower(cluster: Cluster, priority: int) -> bool:
    """Return whether some placed pod may have to give way; most often none has to."""
    return any(each < priority for each in cluster.fleet.world.census.priorities) or any(
        (group.spec.priority or 0) < priority for group in cluster.groups.values()
    )


def lower_than(cluster: Cluster, priority: int) -> list[Occupant]:
    """Return all placed pods that have to give way to this priority."""
    if not _has_lower(cluster, priority):
        return []
    placed = (each for state in cluster.fleet.nodes.values() for each in state.pods.values())
    return [each for each in placed if cluster.priority_of(each) < priority]


@contextmanager
def thought_away(cluster: Cluster, occupants: Sequence[Occupant]) -> Iterator[None]:
    """Have the cluster without some pods; their claims keep their devices, as in Kubernetes."""
    fleet = cluster.fleet
    homes = [(occupant, fleet.node_of(occupant.key)) for occupant in occupants]
    for occupant in occupants:
        fleet.displace(occupant.key)
    try:
        yield
    finally:
        for occupant, node in homes:
            assert node is not None
            fleet.place(occupant, node)


def _importance(cluster: Cluster, occupant: Occupant) -> tuple[int, bool, datetime, str]:
    """Return what sorts the most important first: by priority, then groups, then age."""
    priority = cluster.priority_of(occupant)
    return -priority, occupant.group is None, _started(occupant), occupant.key


def _started(occupant: Occupant) -> datetime:
    return NOT_STARTED if occupant.started is None else occupant.started


class _Cost(NamedTuple):
    """What a candidate costs: the lowest is chosen."""

    highest: int
    total: int
    pods: int
    youth: float
    node: str


def _cost(candidate: Preemption) -> _Cost:
    victims = candidate.victims
    # Kubernetes asks for the priority of the first, which is the most important.
    top = max(each.priority for each in victims)
    started = min(_started(each) for each in victims if each.priority == top)
    return _Cost(
        victims[0].priority,
        sum(each.priority + PRIORITY_OFFSET for each in victims),
        len(victims),
        -started.timestamp(),
        candidate.node,
    )


class _Room:
    """Asks a node with some pods thought away."""

    def __init__(self, cluster: Cluster, shape: PodShape, ask: AskClaims) -> None:
        self._shape = shape
        self._ask = ask
        self._outlook: Outlook = cluster.fleet.outlook(shape)
        rules = [rule for rule in FILTERS if rule.applies(shape, self._outlook)]
        self._first = tuple(rule.check for rule in rules if rule.plugin not in LAST)
        self._last = tuple(rule.check for rule in rules if rule.plugin in LAST)

    def victims(self, state: NodeState, lower: list[Occupant]) -> tuple[Occupant, ...] | Refusal:
        """Return which of the pods must leave the node, or why that would be no use."""
        away: list[Occupant] = []
        name = state.facts.name
        try:
            for occupant in lower:
                state = state.without_pod(occupant.key)
                self._outlook.count(occupant, name, -1)
                away.append(occupant)
            refusal = self._refusal(state)
            if refusal is not None:
                return refusal
            for occupant in lower:
                back = state.with_pod(occupant)
                self._outlook.count(occupant, name, 1)
                away.remove(occupant)
                if self._refusal(back) is None:
                    state = back
                else:
                    self._outlook.count(occupant, name, -1)
                    away.append(occupant)
            return tuple(away)
        finally:
            for occupant in away:
                self._outlook.count(occupant, name, 1)

    def _refusal(self, state: NodeState) -> Refusal | None:
        for refusal in self._refusals(state):
            return refusal
        return None

    def _refusals(self, state: NodeState) -> Iterator[Refusal]:
        yield from self._checked(self._first, state)
        grant = self._ask(state)
        if not isinstance(grant, Grant):
            yield grant
        yield from self._checked(self._last, state)

    def _checked(self, checks: tuple[Check, ...], state: NodeState) -> Iterator[Refusal]:
        for check in checks:
            refusal = check(self._shape, state, self._outlook)
            if refusal is not None:
                yield refusal
