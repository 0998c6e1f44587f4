"""Tries other orders of arrival, one of which may place more pods than the plan.

In a real cluster, the order of new pods is a race between controllers, so a plan is one of several
possible outcomes. If pods get no node, `better_order` tries a few other orders, each once:

1. all pods of an owner that has pending pods come first;
2. the pending pods come first, and then those that this order leaves pending;
3. the owners take turns;
4. the last owner comes first.

Pods of one owner are alike, so they keep their order among themselves.

    # owner: the controller that creates a pod, or the pod itself
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import zip_longest
from typing import Final

from msgspec import Struct

from moorage.api.core.pod import Pod
from moorage.claims.pod_claims import controller_of
from moorage.insight.messages import full_name
from moorage.insight.plan.planner import Plan, plan_completed, standing
from moorage.insight.snapshot.completion import Completed
from moorage.validation.strategy import Context

PODS_MAX: Final = 200  # with more, no other orders are tried
NODES_MAX: Final = 200
REPAIRS_MAX: Final = 3
Turns = tuple[str, ...]  # an owner for each of its pods


class BetterOrder(Struct, frozen=True):
    """An order in which more pods get a node, as a trial has shown."""

    arrival: tuple[str, ...]  # the full names of pods
    owners: tuple[str, ...]  # of each of them
    placed: int  # how many of the shown pods get a node


def better_order(
    plan: Plan, context: Context, *, shown: Collection[str] | None = None
) -> BetterOrder | None:
    """Return the best order among those tried, if it places more pods than the plan.

    It places more of the shown pods and more pods in all, so no other pod loses its place.
    """
    pods = _sorted(each.pod for each in plan.results)
    owners = {full_name(pod): _owner_of(pod) for pod in pods}
    has_refused = any(each.message for each in plan.pending)  # others do not wait for a node
    if not has_refused or len(set(owners.values())) < 2:
        return None
    if len(pods) > PODS_MAX or len(plan.before.nodes) > NODES_MAX:
        return None
    return _Search(plan, context, pods, set(owners) if shown is None else shown).best()


def _sorted(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods in queue order, by priority and age."""
    return sorted(pods, key=lambda pod: standing(pod, 0))


def _owner_of(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    if owner is None:
        return full_name(pod)
    return f"{owner.kind}/{pod.metadata.namespace}/{owner.name}"


class _Search:
    """Tries orders, each once, and remembers the best."""

    def __init__(
        self, plan: Plan, context: Context, pods: list[Pod], shown: Collection[str]
    ) -> None:
        self._plan, self._context, self._shown = plan, context, shown
        self._pods = {full_name(pod): pod for pod in pods}
        self._owners = owners = {name: _owner_of(pod) for name, pod in self._pods.items()}
        self._score = self._score_of(plan)  # of the best order
        self._last = plan  # of the order tried last
        self._tried: set[Turns] = {tuple(owners.values())}
        self._best: BetterOrder | None = None

    def best(self) -> BetterOrder | None:
        """Return the best order; stop at the first that places all pods."""
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
        """Yield the order with pending pods first, then with those pending in that order."""
        pending = self._pending(self._plan)
        for _ in range(REPAIRS_MAX):
            rest = list(turns)
            for owner in pending:
                rest.remove(owner)
            turns = (*pending, *rest)
            yield turns
            pending = self._pending(self._last)

    def _try(self, arrival: tuple[str, ...], turns: Turns) -> None:
        completed = Completed(self._plan.before, (), self._plan.over_quota)
        self._last = plan_completed(completed, self._context, arrival=arrival)
        score = self._score_of(self._last)
        if score[0] > self._score[0] and score[1] > self._score[1]:
            self._score = score
            self._best = BetterOrder(arrival, turns, score[0])

    def _score_of(self, plan: Plan) -> tuple[int, int]:
        """Return how many of the shown pods get a node, and how many of all."""
        names = [full_name(each.pod) for each in plan.placed]
        return sum(name in self._shown for name in names), len(names)

    def _arrival(self, turns: Turns) -> tuple[str, ...]:
        """Return the pods of owners in turn, as far as priorities and ages allow."""
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
