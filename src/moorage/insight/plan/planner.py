"""Where every pod of a snapshot would go, and which devices its claims would get.

    snapshot ─ completed: pods, priorities, claims ─ cluster ─ queue ─ scheduling cycles ─ Plan

The cycle is the scheduler's own. Pods come by priority and then by age; those of a pod group come
together. New pods that were given come before those that controllers create, as they do when all is
applied at once, each in the order of the files. Pods that wait for others are tried again once
these have a node. Stand-ins come last: each is tried alone on what the pods leave, and leaves all
of it to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.scheduling import PodGroup
from moorage.claims.pod_claims import controller_of, group_name
from moorage.controllers.pod_control import is_active
from moorage.insight.messages import Concern, full_name
from moorage.insight.plan.decisions import Refusals, decide
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.insight.plan.unknown import assumption, is_undecided, undecided
from moorage.insight.snapshot.completion import Completed, complete
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.stand_ins import Unused, stands_for
from moorage.kit.checkpoints import checkpoint
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.features import Features
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.group_forest import GROUP, AnyGroup, GroupKey
from moorage.scheduler.pod_groups import Gang, schedule_group, unit_of, unready
from moorage.scheduler.pod_signature import ReadingSettings
from moorage.scheduler.profiles import profiles_of
from moorage.scheduler.reservation import IdSource, Reservation, release, reserve
from moorage.scheduler.scheduling_cycle import Pending, Placed
from moorage.validation.strategy import Context

Result = Reservation | Pending
Progress = Callable[[int, int], None]  # (done, total)
QUOTA: Final = "ResourceQuota"


class Plan(Struct, frozen=True):
    """What happens to every pod that had no node."""

    before: Snapshot  # completed, before any decision
    results: tuple[Result, ...]  # of pods, in the order of the snapshot's
    concerns: tuple[Concern, ...]
    make_cluster: Callable[[], Cluster]  # the same one each time
    over_quota: Mapping[str, str] = {}  # by the full name of a pod: what a quota refuses, and why
    limit: EvaluationLimit | None = None  # of its expressions; also for those who explain it
    stand_ins: tuple[Result, ...] = ()  # each alone on what the pods leave; none is in `after`
    # By kind and full name of a claim or template: what a quota refuses, and why.
    refused_objects: Mapping[tuple[str, str], str] = {}

    @property
    def cluster(self) -> Cluster:
        """The cluster with all placed pods; if none had to be placed, it is made when asked for."""
        return self.make_cluster()

    @property
    def placed(self) -> tuple[Reservation, ...]:
        """The pods that get a node."""
        return tuple(each for each in self.results if isinstance(each, Reservation))

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The pods that get no node."""
        return tuple(each for each in self.results if isinstance(each, Pending))

    @property
    def undecided(self) -> tuple[Pending, ...]:
        """The pods of which it is unknown whether they get a node."""
        return tuple(each for each in self.pending if is_undecided(each))

    @property
    def assumption(self) -> str:
        """What the placements take for granted, because it could not be read."""
        return assumption(self.before)

    @property
    def after(self) -> Snapshot:
        """The snapshot with every decision applied, and without stand-ins."""
        snapshot = self.before
        if self.stand_ins:
            gone = {each.pod.metadata.uid: each.pod for each in self.stand_ins}
            owners = ((claim, controller_of(claim.metadata)) for claim in snapshot.claims)
            claims = [claim for claim, owner in owners if owner is not None and owner.uid in gone]
            snapshot = snapshot.without([*gone.values(), *claims])
        return _decided(snapshot, self.placed)

    @property
    def shown(self) -> Plan:
        """The plan as a picture shows it: without pods, the stand-ins that go together."""
        if self.results or not self.stand_ins:
            return self
        taken: set[tuple[str, str, str]] = set()
        kept: list[Result] = []
        for each in self.stand_ins:
            own = set(_devices_of(each))
            if taken.isdisjoint(own):
                taken |= own
                kept.append(each)
        others = tuple(each for each in self.stand_ins if each not in kept)
        return replace(self, results=tuple(kept), stand_ins=others)


def _decided(before: Snapshot, placed: Sequence[Reservation]) -> Snapshot:
    claims = [claim for each in placed for claim in each.claims]
    return before.with_objects(claims + [each.pod for each in placed])


