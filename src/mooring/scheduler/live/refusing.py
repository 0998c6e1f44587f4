"""Pods that got no node: what is said of them, and what is done to make room.

Our own explanation comes behind Kubernetes' message or as an event of its own, and is found anew
when that message changes.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from mooring.api.core.pod import Pod
from mooring.api.scheduling import PodGroup
from mooring.kit.metrics import Labels
from mooring.scheduler.claimcheck import NOT_AVAILABLE, GivenUp
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import Attempt, Pending, attempt
from mooring.scheduler.live import reporting
from mooring.scheduler.live.config import ExplainIn
from mooring.scheduler.live.jobs import Jobs
from mooring.scheduler.live.livecluster import LiveCluster
from mooring.scheduler.live.metrics import Metrics, profile_of
from mooring.scheduler.live.moment import Moment
from mooring.scheduler.obstacles import GANG_SCHEDULING, NODE_AFFINITY
from mooring.scheduler.preemption import Preemption
from mooring.scheduler.shapes import key_of
from mooring.scheduler.unmodelled import PLUGIN as UNMODELLED

LOG = logging.getLogger(__name__)

Explain = Callable[[Cluster, Pod, Pending], str]  # one line: the reason and the nearest fix


class _Said(NamedTuple):
    """What was last said of a pod: Kubernetes' message, and our explanation."""

    upstream: str
    ours: str


class Refusals:
    """What was said of pods that wait."""

    def __init__(
        self,
        live: LiveCluster,
        jobs: Jobs,
        metrics: Metrics,
        explain: Explain,
        explain_in: ExplainIn = ExplainIn.CONDITION,
    ) -> None:
        self._live = live
        self._jobs = jobs
        self._metrics = metrics
        self._explain = explain
        self._explain_in = explain_in
        self._said: dict[str, _Said] = {}
        self._plugins: dict[str, tuple[Labels, ...]] = {}  # plugin and profile, by pod

    def say(self, pending: Pending, now: Moment) -> bool:
        """Say why a pod has no node, and make room; False if there is nothing to be said."""
        pending = _spoken(pending)
        key = key_of(pending.pod)
        profile = profile_of(pending.pod)
        self._plugins[key] = tuple((plugin, profile) for plugin in _plugins(pending))
        if not pending.message:
            return False  # it was not tried
        message, explanation = self._texts(key, pending)
        reason = reporting.SCHEDULER_ERROR if pending.is_fault else reporting.UNSCHEDULABLE
        nominated = ""
        if pending.given_up is not None:
            self._jobs.start(reporting.make_room(self._live, key, pending.given_up))
        elif pending.preemption is not None:
            nominated = pending.preemption.node
            self._preempt(pending.pod, pending.preemption, now)
        self._jobs.start(
            reporting.say(
                self._live,
                key,
                message,
                reason,
                now,
                nominated=nominated,
                explanation=explanation,
            )
        )
        return True

    def say_of_group(self, group: PodGroup, pending: list[Pending], now: Moment) -> None:
        """Say why pods of a group have no node, and give up a claim that is in the way of each."""
        for each in pending:
            if self.say(each, now):
                self._make_room_for(group, each)

    def complain(self, key: str, message: str, now: Moment) -> None:
        """Say that a try failed, which is no fault of the pod."""
        self.forget(key)
        reason = reporting.SCHEDULER_ERROR
        self._jobs.start(reporting.say(self._live, key, message, reason, now))

    def forget(self, key: str) -> None:
        """Forget what was said of a pod."""
        self._said.pop(key, None)
        self._plugins.pop(key, None)

    def found_node(self, key: str) -> None:
        """Note that nothing rejects a pod any more; what was said of it stays until it is bound."""
        self._plugins.pop(key, None)

    def plugins(self) -> Counter[Labels]:
        """Return how many pods each plugin rejects or holds back, by plugin and profile."""
        return Counter(each for found in self._plugins.values() for each in found)

    # --- within -------------------------------------------------------------------------------

    def _make_room_for(self, group: PodGroup, pending: Pending) -> None:
        """Give up a claim that is in the way of a pod of a group, if nobody else holds it."""
        if NOT_AVAILABLE not in pending.survey.refusals.values():
            return
        ready = attempt(self._live.cluster, pending.pod)
        if not isinstance(ready, Attempt) or ready.check is None:
            return
        metadata = group.metadata
        members = self._live.members.get((metadata.namespace, metadata.name), ())
        holders = [pending.pod.metadata.uid]
        if not any(map(self._live.has_node, members)):
            holders.append(metadata.uid)
        for holder in holders:
            found: GivenUp | None = ready.check.given_up(pending.survey, holder=holder)
            if found is not None and not found.is_deleted:
                self._jobs.start(reporting.give_back(self._live, found.claim, holder))
                return

    def _preempt(self, pod: Pod, found: Preemption, now: Moment) -> None:
        """Evict pods of lower priority, unless some of them are leaving already."""
        self._metrics.preemptions.add()
        victims = [victim.key for victim in found.victims]
        if any(not self._live.is_wanted(key) for key in victims):
            return
        self._metrics.victims.note(len(victims))
        self._jobs.start(reporting.evict(self._live, victims, pod, found.node, now))

    def _texts(self, key: str, pending: Pending) -> tuple[str, str]:
        """Return the message, and what goes into an event of its own; perhaps nothing."""
        said = self._said.get(key)
        if said is None or said.upstream != pending.message:
            said = self._said[key] = _Said(pending.message, self._explained(pending))
        if self._explain_in is ExplainIn.EVENT or not said.ours:
            return pending.message, said.ours
        return f"{pending.message} {said.ours}", ""

    def _explained(self, pending: Pending) -> str:
        if self._explain_in is ExplainIn.NONE:
            return ""
        try:
            return self._explain(self._live.cluster, pending.pod, pending)
        except Exception:
            LOG.exception("no explanation for %s", pending.pod.metadata.name)
            return ""  # what Kubernetes says is enough to go on


def _spoken(pending: Pending) -> Pending:
    """Return what is said of a pod; Kubernetes has no words for what only we cannot place."""
    obstacle = pending.survey.obstacle
    if obstacle is not None and obstacle.plugin == UNMODELLED:
        return replace(pending, message=pending.reason)
    return pending


def _plugins(pending: Pending) -> frozenset[str]:
    """Return the plugins that a pod is counted for.

    Kubernetes counts none for a fault, nor for pods that go without a node because their group
    does. Only affinity to nodes by their names stops a pod without the name of a plugin.
    """
    obstacle = pending.survey.obstacle
    if pending.is_fault:
        return frozenset()
    if obstacle is not None:
        is_of_group = obstacle.plugin == GANG_SCHEDULING and bool(pending.message)
        return frozenset() if is_of_group else frozenset((obstacle.plugin or NODE_AFFINITY,))
    found = {refusal.plugin for refusal in pending.survey.refusals.values()}
    if pending.survey.elsewhere is not None:
        found.add(pending.survey.elsewhere.plugin)
    return frozenset(plugin or NODE_AFFINITY for plugin in found)
