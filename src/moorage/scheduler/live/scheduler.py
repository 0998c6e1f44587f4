"""The live scheduler without clock and network: changes go in, effects come out.

    put, remove ──► AssumeCache ──events──► SchedulingQueue ──► step: scheduling cycle, reserve
                        ▲                     ▲                                │
                        └── results ──────────┴── no node, or an error ◄── binding cycle

One thing is done at a time: between two calls nothing changes, so no change is ever missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.allocator.allocation import BUDGET
from moorage.api.core.pod import DEFAULT_SCHEDULER, Pod
from moorage.api.meta import object_text
from moorage.claims.pod_claims import claim_names, group_name
from moorage.claims.reservations import is_at_most_for, pod_consumer
from moorage.kit.bulkhead import FAULTS
from moorage.kit.metrics import exposition
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.errors import INTERNAL_ERROR
from moorage.scheduler.framework import DYNAMIC_RESOURCES, SAMPLE_EVERY, PluginTimes
from moorage.scheduler.group_forest import GROUP, AnyGroup
from moorage.scheduler.live.assume_cache import AssumeCache
from moorage.scheduler.live.binding_cycle import BindFailed, BindSucceeded, bind
from moorage.scheduler.live.config import Moment, SchedulerConfig
from moorage.scheduler.live.effects import EffectRequest, EffectResult, EffectRunner
from moorage.scheduler.live.evaluation_turns import BoundedExplanation, EvaluationTurns
from moorage.scheduler.live.failure_handler import Explain, FailureHandler
from moorage.scheduler.live.group_scheduling import GroupScheduling
from moorage.scheduler.live.metrics import (
    ERROR,
    SCHEDULED,
    SLOWEST_SHOWN,
    UNSCHEDULABLE,
    GaugeSources,
    Metrics,
    cache_sizes,
    profile_of,
    resource_families,
)
from moorage.scheduler.live.pre_bind import BindContext
from moorage.scheduler.live.queue_entries import PodKind, QueuedPodInfo, QueueKey
from moorage.scheduler.live.queueing_hints import gated_hints, hints_for, of_pod
from moorage.scheduler.live.scheduling_queue import SchedulingQueue
from moorage.scheduler.live.status_updates import try_deallocate, try_unreserve
from moorage.scheduler.pod_signature import ReadingSettings, pod_key
from moorage.scheduler.reservation import IdSource, Reservation
from moorage.scheduler.scheduling_cycle import Pending, Placed, attempt, awaits_claims


class LiveScheduler:
    """Schedules the pods of a cluster as it changes."""

    def __init__(
        self,
        config: SchedulerConfig,
        ids: IdSource,
        *,
        elapsed: Callable[[], float],
        explain: Explain = lambda *_: "",
    ) -> None:
        cluster = Cluster(
            config.features,
            settings=ReadingSettings(is_admitted=True),
            profiles=config.profiles,
            extensions=config.extensions,
        )
        self.cache = AssumeCache(cluster)
        self.queue = SchedulingQueue(config.backoff)
        self.effects = EffectRunner()
        self.metrics = Metrics(
            GaugeSources(
                lambda: {(queue,): count for queue, count in self.queue.counts().items()},
                lambda: self._failures.plugins(),
                lambda: cache_sizes(self.cache),
                lambda: self._meter.slowest(SLOWEST_SHOWN),
            )
        )
        self._times = PluginTimes(elapsed, self.metrics.plugin_s.observe)
        self._cycles = 0
        self._config = config
        self._ids = ids
        self._elapsed = elapsed
        self._meter = cluster.inventory.compiler.meter
        self._meter.clock = elapsed
        self._turns = EvaluationTurns(elapsed, evaluated_s=lambda: self._meter.seconds)
        cluster.budget = BUDGET._replace(interrupt=self._turns.interrupt, admit=self._turns.admit)
        self._now: Moment | None = None
        self._is_renewing = False  # explanations take turns with pods to try
        told = BoundedExplanation(explain, self._turns, self._meter)
        self._failures = FailureHandler(
            self.cache, self.effects, self.metrics, told, config.explain_in
        )
        self._bind_context = BindContext(
            self.cache, lambda: self._moment, self.metrics, config.joins_claim_writes
        )
        self._groups = GroupScheduling(self, self._failures, self._turns, ids, config)

    # --- changes ------------------------------------------------------------------------------

    def put(self, value: Any, now: Moment, *, is_listed: bool = False) -> None:
        """Add an object, or its newer version; all of a list come before the next step."""
        self._at(now)
        members = self._groups.pods_below(value) if isinstance(value, AnyGroup) else ()
        with FAULTS.guard("the scheduler's cache", lambda: object_text(value)):
            self.cache.put(value, is_listed=is_listed)
        if isinstance(value, Pod):
            self._enqueue(pod_key(value))
        for key, queue_key in members:
            self._requeue(key, queue_key)
        self._dispatch()

    def remove(self, value: Any, now: Moment) -> None:
        """Remove an object."""
        self._at(now)
        members = self._groups.pods_below(value) if isinstance(value, AnyGroup) else ()
        was_ready = isinstance(value, Pod) and self._groups.is_just_ready(
            self._queue_key(value), value
        )
        with FAULTS.guard("the scheduler's cache", lambda: object_text(value)):
            self.cache.remove(value)
        if isinstance(value, Pod):
            key, queue_key = pod_key(value), self._queue_key(value)
            self.queue.discard(queue_key, key, now.elapsed_s, was_ready=was_ready)
            self._failures.forget(key)
        for key, queue_key in members:
            self._requeue(key, queue_key)
        self._dispatch()

    def answer(self, request: EffectRequest, result: EffectResult, now: Moment) -> None:
        """Take the result of something that was to be read or written."""
        self._at(now)
        self.effects.answer(request, result)
        self._dispatch()

    # --- steps --------------------------------------------------------------------------------

    def step(self, now: Moment) -> bool:
        """Schedule the next pod or group; False if there is none to schedule now."""
        self._at(now)
        self.cache.catch_up()
        self.effects.tick(now.elapsed_s)
        self._dispatch()
        if self.effects.running - self.effects.idle >= self._config.jobs_max:
            return False
        self._is_renewing = not self._is_renewing and self._failures.stale.is_due(now.elapsed_s)
        entry = None if self._is_renewing else self.queue.pop(now.elapsed_s)
        if entry is None:
            return self._renew_explanation(now)
        entry.pods = {
            key: self.cache.pods[key] for key in entry.pods if self.cache.is_unscheduled(key)
        }
        self.cache.cluster.now = now.wall
        if not entry.pods:
            self.queue.placed(entry, None, now.elapsed_s)  # another of its kind is tried
        else:
            self._turns.begin(
                entry.lane,
                used_s=entry.used_s if entry.is_slice else None,
                timeout_s=self._filter_timeout_s(entry),
            )
            self._try(entry)
            if entry.is_slice:  # everything else gets as much time before the next
                self.queue.slices_from_s = self._s + 2 * self._turns.took_s
        self._dispatch()
        return True

    def _filter_timeout_s(self, entry: QueuedPodInfo) -> float:
        """Return how long the nodes of a pod may be filtered, or those of a group's pods."""
        pod = next(iter(entry.pods.values()))
        profile = self.cache.cluster.profiles.get(profile_of(pod))
        return 0.0 if profile is None else profile.filter_timeout_s

    def outgoing(self) -> list[EffectRequest]:
        """Return the pending reads and writes, each once; `answer` takes the results."""
        return self.effects.outgoing()

    def close(self) -> None:
        """Stop, and drop the remaining binding cycles."""
        self.effects.close()

    def next_s(self) -> float | None:
        """Return when there is something to do, if nothing happens before."""
        times = [each for each in (self.queue.next_s(), self.effects.next_s()) if each is not None]
        again_s = self._failures.stale.next_s()
        if again_s is not None and again_s > self._s:  # what is due waits for jobs, not for a time
            times.append(again_s)
        return min(times, default=None)

    def metrics_text(self) -> str:
        """Return all metrics, as Prometheus reads them."""
        return exposition((*self.metrics.families(), FAULTS.total))

    def resources_text(self) -> str:
        """Return the requests and limits of each pod, as Prometheus reads them."""
        return exposition(resource_families(self.cache.pods.values()))

    def _try(self, entry: QueuedPodInfo) -> None:
        """Schedule an entry; a bug of ours delays that entry, and no other."""
        pods = dict(entry.pods)
        is_measured = self._cycles % SAMPLE_EVERY == 0
        self._cycles += 1
        self.cache.cluster.work.measure(self._times if is_measured else None)
        try:
            if entry.key[0] != "pod":
                self._groups.schedule(entry, self._moment)
            else:
                with self.cache.cluster.nominated.held(entry.priority, pods):
                    self._try_pod(entry)
        except Exception as error:
            names = ", ".join(object_text(pod) for pod in pods.values())
            FAULTS.note("scheduling", names, error, "waits for the next attempt")
            entry.pods = {key: pod for key, pod in pods.items() if self.cache.is_unscheduled(key)}
            self.queue.back_off(entry, self._s)
            for key in entry.pods:
                self._failures.handle_error(key, INTERNAL_ERROR, self._moment)
        finally:
            self.cache.cluster.work.measure(None)

    # --- one pod ------------------------------------------------------------------------------

    def _try_pod(self, entry: QueuedPodInfo) -> None:
        (pod,) = entry.pods.values()
        if self.resolves_double_allocation(pod):
            self.queue.back_off(entry, self._s)
            return
        if awaits_claims(self.cache.cluster, pod):
            self._failures.hold_back(pod, DYNAMIC_RESOURCES, self._moment)
            self.queue.add_unschedulable(entry, gated_hints(pod), None, self._s)
            return
        ready = attempt(self.cache.cluster, pod)
        outcome = ready if isinstance(ready, Pending) else ready.best(alone=True)
        if self._turns.is_put_off and isinstance(outcome, Pending):
            self.queue.put_off(entry, self._turns.used_s)
            return
        kind = None if isinstance(ready, Pending) else ready.kind
        self.metrics.algorithm_s.observe(self._elapsed() - self._s)
        if isinstance(outcome, Placed):
            self.bind(self.cache.reserve(outcome, self._ids), entry)
            self.queue.placed(entry, kind, self._s)
        else:
            self.cache.cluster.work.measure(None)  # the explanation is not part of the cycle
            self.count_rejected(outcome)
            self._failures.handle(outcome, self._moment)
            self._set_aside(entry, outcome, kind)

    def _renew_explanation(self, now: Moment) -> bool:
        """Explain the next pod anew whose explanation names what is gone; False if there is none.

        It waits on, unless it would get a node by now.
        """
        stale = self._failures.stale
        found = stale.first(now.elapsed_s)
        if found is None:
            return False
        pod = self.cache.pods.get(found.key)
        if pod is None or not self.cache.is_unscheduled(found.key):
            stale.discard(found.key)
            return True
        try:
            explanation = self._explained_anew(pod, now)
        except Exception as error:
            FAULTS.note("explaining", object_text(pod), error)
            explanation = ""
        if explanation is None and not found.is_given_up(now.elapsed_s):
            stale.postpone(found.key, now.elapsed_s)
        else:
            self._failures.renew(found.key, explanation or "", now)
        self._dispatch()
        return True

    def _explained_anew(self, pod: Pod, now: Moment) -> str | None:
        """Return why a pod has no node by now; "" if it would get one; None without time."""
        key, cluster = pod_key(pod), self.cache.cluster
        cluster.now = now.wall
        cluster.work.measure(None)
        self._turns.begin(pod.metadata.namespace)
        with cluster.nominated.held(pod.spec.priority or 0, (key,)):
            ready = attempt(cluster, pod)
            outcome = ready if isinstance(ready, Pending) else ready.best(alone=False)
        if isinstance(outcome, Placed):
            self.queue.try_again(self._queue_key(pod), now.elapsed_s)
            return ""
        if outcome.is_fault or self._turns.is_put_off:
            return None
        return self._failures.explained_anew(outcome)

    def resolves_double_allocation(self, pod: Pod) -> bool:
        """Deallocate the pod's claims whose devices other claims got first, if there are any."""
        found = False
        for name in claim_names(pod):
            key = (pod.metadata.namespace, name)
            claim = self.cache.claims.stored.get(key)
            if claim is None or self.cache.first_owner(key) is None:
                continue
            holder = self.cache.holder_of(claim, pod)
            if is_at_most_for(claim, holder):
                found = True
                self.effects.start(try_deallocate(self.cache, claim, holder))
            elif pod_consumer(pod) in claim.status.reserved_for:
                found = True  # the other consumers do the same, and the last deallocates it
                self.effects.start(try_unreserve(self.cache, claim, pod))
        return found

    def _set_aside(self, entry: QueuedPodInfo, pending: Pending, kind: PodKind | None) -> None:
        if pending.is_fault:
            self.queue.back_off(entry, self._s)
        else:
            hints = hints_for(pending)
            if pending.preemption is not None:  # it must be ready when the victims have left
                hints = hints._replace(is_eager=True)
            # Room is held for it against the others of its kind: their answer is not its own.
            is_nominated = self.cache.cluster.nominated.node_of(pod_key(pending.pod)) is not None
            kind = None if is_nominated else kind
            self.queue.add_unschedulable(entry, hints, kind, self._s)

    def bind(self, reservation: Reservation, entry: QueuedPodInfo) -> None:
        """Bind a pod to its node; if that fails, it is tried again."""
        key = pod_key(reservation.pod)
        start_s, tries = self._s, entry.tries
        since_s = entry.since_s
        profile = profile_of(reservation.pod)
        self._failures.found_node(key)

        def finished(result: BindSucceeded | BindFailed) -> None:
            if isinstance(result, BindSucceeded):
                self._failures.forget(key)
                self.metrics.attempted(profile, SCHEDULED, self._s - start_s)
                self.metrics.sli_s.observe(self._s - since_s, str(min(tries, 15)))
                self.metrics.tries.observe(tries)
            else:
                queue_key = self._queue_key(reservation.pod)
                again = QueuedPodInfo(queue_key, since_s, priority=entry.priority, tries=tries)
                self._handle_unbound(reservation.pod, again, result, start_s)

        times = self.cache.cluster.work.times
        self.effects.start(bind(self._bind_context, reservation, times), finished)

    def count_rejected(self, pending: Pending) -> None:
        """Count a pod that got no node, if it was tried."""
        if pending.message:
            result = ERROR if pending.is_fault else UNSCHEDULABLE
            self.metrics.attempted(profile_of(pending.pod), result, self._elapsed() - self._s)

    def _handle_unbound(
        self, pod: Pod, entry: QueuedPodInfo, failed: BindFailed, start_s: float
    ) -> None:
        key = pod_key(pod)
        self.metrics.attempted(profile_of(pod), ERROR, self._s - start_s)
        if failed.is_gone or not self.cache.is_unscheduled(key):
            return
        entry.pods = {key: self.cache.pods[key]}
        self.queue.back_off(entry, self._s)
        self._failures.handle_error(key, failed.message, self._moment)

    # --- helpers ------------------------------------------------------------------------------

    def elapsed_s(self) -> float:
        """Return how long the present step has taken."""
        return self._elapsed() - self._s

    @property
    def _moment(self) -> Moment:
        assert self._now is not None
        return self._now

    @property
    def _s(self) -> float:
        assert self._now is not None
        return self._now.elapsed_s

    def _at(self, now: Moment) -> None:
        self._now = now
        self.effects.now_s = now.elapsed_s

    def _dispatch(self) -> None:
        """Pass cluster events on, until no more follow from them."""
        while events := self.cache.take_events():
            fired = sorted(events)  # in every run the same
            self.queue.fire(fired, self._s)
            self.effects.notify(fired)
        for name in sorted(self.cache.take_vanished()):
            self._failures.stale.vanish(name, self._s)

    def _enqueue(self, key: str) -> None:
        pod = self.cache.pods.get(key)
        if pod is None:
            return
        name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
        queue_key = self._queue_key(pod)
        if self.cache.is_unscheduled(key) and name in self._config.names:
            priority = self._priority(pod, queue_key)
            self.queue.put(queue_key, key, pod, priority=priority, now_s=self._s)
        else:
            self.queue.discard(queue_key, key, self._s)
            if not self.cache.is_alive(key) or pod.spec.node_name:
                self._failures.forget(key)
                self.effects.notify((of_pod(key),))

    def _requeue(self, key: str, queue_key: QueueKey) -> None:
        """Let a pod of a group wait under its present root, with the priority of that."""
        pod, entry = self.cache.pods[key], self.queue.find(queue_key)
        if self._queue_key(pod) != queue_key:
            self.queue.discard(queue_key, key, self._s)
        elif entry is None or entry.priority == self._priority(pod, queue_key):
            return
        self._enqueue(key)

    def _queue_key(self, pod: Pod) -> QueueKey:
        group = group_name(pod) if self.cache.cluster.features.pod_groups else None
        if group is None:
            return ("pod", pod_key(pod))
        return self.cache.cluster.forest.root_of((GROUP, pod.metadata.namespace, group))

    def _priority(self, pod: Pod, queue_key: QueueKey) -> int:
        if queue_key[0] != "pod":
            root = self.cache.cluster.forest.get((queue_key[0], queue_key[1], queue_key[2]))
            if root is not None and root.spec.priority is not None:
                return root.spec.priority
        return pod.spec.priority or 0
