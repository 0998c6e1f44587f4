"""The explainer: records why pods with claims wait as events, for clusters with kube-scheduler.

Each pass plans the pods that have no node, and records an `Explained` event about each pod whose
cause is new: the line that Moorage's scheduler appends to Kubernetes' message. It changes nothing
else. Each pod gets at most one event a minute, unless the last one names what is gone. A pass has a
bounded duration, and records a bounded number of events; pods that it did not reach come first in
the next pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from moorage.api.core.pod import FAILED, SUCCEEDED, Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.client.contract import Client
from moorage.client.event_recorder import EventRecorder
from moorage.client.informer_factory import InformerFactory
from moorage.client.writes import RecordEvent
from moorage.cluster.programs import ProgramContext
from moorage.cluster.snapshot_passes import SnapshotPasses
from moorage.insight.answer.summary import PendingSummary
from moorage.insight.monitor import Monitor
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.insight.plan.planner import Plan
from moorage.kit.clock import Clock
from moorage.scheduler.live.stale_explanations import names_in
from moorage.scheduler.scheduling_cycle import Pending
from moorage.validation.strategy import Context

EXPLAINER: Final = "explainer-controller"
SOURCE: Final = "moorage-explainer"
REASON: Final = "Explained"
EVENTS_MAX: Final = 100  # per pass
AGAIN_S: Final = 60.0  # before a pod gets another event
INTERVAL_S: Final = 5.0  # a cause that names what is gone is replaced within ten seconds


class _LastEvent(NamedTuple):
    """The last event about a pod, and its time."""

    text: str
    at: datetime
    names: frozenset[str]  # of objects that it names


class NewCause(NamedTuple):
    """A pod, and the text of its event."""

    pod: Pod
    text: str


class Explainer:
    """Finds out why pods wait, and reports changes."""

    def __init__(self, gates: Gates, clock: Clock) -> None:
        self._gates, self._clock = gates, clock
        context = Context(gates=gates, now=Timestamp(clock.now()))
        self._monitor = Monitor(context, limit=lambda: EvaluationLimit(clock.monotonic))
        self._last_events: dict[str, _LastEvent] = {}  # by the uids of waiting pods

    def work(self, objects: Sequence[Any], now: datetime) -> list[NewCause]:
        """Return the pods of a cluster whose causes are new."""
        planned = self._monitor.plan(objects, now)
        waiting = [each for each in planned.pending if _is_ours(each.pod)]
        known = {each.pod.metadata.uid for each in waiting}
        self._last_events = {uid: last for uid, last in self._last_events.items() if uid in known}
        found: list[NewCause] = []
        names = {each.metadata.name for each in objects if _has_something(each)}
        for pod, text in self._lines(planned, waiting):
            uid = pod.metadata.uid
            before = self._last_events.get(uid)
            if before is not None and not _is_due(before, text, names, now):
                continue
            self._last_events[uid] = _LastEvent(text, now, names_in(text) & names)
            if text:
                found.append(NewCause(pod, text))
            if len(found) == EVENTS_MAX:
                break
        return found

    def _lines(self, planned: Plan, waiting: list[Pending]) -> Iterator[tuple[Pod, str]]:
        """Yield the events to record; pods without an event so far come first."""
        if not waiting:
            return
        # Results that are cached for one plan's cluster are wrong for others.
        summary = PendingSummary(self._clock.monotonic, self._gates)
        for each in sorted(waiting, key=lambda each: each.pod.metadata.uid in self._last_events):
            text = summary(planned.cluster, each.pod, each)
            if text is not None:
                yield each.pod, text


def _is_due(before: _LastEvent, text: str, names: set[str], now: datetime) -> bool:
    """Return whether a pod gets another event: in time, or as the last one names what is gone."""
    is_in_time = now - before.at >= timedelta(seconds=AGAIN_S)
    return before.text != text and (is_in_time or not before.names <= names)


def _has_something(value: Any) -> bool:
    """Return whether others may wait for an object: not for a pod that has ended, for example."""
    if isinstance(value, Pod):
        return value.status.phase not in (SUCCEEDED, FAILED)
    return not isinstance(value, ResourceClaim) or value.status.allocation is not None


def _is_ours(pod: Pod) -> bool:
    """Return whether a pod waits for devices, and its scheduler does not explain why."""
    spec = pod.spec
    has_claims = bool(spec.resource_claims or pod.status.extended_resource_claim_status)
    return has_claims and spec.scheduler_name in (None, "", "default-scheduler")


class ExplainerProgram:
    """The explainer as a program, beside controllers whose informers it shares."""

    def __init__(
        self,
        client: Client,
        around: ProgramContext,
        informers: InformerFactory,
        *,
        interval_s: float = INTERVAL_S,
    ) -> None:
        clock = around.clock
        self._recorder = EventRecorder(client, SOURCE, clock=clock, random=around.random)
        self._passes: SnapshotPasses[list[NewCause]] = SnapshotPasses(
            "explainer",
            informers,
            Explainer(around.gates, clock).work,
            self._record,
            gates=around.gates,
            clock=clock,
            interval_s=interval_s,
        )

    async def run(self) -> None:
        """Record events until cancelled."""
        async with self._recorder.running():
            await self._passes.run()

    def _record(self, causes: list[NewCause]) -> None:
        for pod, text in causes:
            self._recorder.record(RecordEvent(pod, REASON, text, action="Explaining"))
