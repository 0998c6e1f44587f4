"""Why a pod gets no node, in one line: the reason and the nearest fix.

The line follows Kubernetes' message, so the scheduler asks for it between two pods. So it is
bounded: each summary has a tenth of a second, all together take a tenth of the time, and pods of
one owner share a summary as long as Kubernetes' message is the same. Without time there is no line.
"""

from __future__ import annotations

from collections.abc import Callable

from mooring.api.core.pod import Pod
from mooring.claims.pod_claims import controller_of
from mooring.insight.explain.nodes import NodeProbe, pod_changes
from mooring.insight.explain.report import claims_summary, summary_line, with_fix
from mooring.insight.explain.trials import EFFORT
from mooring.kit.lru import LRU
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.framework import DYNAMIC_RESOURCES as CLAIMS
from mooring.scheduler.scheduling_cycle import Pending, Placed, attempt, schedule

EACH_S = 0.1
SHARE = 0.1  # of the time that summaries may take
SAVED_S_MAX = 1.0  # unused time, for when many pods come at once
REMEMBERED_MAX = 512
NODES_TRIED_MAX = 256  # in larger clusters no changes to the pod are tried

SummaryKey = tuple[str, str, str]
Interrupt = Callable[[], str | None]


class PendingSummary:
    """Gives the line for pending pods; `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float], *, each_s: float = EACH_S) -> None:
        self._clock, self._each_s = clock, each_s
        self._saved_s, self._saved_at = SAVED_S_MAX, clock()
        self._lines: LRU[SummaryKey, str] = LRU(REMEMBERED_MAX)

    def __call__(self, cluster: Cluster, pod: Pod, pending: Pending) -> str:
        """Return the line for a pod, or nothing."""
        key = _key(pod, pending)
        known = self._lines.get(key)
        if known is not None:
            return known
        begin_s = self._clock()
        if not self._has_time(begin_s):
            return ""
        try:
            line = _line(cluster, pod, pending, lambda: self._over(begin_s))
        finally:
            self._saved_s -= self._clock() - begin_s
        self._lines.put(key, line)
        return line

    def _has_time(self, now_s: float) -> bool:
        saved_s = self._saved_s + (now_s - self._saved_at) * SHARE
        self._saved_s, self._saved_at = min(saved_s, SAVED_S_MAX), now_s
        return self._saved_s > 0

    def _over(self, begin_s: float) -> str | None:
        return "no time left" if self._clock() - begin_s > self._each_s else None


def _key(pod: Pod, pending: Pending) -> SummaryKey:
    owner = controller_of(pod.metadata)
    return pod.metadata.namespace, owner.uid if owner else pod.metadata.uid, pending.message


def _line(cluster: Cluster, pod: Pod, pending: Pending, over: Interrupt) -> str:
    rejections = pending.diagnosis.node_to_status
    ready = attempt(cluster, pod)
    if isinstance(ready, Pending) or not rejections:
        return ""  # Kubernetes' message already says what stops it.
    probe, names = NodeProbe(ready), sorted(rejections)
    name = next((each for each in names if rejections[each].plugin == CLAIMS), names[0])
    text = ""
    if rejections[name].plugin == CLAIMS:
        diagnosis = probe.diagnose(name, EFFORT._replace(interrupt=over))
        text = claims_summary(diagnosis) if diagnosis is not None else ""
    if not text and name in cluster.snapshot.nodes:
        reason = next(probe.facts(name, rejections[name]), "")
        text = with_fix(reason, _pod_fix(cluster, pending, over))
    return summary_line(text, name, len(names)) if text else ""


def _pod_fix(cluster: Cluster, pending: Pending, over: Interrupt) -> str:
    """Return the first change to the pod that helps and is found in time."""
    if len(cluster.snapshot.nodes) > NODES_TRIED_MAX:
        return ""
    for text, changed in pod_changes(cluster, pending.pod, pending.diagnosis):
        if over() is not None:
            break
        outcome = schedule(cluster, changed)
        if isinstance(outcome, Placed):
            return f"{text} → {outcome.node}"
    return ""
