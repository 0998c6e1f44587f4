"""Runs a trace: pods arrive, wait, run and leave in simulated time, scheduled as in a plan.

    trace ─► arrivals ─► queues ─► scheduling cycle ─► running ─► finished
                            └──────── preempted ◄───────┘

At each event:

1. Finished pods leave, which frees their devices.
2. Arriving pods join the queue of their workload.
3. The scheduler tries the first pods of the queues that are not stuck, in scheduling order, until
   all queues are empty or stuck. A pod that preempts others gets their place at once; a preempted
   pod starts over, behind the others.

Scheduling takes no time. Pods of the cluster that have a node stay; those that wait for one are
tried before the first arrival, and again when a pod leaves.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.apps import DaemonSet
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.claims.pod_claims import claims_to_release, controller_of
from moorage.insight.errors import SimulationError
from moorage.insight.fit.replicas import Model, Replica, Replicas, asked_of, model_of
from moorage.insight.messages import Concern, counted, full_name, titled
from moorage.insight.object_names import find_subject
from moorage.insight.plan.decisions import decide
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.insight.plan.placements import victims_of
from moorage.insight.plan.planner import Plan, Progress, new_names, plan_completed, unwatched
from moorage.insight.simulation.device_use import DeviceUse, LeftOver
from moorage.insight.simulation.jobs import PodQueue, TracePod, trace_pods
from moorage.insight.simulation.result import Sample, SimulationResult
from moorage.insight.simulation.trace import Arrival
from moorage.insight.snapshot.completion import complete
from moorage.insight.snapshot.snapshot import Snapshot, identified
from moorage.scheduler.pod_signature import PodInfo
from moorage.scheduler.reservation import release, reserve
from moorage.scheduler.scheduling_cycle import Pending, Placed
from moorage.validation.strategy import Context

PODS_MAX = 100_000
EVENTS_MAX = 1_000_000
WORKLOADS_MAX = 1_000
SAMPLES = 100  # that the timeline should have
SAMPLES_MAX = 400  # beyond, every second one is dropped


class SimulationSettings(Struct, frozen=True, kw_only=True):
    """How long a simulation lasts, and what it records."""

    until_s: float = inf
    sample_s: float | None = None  # between samples; None: a hundredth of the trace
    has_left_over: bool = True  # measuring it takes most of the time


def simulate(
    snapshot: Snapshot,
    arrivals: Sequence[Arrival],
    context: Context,
    *,
    namespace: str = "default",
    settings: SimulationSettings | None = None,
    progress: Progress = unwatched,
    limit: EvaluationLimit | None = None,
) -> SimulationResult:
    """Return what happens to the pods of a trace, or raise InsightError if it cannot be simulated.

    Workloads of the trace run only as it says, so their other pods without a node are left out.
    """
    settings = settings or SimulationSettings()
    if settings.sample_s is not None and settings.sample_s <= 0:
        raise SimulationError("the time between two samples must be more than 0 seconds")
    total = sum(each.count for each in arrivals)
    if total > PODS_MAX:
        raise SimulationError(f"{total:,} pods: more than {PODS_MAX:,}, which are all at a time")
    if not total:
        raise SimulationError("no pods arrive")
    completed = complete(snapshot, context)
    titles: dict[str, str] = {}
    models: dict[str, Model] = {}
    left_out: set[str] = set()
    for text in dict.fromkeys(each.workload for each in arrivals):
        subject = find_subject(snapshot, text, namespace=namespace)
        if len(models) >= WORKLOADS_MAX:
            raise SimulationError(f"more than {WORKLOADS_MAX:,} workloads")
        model = _model(subject, snapshot, context, taken=[each.base for each in models.values()])
        titles[text] = model.title
        models.setdefault(model.title, model)
        left_out |= asked_of(subject, completed.snapshot).waiting
    planned = plan_completed(completed, context, left_out=left_out, limit=limit)
    simulator = _Simulator(planned, models, settings, context, left_out=left_out, limit=limit)
    return simulator.run(trace_pods(arrivals, titles), progress)


def _model(subject: object, snapshot: Snapshot, context: Context, taken: Sequence[str]) -> Model:
    """Return what the pods of a workload are made from, with the priority that admission sets."""
    if isinstance(subject, DaemonSet):
        raise SimulationError(f"{titled(subject)} has one pod on each node, and none arrive")
    found = model_of(subject, snapshot, context)  # type: ignore[arg-type]
    if isinstance(found, Concern):
        raise SimulationError(str(found))
    if found.group is not None:
        fact = f"its pods belong to pod group {found.group}, which is placed as a whole"
        raise SimulationError(f"{found.title}: {fact}; pods are simulated one by one")
    pod: Pod = identified(found.pod)
    alone = Snapshot(
        namespaces=snapshot.namespaces,
        priorities=snapshot.priorities,
        runtimes=snapshot.runtimes,
        pods=(pod,),
    )
    admitted = complete(alone, context)
    if reason := admitted.over_quota.get(full_name(pod)):
        raise SimulationError(f"{found.title}: {reason}")
    base = found.base if found.base not in taken else f"{found.base}-{len(taken)}"
    spec = admitted.snapshot.pods[0].spec
    return Model(found.title, base, replace(found.pod, spec=spec), found.templates)


class _Simulator:
    """Runs a trace on a cluster."""

    def __init__(
        self,
        planned: Plan,
        models: Mapping[str, Model],
        settings: SimulationSettings,
        context: Context,
        *,
        left_out: Collection[str],
        limit: EvaluationLimit | None,
    ) -> None:
        self._planned = planned
        self._cluster = cluster = planned.cluster
        self._settings = settings
        self._start = context.now.instant
        self._limit = limit
        before = planned.before
        pods = tuple(each for each in before.pods if full_name(each) not in left_out)
        claims = tuple(cluster.claims.values())
        around = Snapshot(groups=before.groups, pods=pods, claims=claims)
        self._names = new_names(cluster)
        self._queues = {
            name: self._queue(model, Replicas(model, around, cluster.features.claims))
            for name, model in models.items()
        }
        self._use = DeviceUse(cluster)
        self._left_over = LeftOver(cluster, models, around)
        self._running: dict[str, TracePod] = {}  # by the full name of the replica
        self._leaving: list[tuple[float, int, int, TracePod]] = []
        self._evicted: list[str] = []
        self._samples: list[Sample] = []
        self._sample_s = 0.0
        self._now_s = 0.0
        self._version = 0
        self._events = 0
        self._standing = [self._stand(each) for each in planned.pending if _is_alone(each)]

    def _queue(self, model: Model, replicas: Replicas) -> PodQueue:
        priority = model.pod.spec.priority or 0
        return PodQueue(replicas.next, priority, depends_on_others=self._depends(model.pod))

    def _depends(self, pod: Pod) -> bool:
        """Return whether other pods that enter the cluster may let a pod fit."""
        shape = self._cluster.signature(pod)
        return bool(shape.affinity_terms.affinity or shape.spread_constraints.hard)

    def _stand(self, pending: Pending) -> TracePod:
        """Queue a pod of the cluster that got no node before the first arrival."""
        pod, name = pending.pod, full_name(pending.pod)
        owned = [
            each
            for each in self._cluster.claims.values()
            if (owner := controller_of(each.metadata)) is not None
            and owner.uid == pod.metadata.uid
            and each.status.allocation is None
        ]
        replica = Replica(pod, tuple(owned))
        waiting = TracePod(-1 - len(self._queues), titled(pod), 0.0, None, name=name)
        waiting.message = pending.message or pending.reason
        self._queues[f"waiting {name}"] = queue = PodQueue(
            lambda: replica,
            pod.spec.priority or 0,
            depends_on_others=self._depends(pod),
            is_stuck=True,
        )
        queue.put(waiting, 0.0)
        return waiting

    # --- time ---------------------------------------------------------------------------------

    def run(self, pods: list[TracePod], progress: Progress) -> SimulationResult:
        """Return what happens to the pods."""
        coming = sorted(pods, key=lambda each: (each.arrival_s, each.number), reverse=True)
        until_s = self._settings.until_s
        self._sample_s = self._settings.sample_s or _sample_s(pods, until_s)
        done = 0
        while coming or self._leaving:
            now_s = min(
                coming[-1].arrival_s if coming else inf,
                self._leaving[0][0] if self._leaving else inf,
            )
            if now_s > until_s:
                break
            self._go_to(now_s)
            while self._leaving and self._leaving[0][0] <= now_s:
                done += self._finish(*heapq.heappop(self._leaving)[2:])
            while coming and coming[-1].arrival_s <= now_s:
                pod = coming.pop()
                self._queues[pod.workload].put(pod, now_s)
            self._schedule()
            progress(done, len(pods))
        if coming or self._leaving:
            self._go_to(until_s)
        self._samples.append(self._sample(self._now_s))
        return self._result([each for each in pods if each.arrival_s <= self._now_s])

    def _go_to(self, now_s: float) -> None:
        """Advance time, and record samples on the way."""
        self._events += 1
        if self._events > EVENTS_MAX:
            raise SimulationError(f"more than {EVENTS_MAX:,} events, which are all at a time")
        while (next_s := len(self._samples) * self._sample_s) < now_s:
            self._samples.append(self._sample(next_s))
            if len(self._samples) >= SAMPLES_MAX:
                self._samples = self._samples[::2]
                self._sample_s *= 2
        self._use.advance(now_s)
        self._now_s = now_s
        self._cluster.now = self._start + timedelta(seconds=now_s)

    def _sample(self, at_s: float) -> Sample:
        left = self._left_over.percents(self._version) if self._settings.has_left_over else {}
        waiting = sum(map(len, self._queues.values()))
        return Sample(at_s, len(self._running), waiting, dict(self._use.used), left)

    # --- pods -----------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Try the first pods of all queues until these are empty or stuck."""
        while True:
            ready = [each for each in self._queues.values() if each and not each.is_stuck]
            if not ready:
                return
            queue = min(ready, key=lambda each: each.order)
            if self._limit is not None:
                self._limit.begin()
            if self._place(queue):
                queue.pop()
                for other in self._queues.values():
                    other.is_stuck = other.is_stuck and not other.depends_on_others
            else:
                queue.is_stuck = True

    def _place(self, queue: PodQueue) -> bool:
        """Try to place the first pod of a queue, also by preemption."""
        pod = queue.first
        assert pod.replica is not None
        for claim in pod.replica.claims:
            if self._cluster.find_claim(*_key(claim)) is None:
                self._cluster.put_claim(claim)
        outcome = decide(self._cluster, pod.replica.pod)
        if isinstance(outcome, Pending) and (victims := victims_of(outcome)):
            for victim in victims:
                self._evict(victim)
            self._unblock()
            outcome = decide(self._cluster, pod.replica.pod)
        if isinstance(outcome, Pending):
            pod.message = outcome.message or outcome.reason
            return False
        self._start_pod(pod, outcome)
        return True

    def _start_pod(self, pod: TracePod, placed: Placed) -> None:
        self._version += 1
        pod.reservation = reserve(self._cluster, placed, self._names)
        self._use.take(pod.reservation.claims)
        pod.waited_s += self._now_s - pod.queued_s
        pod.started_s, pod.node = self._now_s, placed.node
        pod.runs += 1
        self._running[full_name(placed.pod)] = pod
        if pod.duration_s is not None:
            pod.ended_s = self._now_s + pod.duration_s
            heapq.heappush(self._leaving, (pod.ended_s, pod.number, pod.runs, pod))

    def _finish(self, run: int, pod: TracePod) -> int:
        """Remove a pod if its current run ends now; return the number of finished pods."""
        if pod.reservation is None or pod.runs != run:
            return 0  # This run ended earlier, by preemption.
        self._leave(pod)
        self._unblock()
        return 1

    def _leave(self, pod: TracePod) -> None:
        """Remove a pod from the cluster, with the claims that were made for it."""
        assert pod.reservation is not None
        assert pod.replica is not None
        self._version += 1
        self._use.give_back(pod.reservation.claims)
        release(self._cluster, pod.reservation)
        for claim in pod.replica.claims:
            self._cluster.remove_claim(*_key(claim))
        del self._running[full_name(pod.reservation.pod)]
        pod.reservation = pod.replica = None

    def _evict(self, victim: PodInfo) -> None:
        pod = self._running.get(victim.full_name)
        if pod is None:
            self._evict_other(victim.full_name)
            return
        self._leave(pod)
        name = pod.workload if pod.number >= 0 else f"waiting {pod.name}"
        self._queues[name].put(pod, self._now_s)

    def _evict_other(self, name: str) -> None:
        """Remove a preempted pod that the trace does not have; nothing recreates it."""
        self._version += 1
        self._evicted.append(name)
        reservation = next((e for e in self._planned.placed if full_name(e.pod) == name), None)
        if reservation is not None:
            self._use.give_back(reservation.claims)
            release(self._cluster, reservation)
            return
        pod = next(each for each in self._planned.before.pods if full_name(each) == name)
        self._cluster.remove_pod(pod)
        for claim_name in claims_to_release(pod):
            claim = self._cluster.find_claim(pod.metadata.namespace, claim_name)
            if claim is not None:
                self._unreserve(claim, pod)

    def _unreserve(self, claim: ResourceClaim, pod: Pod) -> None:
        others = tuple(e for e in claim.status.reserved_for if e.uid != pod.metadata.uid)
        if others:
            self._cluster.put_claim(
                replace(claim, status=replace(claim.status, reserved_for=others))
            )
            return
        self._use.give_back([claim])
        self._cluster.remove_claim(*_key(claim))
        owner = controller_of(claim.metadata)
        if owner is None or owner.uid != pod.metadata.uid:
            status = replace(claim.status, allocation=None, reserved_for=())
            self._cluster.put_claim(replace(claim, status=status))

    def _unblock(self) -> None:
        for queue in self._queues.values():
            queue.is_stuck = False

    # --- the result -----------------------------------------------------------------------------

    def _result(self, pods: list[TracePod]) -> SimulationResult:
        for queue in self._queues.values():
            queue.finish()
        notes = [*self._left_over.notes]
        groups = [each for each in self._planned.pending if not _is_alone(each)]
        if groups:
            are = counted(len(groups), "pod")
            notes.append(f"{are} of pod groups, which got no node at first, are not tried again")
        return SimulationResult(
            tuple(each.shown(self._now_s) for each in (*self._standing, *pods)),
            tuple(self._samples),
            self._use.drivers(),
            self._now_s,
            tuple(self._evicted),
            tuple(notes),
        )


def _is_alone(pending: Pending) -> bool:
    return pending.pod.spec.scheduling_group is None


def _key(claim: ResourceClaim) -> tuple[str, str]:
    return claim.metadata.namespace, claim.metadata.name


def _sample_s(pods: Sequence[TracePod], until_s: float) -> float:
    """Return the time between samples, for a trace whose pods do not wait."""
    end_s = max(each.arrival_s + (each.duration_s or 0.0) for each in pods)
    return max(min(end_s, until_s) / SAMPLES, 0.001)
