"""The live scheduler without its clock and its wires: what happens goes in, what to do comes out.

    put, remove ──► LiveCluster ──topics──► Queue ──► step: cycle, reserve ──► job: bind
                        ▲                     ▲                                   │
                        └── answers ──────────┴──── no node, or a fault ◄─────────┘

One thing is done at a time: between two calls nothing changes, so no change is ever missed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

from mooring.allocator.allocation import BUDGET
from mooring.api.core.pod import DEFAULT_SCHEDULER, Pod
from mooring.api.scheduling import PodGroup
from mooring.claims.consumers import is_at_most_for, pod_consumer
from mooring.claims.owners import group_name
from mooring.claims.references import claim_names
from mooring.kit.metrics import Labels, exposition
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import Attempt, Pending, Placed, attempt, schedule
from mooring.scheduler.groups import Decided, Gang, decide_group
from mooring.scheduler.live import reporting
from mooring.scheduler.live.asks import Answer
from mooring.scheduler.live.binding import Bound, Desk, Failed, bind
from mooring.scheduler.live.config import Config
from mooring.scheduler.live.groupstatus import say_of_group
from mooring.scheduler.live.hints import Waits, of_pod, waits_of
from mooring.scheduler.live.jobs import Jobs, Request
from mooring.scheduler.live.livecluster import LiveCluster
from mooring.scheduler.live.metrics import (
    ERROR,
    SCHEDULED,
    UNSCHEDULABLE,
    Looks,
    Metrics,
    profile_of,
)
from mooring.scheduler.live.moment import Moment
from mooring.scheduler.live.podmetrics import resource_families
from mooring.scheduler.live.queue import Item, ItemKey, Kind, Queue
from mooring.scheduler.live.refusing import Explain, Refusals
from mooring.scheduler.plugin_times import SAMPLE_EVERY, PluginTimes
from mooring.scheduler.reserving import Fresh, Reservation
from mooring.scheduler.shape import Settings
from mooring.scheduler.shapes import key_of

LOG = logging.getLogger(__name__)

TIMED_OUT = "timed out trying to allocate devices"


class LiveScheduler:
    """Places the pods of a cluster as it changes."""

    def __init__(
        self,
        config: Config,
        fresh: Fresh,
        *,
        elapsed: Callable[[], float],
        explain: Explain = lambda *_: "",
    ) -> None:
        first, *others = config.names
        settings = Settings(first, other_names=frozenset(others), is_admitted=True)
        cluster = Cluster(
            config.features,
            settings=settings,
            extensions=config.extensions,
        )
        cluster.binding_timeout_s = config.binding_timeout_s
        self.live = LiveCluster(cluster)
        self.queue = Queue(config.backoff)
        self.jobs = Jobs()
        self.metrics = Metrics(Looks(self._pending, self._rejected, self._cached))
        self._times = PluginTimes(elapsed, self.metrics.plugin_s.note)
        self._cycles = 0
        self._config = config
        self._fresh = fresh
        self._elapsed = elapsed
        self._deadline_s = float("inf")
        if config.filter_timeout_s:
            cluster.budget = BUDGET._replace(interrupt=self._interrupt)
        self._now: Moment | None = None
        self._refusals = Refusals(self.live, self.jobs, self.metrics, explain, config.explain_in)
        self._desk = Desk(self.live, lambda: self._moment, self.metrics, config.binding_timeout_s)

    # --- what happens -------------------------------------------------------------------------

    def put(self, value: Any, now: Moment, *, is_listed: bool = False) -> None:
        """Take in an object, or its newer version; all of a list come before the next step."""
        self._at(now)
        self.live.put(value, is_listed=is_listed)
        if isinstance(value, Pod):
            self._enqueue(key_of(value))
        self._spread()

    def remove(self, value: Any, now: Moment) -> None:
        """Take in that an object is gone."""
        self._at(now)
        self.live.remove(value)
        if isinstance(value, Pod):
            key = key_of(value)
            self.queue.discard(self._item_key(value), key, now.elapsed_s)
            self._refusals.forget(key)
        self._spread()

    def answer(self, request: Request, answer: Answer, now: Moment) -> None:
        """Take in what became of something that was to be read or written."""
        self._at(now)
        self.jobs.answer(request, answer)
        self._spread()

    # --- what to do ---------------------------------------------------------------------------

    def step(self, now: Moment) -> bool:
        """Decide about the next pod or group; False if there is none to decide about now."""
        self._at(now)
        self.live.catch_up()
        self.jobs.tick(now.elapsed_s)
        self._spread()
        if self.jobs.running - self.jobs.idle >= self._config.jobs_max:
            return False
        item = self.queue.pop(now.elapsed_s)
        if item is None:
            return False
        item.pods = {key: self.live.pods[key] for key in item.pods if self.live.is_waiting(key)}
        self.live.cluster.now = now.wall
        if self._config.filter_timeout_s:
            self._deadline_s = self._elapsed() + self._config.filter_timeout_s
        if not item.pods:
            self.queue.placed(item, None, now.elapsed_s)  # another of its kind is looked at
        else:
            self._try(item)
        self._spread()
        return True

    def outgoing(self) -> list[Request]:
        """Return what is to be read and written, each once; `answer` takes what became of it."""
        return self.jobs.outgoing()

    def close(self) -> None:
        """Do nothing any more: what is left of jobs goes without a trace."""
        self.jobs.close()

    def next_s(self) -> float | None:
        """Return when time brings something to do, if nothing happens before."""
        times = [each for each in (self.queue.next_s(), self.jobs.next_s()) if each is not None]
        return min(times, default=None)

    def metrics_text(self) -> str:
        """Return all that was counted, as Prometheus reads it."""
        return exposition(self.metrics.families())

    def resources_text(self) -> str:
        """Return what each pod asks for and may take, as Prometheus reads it."""
        return exposition(resource_families(self.live.pods.values()))

    def _try(self, item: Item) -> None:
        """Decide about an item; a bug of ours costs that item a while, and no other."""
        pods = dict(item.pods)
        is_measured = self._cycles % SAMPLE_EVERY == 0
        self._cycles += 1
        self.live.cluster.work.measure(self._times if is_measured else None)
        try:
            if item.key[0] == "group":
                self._try_group(item)
            else:
                self._try_pod(item)
        except Exception as error:
            LOG.exception("no decision about %s", "/".join(item.key[1:]))
            item.pods = {key: pod for key, pod in pods.items() if self.live.is_waiting(key)}
            self.queue.back_off(item, self._s)
            message = f"internal error: {type(error).__name__}: {error}"
            for key in item.pods:
                self._refusals.complain(key, message, self._moment)
        finally:
            self.live.cluster.work.measure(None)

    # --- one pod ------------------------------------------------------------------------------

    def _try_pod(self, item: Item) -> None:
        (pod,) = item.pods.values()
        if self._gives_back(pod):
            self.queue.back_off(item, self._s)
            return
        ready = attempt(self.live.cluster, pod)
        outcome = ready if isinstance(ready, Pending) else ready.best(alone=True)
        kind = None if isinstance(ready, Pending) else _kind(ready)
        self.metrics.algorithm_s.note(self._elapsed() - self._s)
        if isinstance(outcome, Placed):
            self._bind(self.live.reserve(outcome, self._fresh), item)
            self.queue.placed(item, kind, self._s)
        else:
            self.live.cluster.work.measure(None)  # what explains a refusal is no part of the cycle
            self._note_refused(outcome)
            self._refusals.say(outcome, self._moment)
            self._set_aside(item, outcome, kind)

    def _gives_back(self, pod: Pod) -> bool:
        """Give devices of the pod's claims back that other claims got first, if there are any."""
        found = False
        for name in claim_names(pod):
            key = (pod.metadata.namespace, name)
            claim = self.live.claims.stored.get(key)
            if claim is None or self.live.rival_of(key) is None:
                continue
            holder = self.live.holder_of(claim, pod)
            if is_at_most_for(claim, holder):
                found = True
                self.jobs.start(reporting.give_back(self.live, claim, holder))
            elif pod_consumer(pod) in claim.status.reserved_for:
                found = True  # who else waits for it does the same, and the last gives it back
                self.jobs.start(reporting.unreserve(self.live, claim, pod))
        return found

    def _set_aside(self, item: Item, pending: Pending, kind: Kind | None) -> None:
        if pending.is_fault:
            self.queue.back_off(item, self._s)
        else:
            waits = waits_of(pending)
            if pending.preemption is not None:  # it must be there when the room is
                waits = waits._replace(is_eager=True)
            self.queue.park(item, waits, kind, self._s)

    def _bind(self, reservation: Reservation, item: Item) -> None:
        key = key_of(reservation.pod)
        start_s, tries = self._s, item.tries
        since_s, item_key = item.since_s, item.key
        profile = profile_of(reservation.pod)
        self._refusals.found_node(key)

        def finished(result: Bound | Failed) -> None:
            if isinstance(result, Bound):
                self._refusals.forget(key)
                self.metrics.attempted(profile, SCHEDULED, self._s - start_s)
                self.metrics.sli_s.note(self._s - since_s, str(min(tries, 15)))
                self.metrics.tries.note(tries)
            else:
                again = Item(item_key, since_s, priority=item.priority, tries=tries)
                self._note_unbound(reservation.pod, again, result, start_s)

        times = self.live.cluster.work.times
        self.jobs.start(bind(self._desk, reservation, times), finished)

    def _note_refused(self, pending: Pending) -> None:
        if pending.message:
            result = ERROR if pending.is_fault else UNSCHEDULABLE
            self.metrics.attempted(profile_of(pending.pod), result, self._elapsed() - self._s)

    def _note_unbound(self, pod: Pod, item: Item, failed: Failed, start_s: float) -> None:
        key = key_of(pod)
        self.metrics.attempted(profile_of(pod), ERROR, self._s - start_s)
        if failed.is_gone or not self.live.is_waiting(key):
            return
        item.pods = {key: self.live.pods[key]}
        self.queue.back_off(item, self._s)
        self._refusals.complain(key, failed.message, self._moment)

    # --- a group ------------------------------------------------------------------------------

    def _try_group(self, item: Item) -> None:
        """Try the pods of a group together; those that get no node wait together."""
        _, namespace, name = item.key
        group = self.live.cluster.groups.get((namespace, name))
        if group is None:
            missing = [schedule(self.live.cluster, pod) for pod in item.pods.values()]
            self._keep(item, None, [each for each in missing if isinstance(each, Pending)])
            return
        giving = [pod for pod in item.pods.values() if self._gives_back(pod)]
        if giving:
            self.queue.back_off(item, self._s)
            return
        members = self.live.members.get((namespace, name), {})
        pods = sorted(item.pods.values(), key=_rank)
        gang = Gang(
            group,
            tuple(pods),
            scheduled=sum(self.live.has_node(key) for key in members),
            existing=len(members),
        )
        decided = decide_group(self.live.cluster, gang, self._fresh)
        self._note_group(decided, profile_of(pods[0]))
        for result in decided.results:
            if isinstance(result, Reservation):
                self._bind(self.live.took(result), item)
        self.jobs.start(say_of_group(group, decided, self._moment))
        self._keep(item, group, [each for each in decided.results if isinstance(each, Pending)])

    def _note_group(self, decided: Decided, profile: str) -> None:
        if decided.message is None:
            return  # it was not tried
        result = SCHEDULED
        if decided.message:
            result = ERROR if decided.is_fault else UNSCHEDULABLE
        self.metrics.group_attempted(profile, result, self._elapsed() - self._s)

    def _keep(self, item: Item, group: PodGroup | None, pending: list[Pending]) -> None:
        """Let the pods of a group that got no node wait together."""
        self.live.cluster.work.measure(None)
        item.pods = {key_of(each.pod): each.pod for each in pending}
        for each in pending:
            self._note_refused(each)
        if group is None:
            assert not any(each.message for each in pending), "they wait for their group"
        else:
            self._refusals.say_of_group(group, pending, self._moment)
        if any(each.is_fault for each in pending):
            self.queue.back_off(item, self._s)
        elif pending:
            self.queue.park(item, _together([waits_of(each) for each in pending]), None, self._s)

    # --- within -------------------------------------------------------------------------------

    @property
    def _moment(self) -> Moment:
        assert self._now is not None
        return self._now

    @property
    def _s(self) -> float:
        return self._moment.elapsed_s

    def _at(self, now: Moment) -> None:
        self._now = now
        self.jobs.now_s = now.elapsed_s

    def _spread(self) -> None:
        """Let everyone know what was changed, until nothing more follows from it."""
        while fired := sorted(self.live.fired()):  # in every run the same
            self.queue.fire(fired, self._s)
            for topic in fired:
                self.jobs.notify(topic)

    def _enqueue(self, key: str) -> None:
        pod = self.live.pods.get(key)
        if pod is None:
            return
        name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
        item_key = self._item_key(pod)
        if self.live.is_waiting(key) and name in self._config.names:
            priority = self._priority(pod)
            self.queue.put(item_key, key, pod, priority=priority, now_s=self._s)
        else:
            self.queue.discard(item_key, key, self._s)
            if not self.live.is_wanted(key) or pod.spec.node_name:
                self._refusals.forget(key)
                self.jobs.notify(of_pod(key))

    def _item_key(self, pod: Pod) -> ItemKey:
        return _item_key(pod, with_groups=self.live.cluster.features.pod_groups)

    def _priority(self, pod: Pod) -> int:
        name = group_name(pod)
        if name is not None:
            group = self.live.cluster.groups.get((pod.metadata.namespace, name))
            if group is not None and group.spec.priority is not None:
                return group.spec.priority
        return pod.spec.priority or 0

    # --- levels, looked up when metrics are read ------------------------------------------------

    def _pending(self) -> dict[Labels, int]:
        return {(queue,): count for queue, count in self.queue.counts().items()}

    def _rejected(self) -> Counter[Labels]:
        return self._refusals.plugins()

    def _cached(self) -> dict[Labels, int]:
        nodes = self.live.cluster.fleet.nodes
        return {
            ("nodes",): len(nodes),
            ("pods",): sum(len(state.pods) for state in nodes.values()),
            ("assumed_pods",): len(self.live.assumed) + len(self.live.in_flight),
        }

    def _interrupt(self) -> str | None:
        return TIMED_OUT if self._elapsed() > self._deadline_s else None


def _item_key(pod: Pod, *, with_groups: bool) -> ItemKey:
    group = group_name(pod) if with_groups else None
    return ("pod", key_of(pod)) if group is None else ("group", pod.metadata.namespace, group)


def _kind(ready: Attempt) -> Kind:
    return ready.shape, None if ready.check is None else ready.check.key


def _rank(pod: Pod) -> tuple[int, str, str]:
    created = pod.metadata.creation_timestamp
    return -(pod.spec.priority or 0), "" if created is None else str(created), pod.metadata.name


def _together(waits: list[Waits]) -> Waits:
    """Return what can help pods that are tried together."""
    return Waits(
        frozenset().union(*(each.own for each in waits)),
        frozenset().union(*(each.shared for each in waits)),
        all(each.is_gated for each in waits),
    )
