"""The cause of a pending pod in one line, for the scheduler's event and condition.

    live cluster ─ the pod's nearest nodes ─ the first finding ─► `Moorage: cause. Fix: …`

The findings are those of `moor explain`, so the line and the command name the same cause. The line
follows Kubernetes' message, so the scheduler asks for it between two pods. So it is bounded: each
has a tenth of a second, all together take a tenth of the time, and pods of one owner that want the
same share a line as long as nothing changes in the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.claims.pod_claims import controller_of, group_name
from moorage.insight.answer.answer import first_finding
from moorage.insight.answer.finding import Finding, FixRank
from moorage.insight.answer.holders import wait_fixes
from moorage.insight.answer.live_case import Fleets, LiveCase
from moorage.insight.answer.waiting import MORE_OF_THE_SAME, WAITING, is_in_vain
from moorage.insight.explain.pods import Explanation
from moorage.insight.explain.trials import EFFORT, Effort
from moorage.insight.explain.verdicts import look_at_nodes
from moorage.kit.lru import LRU
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.scheduling_cycle import Attempt, Pending, attempt
from moorage.validation.strategy import Context

EACH_S: Final = 0.1
SHARE: Final = 0.1  # of the time that summaries may take
SAVED_S_MAX: Final = 1.0  # unused time, for when many pods come at once
REMEMBERED_MAX: Final = 512
REMEMBERED_BYTES_MAX: Final = 4 * 2**20  # of what tells pods apart
FIX_LENGTH_MAX: Final = 200
# Ages would change from line to line, and each change is written.
_NO_TIME: Final = Timestamp.parse("1970-01-01T00:00:00Z")


class _Line(NamedTuple):
    """A line, and the state of the cluster that it is about."""

    text: str
    changes: int


class PendingSummary:
    """Gives the line for pending pods; `clock` returns seconds."""

    def __init__(
        self,
        clock: Callable[[], float],
        gates: Gates,
        *,
        extensions: bool = True,
        each_s: float = EACH_S,
    ) -> None:
        self._clock, self._each_s = clock, each_s
        self._context = Context(gates=gates, now=_NO_TIME, extensions=extensions)
        self._saved_s, self._saved_at = SAVED_S_MAX, clock()
        self._lines: LRU[Hashable, _Line] = LRU(REMEMBERED_MAX, REMEMBERED_BYTES_MAX)
        self._fleets = Fleets()

    def __call__(self, cluster: Cluster, pod: Pod, pending: Pending) -> str | None:
        """Return the line for a pod: "" if Kubernetes' message says it all; None without time."""
        key = _key(cluster, pod, pending)
        known = self._lines.get(key)
        if known is not None and known.changes == cluster.changes:
            return known.text
        begin_s = self._clock()
        if not self._has_time(begin_s):
            return None
        try:
            text = self._text(cluster, pending, lambda: self._over(begin_s))
        finally:
            self._saved_s -= self._clock() - begin_s
        size = cluster.signature(pod).text_bytes + len(pending.message)
        self._lines.put(key, _Line(text, cluster.changes), size)
        return text

    def _has_time(self, now_s: float) -> bool:
        saved_s = self._saved_s + (now_s - self._saved_at) * SHARE
        self._saved_s, self._saved_at = min(saved_s, SAVED_S_MAX), now_s
        return self._saved_s > 0

    def _over(self, begin_s: float) -> str | None:
        return "no time left" if self._clock() - begin_s > self._each_s else None

    def _text(self, cluster: Cluster, pending: Pending, over: Callable[[], str | None]) -> str:
        def effort() -> Effort:
            return EFFORT._replace(interrupt=over)

        stopped_by, verdicts = look_at_nodes(cluster, pending.pod, effort)
        if group_name(pending.pod) is not None and not all(each.texts for each in verdicts):
            return ""  # It fits; what its group lacks, the scheduler's message says.
        explanation = Explanation(pending, stopped_by, verdicts=verdicts)
        case = LiveCase(cluster, explanation, self._context, effort, self._fleets)
        cause, finding = first_finding(case)
        if cause in pending.message:
            return ""
        end = "" if cause.endswith(("?", ".", "…")) else "."
        fix = _fix(case, finding) if over() is None else ""
        return f"Moorage: {cause}{end}" + (f" Fix: {fix}." if fix else "")


def _key(cluster: Cluster, pod: Pod, pending: Pending) -> Hashable:
    """Return a key that pods share which wait for the same, and of which the same is said."""
    ready = attempt(cluster, pod)
    owner = controller_of(pod.metadata) if isinstance(ready, Attempt) else None
    claims = None
    if isinstance(ready, Attempt) and ready.claims is not None:
        claims = ready.claims.key
    uid = pod.metadata.uid if owner is None else owner.uid
    return pod.metadata.namespace, uid, cluster.signature(pod), claims, pending.message


def _fix(case: LiveCase, finding: Finding) -> str:
    """Return the best proposal that is advice, or a change that helps; "" if there is none."""
    for proposal in sorted(finding.proposals, key=lambda each: each.rank):
        if proposal.rank is FixRank.GIVE_UP or len(proposal.text) > FIX_LENGTH_MAX:
            continue
        if proposal.holders:
            for fix in wait_fixes(case, proposal):
                return fix.text
            continue
        if proposal.rank in MORE_OF_THE_SAME and finding.kind in WAITING and is_in_vain(case):
            continue
        if not proposal.changes:
            if proposal.rank is not FixRank.LESS:
                return proposal.text
            continue
        node = case.rehearsal.node(proposal.changes)
        if node is not None:
            return f"{proposal.text} → {node}"
    return ""
