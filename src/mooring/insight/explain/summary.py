"""Why a pod gets no node, in one line: the reason and the nearest fix.

It goes behind Kubernetes' message, so the scheduler asks for it between two pods. So it is bounded:
each answer has a tenth of a second, all together a tenth of the time, and pods that one owner made
get one answer as long as Kubernetes' message is the same. Without time there is no line.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from mooring.api.core.pod import Pod
from mooring.claims.owners import controller_of
from mooring.insight.explain.diagnosis import Diagnosis, diagnose_claims
from mooring.insight.explain.funnel import STAGES, Funnel
from mooring.insight.explain.nodes import facts_of, pod_changes
from mooring.insight.explain.phrases import member_text
from mooring.insight.explain.report import fix_text, useful_fixes
from mooring.insight.explain.situation import DropConstraint
from mooring.insight.explain.trials import EFFORT
from mooring.scheduler.claimneeds import PLUGIN as CLAIMS
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import Attempt, Pending, Placed, attempt, schedule

EACH_S = 0.1
SHARE = 0.1  # of the time goes to answers, at most
SAVED_S_MAX = 1.0  # time that was not used, for when many pods come at once
REMEMBERED_MAX = 512
NODES_TRIED_MAX = 256  # in larger clusters changes to the pod are not tried
TEXT_MAX = 400
NOBODY_PUBLISHES = "nobody publishes such devices there: see whether their driver runs"

SummaryKey = tuple[str, str, str]


class PendingSummary:
    """Gives the line for pods; `clock` tells seconds."""

    def __init__(self, clock: Callable[[], float], *, each_s: float = EACH_S) -> None:
        self._clock, self._each_s = clock, each_s
        self._saved_s, self._saved_at = SAVED_S_MAX, clock()
        self._said: OrderedDict[SummaryKey, str] = OrderedDict()

    def __call__(self, cluster: Cluster, pod: Pod, pending: Pending) -> str:
        """Return the line for a pod, or nothing."""
        key = _key(pod, pending)
        said = self._said.get(key)
        if said is not None:
            return said
        begin_s = self._clock()
        if not self._has_time(begin_s):
            return ""
        try:
            text = _line(cluster, pod, pending, lambda: self._over(begin_s))
        finally:
            self._saved_s -= self._clock() - begin_s
        self._said[key] = text
        if len(self._said) > REMEMBERED_MAX:
            self._said.popitem(last=False)
        return text

    def _has_time(self, now_s: float) -> bool:
        saved_s = self._saved_s + (now_s - self._saved_at) * SHARE
        self._saved_s, self._saved_at = min(saved_s, SAVED_S_MAX), now_s
        return self._saved_s > 0

    def _over(self, begin_s: float) -> str | None:
        return "no time left" if self._clock() - begin_s > self._each_s else None


def _key(pod: Pod, pending: Pending) -> SummaryKey:
    owner = controller_of(pod.metadata)
    return pod.metadata.namespace, owner.uid if owner else pod.metadata.uid, pending.message


def _line(cluster: Cluster, pod: Pod, pending: Pending, over: Callable[[], str | None]) -> str:
    refusals = pending.survey.refusals
    ready = attempt(cluster, pod)
    if isinstance(ready, Pending) or not refusals:
        return ""  # Kubernetes' message says already what stops it
    named = sorted(refusals)
    name = next((each for each in named if refusals[each].plugin == CLAIMS), named[0])
    told = ""
    if refusals[name].plugin == CLAIMS:
        told = _of_claims(_diagnosis(cluster, ready, name, over))
    told = told or _of_node(cluster, ready, pending, name, over)
    if not told:
        return ""
    more = f" (of {len(named)} nodes)" if len(named) > 1 else ""
    return _cut(f"Mooring: on {name}{more}: {told}.")


def _diagnosis(
    cluster: Cluster, ready: Attempt, name: str, over: Callable[[], str | None]
) -> Diagnosis | None:
    node = cluster.node(name)
    claims = ready.check.wanted_on(node) if ready.check is not None else ()
    if not claims:
        return None
    effort = EFFORT._replace(interrupt=over)
    count = cluster.inventory.devices_count
    return diagnose_claims(cluster.inventory, node, claims, fleet_devices=count, effort=effort)


def _of_claims(diagnosis: Diagnosis | None) -> str:
    if diagnosis is None:
        return ""
    worst = _worst(diagnosis.funnels)
    reason = "; ".join((*_shortages(worst), *_conditions(diagnosis)))
    if worst is not None and not worst.of_class:
        # To change what a class is for would give away other devices than were meant.
        return f"{reason}; {NOBODY_PUBLISHES}"
    fix = next((fix_text(each, diagnosis) for each in useful_fixes(diagnosis)), "")
    return _joined(reason, fix)


def _worst(funnels: Iterable[Funnel]) -> Funnel | None:
    """Return the request that is shortest of devices."""
    return min(funnels, key=lambda each: each.counts[-1] - (each.wanted or 1), default=None)


def _shortages(worst: Funnel | None) -> Iterator[str]:
    """Give where the devices of a request are lost."""
    if worst is None:
        return
    steps, before = list[str](), -1
    for stage, count in zip(STAGES, worst.counts, strict=True):
        if count != before:
            steps.append(f"{count:,} {stage}")
        before = count
    wanted = "all" if worst.wanted is None else f"{worst.wanted:,}"
    yield f"request {worst.request} wants {wanted}: {' → '.join(steps)}"


def _conditions(diagnosis: Diagnosis) -> Iterator[str]:
    """Give the constraints that cannot be kept."""
    for member in diagnosis.conflict.members:
        if isinstance(member, DropConstraint):
            yield member_text(member, diagnosis.situation, diagnosis.around)


def _of_node(
    cluster: Cluster, ready: Attempt, pending: Pending, name: str, over: Callable[[], str | None]
) -> str:
    refusal, state = pending.survey.refusals[name], cluster.fleet.nodes.get(name)
    if state is None:
        return ""
    reason = next(iter(facts_of(refusal, ready, state)), "")
    return _joined(reason, _pod_fix(cluster, pending, over))


def _pod_fix(cluster: Cluster, pending: Pending, over: Callable[[], str | None]) -> str:
    """Return the first change to the pod that helps and is found in time."""
    if len(cluster.fleet.nodes) > NODES_TRIED_MAX:
        return ""
    for text, changed in pod_changes(cluster, pending.pod, pending.survey):
        if over() is not None:
            break
        outcome = schedule(cluster, changed)
        if isinstance(outcome, Placed):
            return f"{text} → {outcome.node}"
    return ""


def _joined(reason: str, fix: str) -> str:
    told = f"nearest fix: {fix}" if fix else ""
    return "; ".join(part for part in (reason, told) if part)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"