class _ClusterMaker:
    """Makes the cluster of a plan when it is first asked for, and then keeps it.

    A cluster is never pickled: with the decisions, it is made again from the snapshot.
    """

    def __init__(
        self,
        before: Snapshot,
        context: Context,
        limit: EvaluationLimit | None,
        *,
        kept: Cluster | None = None,
        placed: tuple[Reservation, ...] = (),
    ) -> None:
        self._before, self._context, self._limit = before, context, limit
        self._made = kept if kept is None or limit is None else limit.watch(kept)
        self.placed = placed

    def __call__(self) -> Cluster:
        """Return the cluster, always the same one."""
        if self._made is None:
            made = _cluster_of(_decided(self._before, self.placed), self._context)
            self._made = made if self._limit is None else self._limit.watch(made)
        return self._made

    @property
    def is_made(self) -> bool:
        """Whether anybody has asked for the cluster."""
        return self._made is not None

    def __reduce__(self) -> tuple[object, ...]:
        again = partial(_ClusterMaker, placed=self.placed)
        return again, (self._before, self._context, self._limit)


def _devices_of(result: Result) -> Iterator[tuple[str, str, str]]:
    for claim in result.claims if isinstance(result, Reservation) else ():
        allocation = claim.status.allocation
        for each in () if allocation is None else allocation.devices.results:
            yield each.driver, each.pool, each.device


def unwatched(done: int, total: int) -> None:
    """Report progress to nobody."""


def plan(
    snapshot: Snapshot,
    context: Context,
    *,
    unused: Sequence[Unused] = (),
    progress: Progress = unwatched,
    limit: EvaluationLimit | None = None,
) -> Plan:
    """Return where the pods of a snapshot would go, or raise TooManyPodsError.

    The unused claims and templates are planned, too, each for a stand-in.
    """
    completed = complete(snapshot, context, unused=unused)
    return plan_completed(completed, context, progress=progress, limit=limit)


def plan_completed(
    completed: Completed,
    context: Context,
    *,
    left_out: Collection[str] = (),
    arrival: Sequence[str] = (),
    progress: Progress = unwatched,
    limit: EvaluationLimit | None = None,
    kept: Cluster | None = None,
) -> Plan:
    """Return where pods would go, except those left out by full name.

    `arrival` has the full names of pods in order of arrival, if that is not the usual one; `kept`
    is the cluster of the snapshot if there is one, and gets the placed pods.
    """
    before = completed.snapshot
    cluster = _ClusterMaker(before, context, limit, kept=kept)
    waiting = [pod for pod in before.pods if _is_waiting(pod) and full_name(pod) not in left_out]
    over_quota = completed.over_quota
    admitted = [pod for pod in waiting if full_name(pod) not in over_quota]
    results: dict[str, Result] = {}
    if admitted:
        planner = _Planner(cluster(), before, progress, len(admitted), limit)
        decided = planner.run(_arranged(admitted, arrival))
        results = {name: _as_known(before, each) for name, each in decided.items()}
    results |= {
        name: _refused(cluster(), pod, over_quota[name])
        for pod in waiting
        if (name := full_name(pod)) in over_quota
    }
    real = tuple(results[full_name(pod)] for pod in waiting if not stands_for(pod))
    stand_ins = tuple(results[full_name(pod)] for pod in waiting if stands_for(pod))
    cluster.placed = tuple(each for each in real if isinstance(each, Reservation))
    refused = completed.refused_objects
    return Plan(before, real, completed.concerns, cluster, over_quota, limit, stand_ins, refused)


def _as_known(snapshot: Snapshot, result: Result) -> Result:
    """Return a result, or that it is unknown: a pod without a node needs what was not read."""
    return undecided(snapshot, result) if isinstance(result, Pending) else result


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
        settings=ReadingSettings(runtimes=frozenset(r.metadata.name for r in snapshot.runtimes)),
        profiles=profiles_of(context.scheduler, context.gates),
        now=context.now.instant,
        extensions=context.extensions,
    )
    for namespace in snapshot.namespaces:
        cluster.snapshot.put_namespace(namespace.metadata.name, namespace.metadata.labels)
    for node in snapshot.nodes:
        checkpoint()
        cluster.put_node(node)
    cluster.volumes.is_followed = cluster.volumes.makes_claims = True
    for kind in (snapshot.storage_classes, snapshot.volumes, snapshot.volume_claims):
        for value in kind:
            cluster.volumes.put(value)
    for device_class in snapshot.classes:
        cluster.put_class(device_class)
    for rule in snapshot.taint_rules:
        cluster.put_taint_rule(rule)
    for slice_ in snapshot.slices:
        checkpoint()
        cluster.put_slice(slice_)
    for claim in snapshot.claims:
        checkpoint()
        cluster.put_claim(claim)
    for composite in snapshot.composite_groups:
        cluster.put_group(composite)
    for group in snapshot.groups:
        cluster.put_group(group)
    for spreader in snapshot.spreaders():
        cluster.default_selectors.put(spreader)
    for budget in snapshot.budgets:
        cluster.disruption_budgets.put(budget)
    for pod in snapshot.pods:
        checkpoint()
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
    root: GroupKey | None = None  # of the groups that the pods are of


