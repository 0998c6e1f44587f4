"""Where every pod of a snapshot would go, and which devices its claims would get.

    snapshot ─ completed: pods, priorities, claims ─ cluster ─ queue ─ scheduling cycles ─ Plan

The cycle is the scheduler's own. Pods come by priority and then by age; those of a pod group come
together. New pods that were given come before those that controllers create, as they do when all is
applied at once, each in the order of the files. Pods that wait for others are tried again once
these have a node.

In a real cluster the order of new pods is a race between controllers, so a plan is one outcome of
several. `better_order` tries a few others where pods are left without a node, each once:

1. all pods of an owner that has pending pods come first;
2. the pending pods come first, and again those that are pending then;
3. the owners take turns;
4. the last owner comes first.

Pods of one owner are alike, so they keep their order among themselves.

    # owner: the controller that creates a pod, or the pod itself
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from msgspec import Struct

from mooring.api.core.pod import Pod
from mooring.api.scheduling import PodGroup
from mooring.claims.pod_claims import controller_of, group_name
from mooring.controllers.pod_control import is_active
from mooring.insight.messages import Concern, full_name
from mooring.insight.plan.decisions import decide
from mooring.insight.snapshot.completion import Completed, complete
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.diagnosis import FitDiagnosis
from mooring.scheduler.features import Features
from mooring.scheduler.framework import Unschedulable
from mooring.scheduler.pod_groups import Gang, schedule_group
from mooring.scheduler.pod_signature import SchedulerProfile
from mooring.scheduler.reservation import IdSource, Reservation, reserve
from mooring.scheduler.scheduling_cycle import Pending, Placed
from mooring.validation.strategy import Context

Result = Reservation | Pending
Progress = Callable[[int, int], None]  # (done, total)
QUOTA: Final = "ResourceQuota"
PODS_MAX: Final = 200  # beyond that no other orders are tried
NODES_MAX: Final = 200
REPAIRS_MAX: Final = 3
Turns = tuple[str, ...]  # owners, each as often as it has pods


class Plan(Struct, frozen=True):
    """What happens to every pod that had no node."""

    before: Snapshot  # completed, before any decision
    results: tuple[Result, ...]  # in the order of the snapshot's pods
    concerns: tuple[Concern, ...]
    cluster: Cluster  # with all placed pods
    over_quota: Mapping[str, str] = {}  # by the full name of a pod: what a quota refuses, and why

    @property
    def placed(self) -> tuple[Reservation, ...]:
        """The pods that get a node."""
        return tuple(each for each in self.results if isinstance(each, Reservation))

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The pods that get no node."""
        return tuple(each for each in self.results if isinstance(each, Pending))

    @property
    def after(self) -> Snapshot:
        """The snapshot with every decision applied."""
        return self.before.with_objects(
            [claim for each in self.placed for claim in each.claims]
            + [each.pod for each in self.placed]
        )


def unwatched(done: int, total: int) -> None:
    """Report progress to nobody."""


def plan(snapshot: Snapshot, context: Context, *, progress: Progress = unwatched) -> Plan:
    """Return where the pods of a snapshot would go, or raise TooManyPodsError."""
    return plan_completed(complete(snapshot, context), context, progress=progress)


def plan_completed(
    completed: Completed,
    context: Context,
    *,
    left_out: Collection[str] = (),
    arrival: Sequence[str] = (),
    progress: Progress = unwatched,
) -> Plan:
    """Return where pods would go, except those left out by full name.

    `arrival` has the full names of pods in order of arrival, if that is not the usual one.
    """
    before = completed.snapshot
    cluster = _cluster_of(before, context)
    waiting = [pod for pod in before.pods if _is_waiting(pod) and full_name(pod) not in left_out]
    over_quota = completed.over_quota
    admitted = [pod for pod in waiting if full_name(pod) not in over_quota]
    results = _Planner(cluster, before, progress, len(admitted)).run(_arranged(admitted, arrival))
    results |= {
        name: _refused(cluster, pod, over_quota[name])
        for pod in waiting
        if (name := full_name(pod)) in over_quota
    }
    ordered = tuple(results[full_name(pod)] for pod in waiting)
    return Plan(before, ordered, completed.concerns, cluster, over_quota)


def _refused(cluster: Cluster, pod: Pod, reason: str) -> Pending:
    """Return that a quota refuses the pod or its claim; the scheduler has no message then."""
    status = Unschedulable(QUOTA, (reason,))
    diagnosis = FitDiagnosis(len(cluster.snapshot.nodes), pre_filter_status=status)
    return Pending(pod, diagnosis, reason=reason, message="")


def _arranged(pods: list[Pod], arrival: Sequence[str]) -> list[Pod]:
    place = {name: number for number, name in enumerate(arrival)}
    return sorted(pods, key=lambda pod: place.get(full_name(pod), len(place)))


def _is_waiting(pod: Pod) -> bool:
    return not pod.spec.node_name and is_active(pod)


