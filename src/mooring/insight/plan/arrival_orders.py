"""Whether more pods would get a node if they came in another order.

Pods of equal priority and age are scheduled as they arrive. When several objects are applied at
once that is a race between those who make pods and claims: a plan shows one outcome of several. So
where pods are left without a node, a few other orders are tried, none of them more than once:

1. all pods of an owner that has pending pods come first;
2. the pending pods come first, and again those that are pending then;
3. the owners take turns;
4. the last owner comes first.

Pods of one owner are alike, so that they keep their order among themselves.

# owner: the controller that makes a pod, or the pod itself
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import zip_longest
from typing import Final

from msgspec import Struct

from mooring.api.core.pod import Pod
from mooring.claims.owners import controller_of
from mooring.insight.messages import full_name
from mooring.insight.plan.planner import Plan, plan_completed, standing
from mooring.insight.snapshot.completion import Completed
from mooring.validation.context import Context

PODS_MAX: Final = 200  # beyond that no other orders are tried
NODES_MAX: Final = 200
REPAIRS_MAX: Final = 3

Turns = tuple[str, ...]  # owners, each as often as it has pods


class BetterOrder(Struct, frozen=True):
    """An order in which more pods get a node; it was tried."""

    arrival: tuple[str, ...]  # the full names of pods
    owners: tuple[str, ...]  # of each of them
    placed: int  # how many of those that are asked about get a node


def better_order(
    plan: Plan, context: Context, *, shown: Collection[str] | None = None
) -> BetterOrder | None:
    """Return the best order that was tried, if it places more pods than the plan does.

    It places more of those that are shown, and more of all: nobody else has to make room for them.
    """
    pods = _sorted(each.pod for each in plan.results)
    owners = {full_name(pod): owner_of(pod) for pod in pods}
    has_refused = any(each.message for each in plan.pending)  # others wait for no node
    if not has_refused or len(set(owners.values())) < 2:
        return None
    if len(pods) > PODS_MAX or len(plan.before.nodes) > NODES_MAX:
        return None
    return _Search(plan, context, pods, set(owners) if shown is None else shown).best()


def _sorted(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods as the queue has them, whatever the order in which they come."""
    return sorted(pods, key=lambda pod: standing(pod, 0))


def owner_of(pod: Pod) -> str:
    """Return who makes a pod: pods of one owner are alike."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return full_name(pod)
    return f"{owner.kind}/{pod.metadata.namespace}/{owner.name}"


class _Search:
    """Tries orders, each once, and keeps the best."""

    def __init__(
        self, plan: Plan, context: Context, pods: list[Pod], shown: Collection[str]
    ) -> None:
        self._plan, self._context, self._shown = plan, context, shown
        self._pods = {full_name(pod): pod for pod in pods}
        self._owners = owners = {name: owner_of(pod) for name, pod in self._pods.items()}
        self._score = self._score_of(plan)  # of the best
        self._last = plan  # the plan of the order that was tried last
        self._tried: set[Turns] = {tuple(owners.values())}
        self._best: BetterOrder | None = None

    def best(self) -> BetterOrder | None:
        """Return the best order; the search ends with the first that places all."""
        for wanted in self._candidates():
            arrival = self._arrival(wanted)
            turns = tuple(map(self._owners.__getitem__, arrival))
            if turns in self._tried:
                continue
            self._tried.add(turns)
            self._try(arrival, turns)
            if self._score[1] == len(self._owners):
                break
        return self._best

    def _candidates(self) -> Iterator[Turns]:
        given = tuple(self._owners.values())
        pending = self._pending(self._plan)
        yield tuple(sorted(given, key=lambda owner: owner not in pending))
        yield from self._repairs(given)
        yield _in_turn(given)
        last = list(dict.fromkeys(reversed(given)))
        yield tuple(sorted(given, key=last.index))

    def _repairs(self, turns: Turns) -> Iterator[Turns]:
        """Give the order with pending pods first, then with those that are pending in that."""
        pending = self._pending(self._plan)
        for _ in range(REPAIRS_MAX):
            rest = list(turns)
            for owner in pending:
                rest.remove(owner)
            turns = (*pending, *rest)
            yield turns
            pending = self._pending(self._last)

    def _try(self, arrival: tuple[str, ...], turns: Turns) -> None:
        completed = Completed(self._plan.before, (), ())
        self._last = plan_completed(completed, self._context, arrival=arrival)
        score = self._score_of(self._last)
        if score[0] > self._score[0] and score[1] > self._score[1]:
            self._score = score
            self._best = BetterOrder(arrival, turns, score[0])

    def _score_of(self, plan: Plan) -> tuple[int, int]:
        """Return how many of those that are shown get a node, and how many of all."""
        names = [full_name(each.pod) for each in plan.placed]
        return sum(name in self._shown for name in names), len(names)

    def _arrival(self, turns: Turns) -> tuple[str, ...]:
        """Return the pods of owners in turn, as far as their priorities and ages allow."""
        names: dict[str, list[str]] = {}
        for name, owner in reversed(self._owners.items()):
            names.setdefault(owner, []).append(name)
        pods = (self._pods[names[owner].pop()] for owner in turns)
        return tuple(map(full_name, _sorted(pods)))

    def _pending(self, plan: Plan) -> list[str]:
        return [self._owners[full_name(each.pod)] for each in plan.pending]


def _in_turn(owners: Iterable[str]) -> Turns:
    rows: dict[str, list[str]] = {}
    for owner in owners:
        rows.setdefault(owner, []).append(owner)
    return tuple(each for turn in zip_longest(*rows.values()) for each in turn if each)