class _Planner:
    def __init__(
        self,
        cluster: Cluster,
        snapshot: Snapshot,
        progress: Progress,
        total: int,
        limit: EvaluationLimit | None,
    ) -> None:
        self._cluster = cluster
        self._limit = limit
        self._fresh = new_names(cluster)
        self._progress = progress
        self._total = total
        self._results: dict[str, Result] = {}
        self._refusals = Refusals(cluster)
        self._members: dict[GroupKey, list[Pod]] = {}
        if cluster.features.pod_groups:
            for pod in snapshot.pods:
                if (key := self._group_of(pod)) is not None and is_active(pod):
                    self._members.setdefault(key, []).append(pod)

    def run(self, waiting: list[Pod]) -> dict[str, Result]:
        """Return what happens to each pod, by full name."""
        real = [pod for pod in waiting if stands_for(pod) is None]
        queue = sorted(self._items(real), key=lambda item: item.order)
        while queue:
            for item in queue:
                self._take(item)
            again = [item for item in queue if self._may_fit_later(item)]
            if len(again) == len(queue):
                break
            queue = again
        for pod in waiting:
            if stands_for(pod) is not None:
                self._try_stand_in(pod)
        return self._results

    def _try_stand_in(self, pod: Pod) -> None:
        if self._limit is not None:
            self._limit.begin()
        result = self._decided(pod)
        if isinstance(result, Reservation):
            release(self._cluster, result)
        self._results[full_name(pod)] = result
        self._progress(len(self._results), self._total)

    def _items(self, waiting: list[Pod]) -> Iterator[_Item]:
        grouped: dict[GroupKey, list[Pod]] = {}
        forest = self._cluster.forest
        for number, pod in enumerate(waiting):
            key = self._group_of(pod)
            if key is None or forest.get(key) is None:
                yield _Item(standing(pod, number), (pod,))
            else:
                grouped.setdefault(forest.root_of(key), []).append(pod)
        for root, pods in grouped.items():
            group = forest.get(root)
            order = standing(pods[0] if group is None else group, waiting.index(pods[0]))
            yield _Item(order, tuple(pods), root)

    def _take(self, item: _Item) -> None:
        results: Iterable[Result]
        if self._limit is not None:
            self._limit.begin()
        if item.root is not None:
            results = self._schedule_groups(item, item.root)
        else:
            results = [self._decided(item.pods[0])]
        for result in results:
            self._results[full_name(result.pod)] = result
            if isinstance(result, Reservation):
                self._refusals.forget()
        self._progress(len(self._results), self._total)

    def _decided(self, pod: Pod) -> Result:
        checkpoint()
        known = self._refusals.like(pod)
        if known is not None:
            return known
        outcome = decide(self._cluster, pod)
        if isinstance(outcome, Placed):
            return reserve(self._cluster, outcome, self._fresh)
        self._refusals.remember(outcome)
        return outcome

    def _schedule_groups(self, item: _Item, root: GroupKey) -> Iterable[Result]:
        unit = unit_of(self._cluster, root, lambda group: self._gang(group, item.pods))
        if unit is None:
            text = f"waiting for composite pod group {root[2]} to exist"
            return [unready(self._cluster, pod, text) for pod in item.pods]
        return schedule_group(self._cluster, unit, self._fresh)

    def _gang(self, group: PodGroup, pods: tuple[Pod, ...]) -> Gang:
        metadata = group.metadata
        key = (GROUP, metadata.namespace, metadata.name)
        members = self._members.get(key, [])
        nodes = {full_name(pod): node for pod in members if (node := self._node_of(pod))}
        own = [pod for pod in pods if self._group_of(pod) == key and full_name(pod) not in nodes]
        return Gang(
            group,
            tuple(own),
            scheduled=len(nodes),
            existing=len(members),
            nodes=tuple(nodes.values()),
            placed=tuple(pod for pod in members if full_name(pod) in nodes),
        )

    def _node_of(self, pod: Pod) -> str:
        result = self._results.get(full_name(pod))
        return result.node if isinstance(result, Reservation) else pod.spec.node_name

    def _may_fit_later(self, item: _Item) -> bool:
        """Return whether pods placed since may help: affinity and spreading depend on others."""
        pending = [p for p in item.pods if isinstance(self._results[full_name(p)], Pending)]
        shapes = [self._cluster.signature(pod) for pod in pending]
        return any(
            shape.affinity_terms.affinity or shape.spread_constraints.hard for shape in shapes
        )

    def _group_of(self, pod: Pod) -> GroupKey | None:
        name = group_name(pod) if self._cluster.features.pod_groups else None
        return None if name is None else (GROUP, pod.metadata.namespace, name)


def standing(value: Pod | AnyGroup, number: int) -> tuple[int, str, int]:
    """Return the position in the queue: by priority, then age, then order of arrival."""
    created = value.metadata.creation_timestamp
    return -(value.spec.priority or 0), "9" if created is None else str(created), number