def _cluster_of(snapshot: Snapshot, context: Context) -> Cluster:
    cluster = Cluster(
        Features.of(context.gates),
        settings=SchedulerProfile(runtimes=frozenset(r.metadata.name for r in snapshot.runtimes)),
        now=context.now.instant,
        extensions=context.extensions,
    )
    for namespace in snapshot.namespaces:
        cluster.snapshot.put_namespace(namespace.metadata.name, namespace.metadata.labels)
    for node in snapshot.nodes:
        cluster.put_node(node)
    for device_class in snapshot.classes:
        cluster.put_class(device_class)
    for rule in snapshot.taint_rules:
        cluster.put_taint_rule(rule)
    for slice_ in snapshot.slices:
        cluster.put_slice(slice_)
    for claim in snapshot.claims:
        cluster.put_claim(claim)
    for group in snapshot.groups:
        cluster.put_group(group)
    for spreader in snapshot.spreaders():
        cluster.default_selectors.put(spreader)
    for pod in snapshot.pods:
        cluster.put_pod(pod)
    return cluster


def new_names(cluster: Cluster) -> IdSource:
    """Return a source of share ids and claim names: the same for the same cluster."""
    numbers = iter(range(1, 10**12))
    taken = {name for _, name in cluster.claims}

    def share_id() -> str:
        return f"00000000-0000-4000-8000-{next(numbers):012x}"

    def name(prefix: str) -> str:
        found = next(each for n in range(10**9) if (each := f"{prefix}{n}") not in taken)
        taken.add(found)
        return found

    return IdSource(share_id, name)


# --- the queue --------------------------------------------------------------------------


class _Item(NamedTuple):
    order: tuple[int, str, int]
    pods: tuple[Pod, ...]
    group: tuple[str, str] | None = None


class _Planner:
    def __init__(
        self, cluster: Cluster, snapshot: Snapshot, progress: Progress, total: int
    ) -> None:
        self._cluster = cluster
        self._fresh = new_names(cluster)
        self._progress = progress
        self._total = total
        self._results: dict[str, Result] = {}
        self._members: dict[tuple[str, str], list[Pod]] = {}
        if cluster.features.pod_groups:
            for pod in snapshot.pods:
                if (key := self._group_of(pod)) is not None and is_active(pod):
                    self._members.setdefault(key, []).append(pod)

    def run(self, waiting: list[Pod]) -> dict[str, Result]:
        """Return what happens to each pod, by full name."""
        queue = sorted(self._items(waiting), key=lambda item: item.order)
        while queue:
            for item in queue:
                self._take(item)
            again = [item for item in queue if self._may_fit_later(item)]
            if len(again) == len(queue):
                break
            queue = again
        return self._results

    def _items(self, waiting: list[Pod]) -> Iterator[_Item]:
        grouped: dict[tuple[str, str], list[Pod]] = {}
        for number, pod in enumerate(waiting):
            key = self._group_of(pod)
            if key is None or key not in self._cluster.groups:
                yield _Item(_standing(pod, number), (pod,))
            elif key in grouped:
                grouped[key].append(pod)
            else:
                grouped[key] = [pod]
        for key, pods in grouped.items():
            group = self._cluster.groups[key]
            yield _Item(_standing(group, waiting.index(pods[0])), tuple(pods), key)

    def _take(self, item: _Item) -> None:
        results: Iterable[Result]
        if item.group is not None:
            results = schedule_group(self._cluster, self._gang(item), self._fresh)
        else:
            outcome = decide(self._cluster, item.pods[0])
            if isinstance(outcome, Placed):
                results = [reserve(self._cluster, outcome, self._fresh)]
            else:
                results = [outcome]
        for result in results:
            self._results[full_name(result.pod)] = result
        self._progress(len(self._results), self._total)

    def _gang(self, item: _Item) -> Gang:
        assert item.group is not None
        members = self._members[item.group]
        placed = {pod for pod in map(full_name, members) if self._has_node(pod)}
        scheduled = sum(bool(pod.spec.node_name) for pod in members) + len(placed)
        pods = tuple(pod for pod in item.pods if full_name(pod) not in placed)
        group = self._cluster.groups[item.group]
        return Gang(group, pods, scheduled=scheduled, existing=len(members))

    def _has_node(self, pod: str) -> bool:
        return isinstance(self._results.get(pod), Reservation)

    def _may_fit_later(self, item: _Item) -> bool:
        """Return whether pods placed since may help: affinity and spreading depend on others."""
        pending = [p for p in item.pods if isinstance(self._results[full_name(p)], Pending)]
        shapes = [self._cluster.signature(pod) for pod in pending]
        return any(
            shape.affinity_terms.affinity or shape.spread_constraints.hard for shape in shapes
        )

    def _group_of(self, pod: Pod) -> tuple[str, str] | None:
        name = group_name(pod) if self._cluster.features.pod_groups else None
        return None if name is None else (pod.metadata.namespace, name)


def _standing(value: Pod | PodGroup, number: int) -> tuple[int, str, int]:
    """Return the position in the queue: by priority, then age, then order of arrival."""
    created = value.metadata.creation_timestamp
    return -(value.spec.priority or 0), "9" if created is None else str(created), number


# --- other orders -----------------------------------------------------------------------


class BetterOrder(Struct, frozen=True):
    """An order in which more pods get a node, found by trying it."""

    arrival: tuple[str, ...]  # the full names of pods
    owners: tuple[str, ...]  # of each of them
    placed: int  # how many of the shown pods get a node


def better_order(
    plan: Plan, context: Context, *, shown: Collection[str] | None = None
) -> BetterOrder | None:
    """Return the best order that was tried, if it places more pods than the plan.

    It places more of the shown pods and more of all, so no other pod has to give way.
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
    return sorted(pods, key=lambda pod: _standing(pod, 0))


def _owner_of(pod: Pod) -> str:
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
