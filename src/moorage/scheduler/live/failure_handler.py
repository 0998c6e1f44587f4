"""The failure handler: reports pods without a node, and tries to help them.

Moorage's own explanation follows Kubernetes' message or is an event of its own. It is asked for at
every attempt, because the cause may change while Kubernetes' message stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.meta import object_text
from moorage.api.scheduling import PodGroup
from moorage.kit.bulkhead import FAULTS
from moorage.kit.metrics import Labels
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.framework import GANG_SCHEDULING
from moorage.scheduler.group_forest import AnyGroup
from moorage.scheduler.live.assume_cache import AssumeCache
from moorage.scheduler.live.config import ExplainIn, Moment
from moorage.scheduler.live.effects import EffectRunner
from moorage.scheduler.live.metrics import Metrics, profile_of
from moorage.scheduler.live.stale_explanations import StaleExplanations
from moorage.scheduler.live.status_updates import (
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    Preemptor,
    carry_out,
    clear_nomination,
    evict,
    report_unscheduled,
    try_deallocate,
)
from moorage.scheduler.plugins.dynamic_resources import NOT_AVAILABLE
from moorage.scheduler.pod_signature import PodInfo, pod_key
from moorage.scheduler.pre_filter import NODE_AFFINITY, UNMODELLED
from moorage.scheduler.preemption import Preemption
from moorage.scheduler.scheduling_cycle import Attempt, Pending, attempt

# One line: the cause and a fix. "" if there is nothing to add; None if there was no time to ask.
Explain = Callable[[Cluster, Pod, Pending], str | None]


class _Report(NamedTuple):
    """The last report of a pod: Kubernetes' message, and Moorage's explanation."""

    message: str
    explanation: str
    version: str  # of the pod


class FailureHandler:
    """Reports pods that could not be scheduled."""

    def __init__(
        self,
        cache: AssumeCache,
        effects: EffectRunner,
        metrics: Metrics,
        explain: Explain,
        explain_in: ExplainIn = ExplainIn.CONDITION,
    ) -> None:
        self._cache = cache
        self._effects = effects
        self._metrics = metrics
        self._explain = explain
        self._explain_in = explain_in
        self._reports: dict[str, _Report] = {}
        self._plugins: dict[str, tuple[Labels, ...]] = {}  # plugin and profile, by pod
        self.stale = StaleExplanations()

    def is_muted(self, pending: Pending, muted: Container[str]) -> bool:
        """Return whether Kubernetes adds a new message to the last event, where nobody sees it.

        It does so if the pod is the same as at that event, which it is for those that are muted.
        """
        key = pod_key(pending.pod)
        before = self._reports.get(key)
        if before is None or before.message == _worded(pending).message:
            return False
        return key in muted or before.version == pending.pod.metadata.resource_version

    def handle(self, pending: Pending, now: Moment, *, is_muted: bool = False) -> bool:
        """Report why a pod has no node, and help it; False if there is nothing to report."""
        pending = _worded(pending)
        key = pod_key(pending.pod)
        profile = profile_of(pending.pod)
        self._plugins[key] = tuple((plugin, profile) for plugin in _plugins(pending))
        if not pending.message:  # it was not tried
            self.stale.mark(key, now.elapsed_s)
            return False
        message, explanation = self._texts(key, pending)
        reason = SCHEDULER_ERROR if pending.is_fault else UNSCHEDULABLE
        nominated = pending.nominated
        if pending.deallocation is not None:
            nominated = ""
            self._effects.start(carry_out(self._cache, key, pending.deallocation))
        elif pending.preemption is not None:
            self._preempt(pending.pod, pending.preemption, now)
        if nominated:
            self._cache.cluster.nominate(pending.pod, nominated)
        elif nominated is not None:
            self._cache.cluster.nominated.discard(key)
        self._report(
            key,
            message,
            reason,
            now,
            nominated=nominated,
            explanation=explanation,
            is_muted=is_muted,
        )
        return True

    def explained_anew(self, pending: Pending) -> str | None:
        """Return what is said of a pod by now, beside the message that it has; None without time.

        It was not tried as the scheduler tries it: its message stays.
        """
        before = self._reports.get(pod_key(pending.pod))
        message = pending.message if before is None else before.message
        return self._explained(replace(pending, message=message))

    def renew(self, key: str, explanation: str, now: Moment) -> None:
        """Report a pod with another explanation, which names nothing that is gone."""
        self.stale.put(key, explanation)
        before = self._reports.get(key)
        if before is not None and before.explanation != explanation:
            self._reports[key] = before._replace(explanation=explanation)
            self._report(key, before.message, UNSCHEDULABLE, now, explanation=explanation)

    def hold_back(self, pod: Pod, plugin: str, now: Moment) -> None:
        """Record which plugin keeps a pod from being tried; what was reported is explained anew."""
        self._plugins[pod_key(pod)] = ((plugin, profile_of(pod)),)
        self.stale.mark(pod_key(pod), now.elapsed_s)

    def handle_member(
        self, group: PodGroup | None, pending: Pending, now: Moment, *, is_muted: bool = False
    ) -> None:
        """Report why a pod of a group has no node, and deallocate a claim for it."""
        if self.handle(pending, now, is_muted=is_muted) and group is not None:
            self._deallocate_for(group, pending)

    def handle_error(self, key: str, message: str, now: Moment) -> None:
        """Report that an attempt failed for a reason outside the pod."""
        self.forget(key)
        update = report_unscheduled(self._cache, key, message, SCHEDULER_ERROR, now)
        self._effects.start(update)

    def forget(self, key: str) -> None:
        """Forget the reports about a pod."""
        self._reports.pop(key, None)
        self._plugins.pop(key, None)
        self.stale.discard(key)

    def found_node(self, key: str) -> None:
        """Record that no plugin rejects a pod any more; its report stays until it is bound."""
        self._plugins.pop(key, None)

    def plugins(self) -> Counter[Labels]:
        """Return how many pods each plugin rejects or holds back, by plugin and profile."""
        return Counter(each for found in self._plugins.values() for each in found)

    def _report(self, key: str, message: str, reason: str, now: Moment, **more: Any) -> None:
        is_apart = self._explain_in is ExplainIn.EVENT
        update = report_unscheduled(
            self._cache, key, message, reason, now, is_apart=is_apart, **more
        )
        self._effects.start(update)

    def _deallocate_for(self, group: PodGroup, pending: Pending) -> None:
        """Deallocate a claim that keeps a pod of a group from every node, if nobody else has it."""
        cluster = self._cache.cluster
        is_found = NOT_AVAILABLE in pending.diagnosis.node_to_status.values()
        if not is_found or not cluster.profile_for(pending.pod).groups_deallocate:
            return
        ready = attempt(cluster, pending.pod)
        if not isinstance(ready, Attempt) or ready.claims is None:
            return
        metadata = group.metadata
        members = self._cache.members.get((metadata.namespace, metadata.name), ())
        holders = [pending.pod.metadata.uid]
        if not any(map(self._cache.has_node, members)):
            holders.append(metadata.uid)
        for holder in holders:
            found = ready.claims.post_filter(pending.diagnosis, holder=holder)
            if found is not None and not found.is_deleted:
                update = try_deallocate(self._cache, found.claim, holder)
                self._effects.start(update)
                return

    def _preempt(self, pod: Pod, found: Preemption, now: Moment) -> None:
        """Evict pods of lower priority, and nominate others for that node no longer."""
        self._metrics.preemptions.inc()
        victims = [victim.key for victim in found.victims]
        self._metrics.victims.observe(len(victims))
        if not any(map(self._cache.is_alive, victims)):
            return
        nominated = self._cache.cluster.nominated
        for key in nominated.lower_on(found.node, pod.spec.priority or 0):
            nominated.discard(key, found.node)  # the room stays taken
            self._effects.start(clear_nomination(self._cache, key))
        preemptor = Preemptor("pod", pod.metadata.uid, pod.spec.scheduler_name, (pod_key(pod),))
        self._effects.start(evict(self._cache, victims, preemptor, found.node, now))

    def preempt_for_group(
        self, root: AnyGroup, pods: list[Pod], victims: Sequence[PodInfo], now: Moment
    ) -> None:
        """Evict pods of lower priority for a group."""
        self._metrics.preemptions.inc()
        self._metrics.victims.observe(len(victims))
        keys = tuple(map(pod_key, pods))
        kind = root.kind.lower()
        preemptor = Preemptor(kind, root.metadata.uid, pods[0].spec.scheduler_name, keys)
        names = [victim.key for victim in victims]
        self._effects.start(evict(self._cache, names, preemptor, "cluster", now))

    def _texts(self, key: str, pending: Pending) -> tuple[str, str]:
        """Return Kubernetes' message and Moorage's line, which may be empty."""
        before, explanation = self._reports.get(key), self._explained(pending)
        if explanation is None:  # a line that is there stays, so that it does not come and go
            is_same = before is not None and before.message == pending.message
            explanation = before.explanation if before is not None and is_same else ""
        else:
            self.stale.put(key, explanation)
        version = pending.pod.metadata.resource_version
        self._reports[key] = _Report(pending.message, explanation, version)
        return pending.message, explanation

    def _explained(self, pending: Pending) -> str | None:
        if self._explain_in is ExplainIn.NONE:
            return ""
        try:
            return self._explain(self._cache.cluster, pending.pod, pending)
        except Exception as error:
            FAULTS.note("explaining", object_text(pending.pod), error)
            return None  # Kubernetes' message is enough to go on


def _worded(pending: Pending) -> Pending:
    """Return a pod with a message; Kubernetes has none for what only Moorage cannot place."""
    status = pending.diagnosis.pre_filter_status
    if status is not None and status.plugin == UNMODELLED:
        return replace(pending, message=pending.reason)
    return pending


def _plugins(pending: Pending) -> frozenset[str]:
    """Return the plugins that a pod is counted for.

    Kubernetes counts none for an error, nor for pods that go without a node because their group
    does. Only affinity to nodes by their names stops a pod without the name of a plugin.
    """
    status, diagnosis = pending.diagnosis.pre_filter_status, pending.diagnosis
    if pending.is_fault:
        return frozenset()
    if status is not None:
        is_of_group = status.plugin == GANG_SCHEDULING and bool(pending.message)
        return frozenset() if is_of_group else frozenset((status.plugin or NODE_AFFINITY,))
    found = {each.plugin for each in diagnosis.node_to_status.values()}
    if diagnosis.excluded is not None:
        found.add(diagnosis.excluded.plugin)
    return frozenset(plugin or NODE_AFFINITY for plugin in found)
