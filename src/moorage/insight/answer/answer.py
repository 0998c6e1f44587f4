"""The answer: the cause of a pending pod, and the fixes that an expert would choose.

    explanation ─► findings ─► the first that can be acted on ─► proposals ─ each tried ─► fixes

Findings come in the order in which an expert looks: what stops the pod before any node, then the
nearest nodes. A proposal with changes is offered only if the changed objects are valid and the pod
gets a node with them; or, as advice, if it gets one once devices are free.

The cause is the first finding. Only of a new pod does it name several mistakes, where their changes
help together, and how many pods like it fit: of a pod in a cluster the scheduler says the same, and
has neither time to try changes nor workloads to look at.

A finder that fails is set aside, and the others go on. Where none finds anything, the words of the
nearest node are the cause: an answer always has a cause, and something to do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain, islice
from typing import Final, TypeVar

from msgspec.structs import replace

from moorage.cel.lang.metering import Interrupted
from moorage.claims.pod_claims import controller_of, group_name
from moorage.insight.answer.cause_kinds import CauseKind, of_kind
from moorage.insight.answer.changes.edits import ObjectChange
from moorage.insight.answer.combined import combined
from moorage.insight.answer.consequences import given_up
from moorage.insight.answer.devices.conflicts import (
    conflict_findings,
    error_cause,
    more_hardware,
    tried_changes,
)
from moorage.insight.answer.devices.requests import device_findings
from moorage.insight.answer.devices.shortages import DeviceCase
from moorage.insight.answer.finding import (
    Answer,
    Case,
    Finding,
    Fix,
    FixRank,
    Proposal,
    Surroundings,
    one_line,
)
from moorage.insight.answer.holders import wait_fixes
from moorage.insight.answer.nodes.nowhere import nowhere_findings, with_troubled_nodes
from moorage.insight.answer.nodes.rejections import node_findings
from moorage.insight.answer.orders import orders_for
from moorage.insight.answer.preconditions.bindings import failed_bindings
from moorage.insight.answer.preconditions.gates import gate_findings
from moorage.insight.answer.preconditions.group_domains import group_domains
from moorage.insight.answer.preconditions.quotas import quota_findings
from moorage.insight.answer.preconditions.references import (
    ending_namespace,
    missing_claims,
    missing_classes,
    missing_priority,
    unread_findings,
)
from moorage.insight.answer.preconditions.refusals import refused_pod
from moorage.insight.answer.preconditions.sharing import full_claims
from moorage.insight.answer.preconditions.volumes import volumes
from moorage.insight.answer.preconditions.waits import (
    claims_being_deleted,
    fits_alone,
    group_findings,
    other_scheduler,
    scheduling_gates,
    unknown_runtime_class,
    unscheduled,
)
from moorage.insight.answer.waiting import MORE_OF_THE_SAME, WAITING, fixes_for_later, waits_in_vain
from moorage.insight.explain.pods import Explanation, explain
from moorage.insight.explain.report import distance
from moorage.insight.explain.trials import EFFORT, Effort
from moorage.insight.explain.verdicts import NodeVerdict
from moorage.insight.messages import full_name, listed
from moorage.insight.plan.evaluation_limit import SIMPLER
from moorage.insight.plan.planner import Plan, Progress, unwatched
from moorage.insight.snapshot.snapshot import key_of
from moorage.insight.snapshot.written_objects import DroppedFields, RefusedObject
from moorage.kit.bulkhead import FAULTS
from moorage.scheduler.scheduling_cycle import Pending
from moorage.validation.strategy import Context

T = TypeVar("T")
FIXES_MAX: Final = 5
FINDINGS_MAX: Final = 4  # whose proposals are tried
PROPOSALS_MAX: Final = 12  # of a finding that are tried
PRECONDITIONS: Final[tuple[tuple[Callable[[Case], Iterator[Finding]], CauseKind], ...]] = (
    (refused_pod, CauseKind.INVALID),
    (unscheduled, CauseKind.NOT_CREATED),
    (scheduling_gates, CauseKind.SCHEDULING_GATE),
    (other_scheduler, CauseKind.OTHER_SCHEDULER),
    (ending_namespace, CauseKind.NAMESPACE_ENDS),
    (missing_priority, CauseKind.MISSING_REFERENCE),
    (quota_findings, CauseKind.QUOTA),
    (missing_claims, CauseKind.MISSING_CLAIM),
    (claims_being_deleted, CauseKind.CLAIM_DELETED),
    (missing_classes, CauseKind.MISSING_CLASS),
    (unknown_runtime_class, CauseKind.MISSING_REFERENCE),
    (unread_findings, CauseKind.UNREADABLE),
    (volumes, CauseKind.VOLUME),
    (full_claims, CauseKind.CLAIM_FULL),
    (failed_bindings, CauseKind.BINDING_FAILED),
    (group_findings, CauseKind.POD_GROUP),
    (group_domains, CauseKind.POD_GROUP),
)


def answer(
    plan: Plan,
    explanation: Explanation,
    context: Context,
    refused: Sequence[RefusedObject] = (),
    dropped: Sequence[DroppedFields] = (),
) -> Answer:
    """Return why a pod gets no node, and what would help.

    `refused` are objects that an API server would not take, and that the pod may wait for;
    `dropped` are fields that it ignores because their feature gate is off.
    """
    return _answer(Case(Surroundings(plan, context, refused, dropped), explanation))


def _answer(case: Case) -> Answer:
    findings = list(islice(_findings(case), FINDINGS_MAX)) or [_unknown(case)]
    (finding, fixes), *others = [(each, _fixes(case, each.proposals)) for each in findings]
    rest = list(chain(*(more for _, more in others if _helps(more))))
    fixes, cause = _unique([*fixes, *rest]), finding.cause
    is_waiting = finding.kind in WAITING and any(each.holders for each in finding.proposals)
    if is_waiting and not any(fix.waits_for for fix in fixes):
        for lasting in _guarded(case, waits_in_vain(case, _findings)):
            cause = lasting.cause if case.is_new else cause
            fixes = [*(f for f in fixes if f.rank not in MORE_OF_THE_SAME), *lasting.fixes]
    fixes += _guarded(case, orders_for(case, findings))
    if not any(_is_enough(fix) for fix in fixes):
        for several in _guarded(case, combined(case, findings, _findings)):
            cause, fixes = several.cause if case.is_new else cause, [several.fix, *fixes]
    if not _has_change(fixes):
        fixes = [*fixes, *_of_diagnosis(case)]
    if not _has_change(fixes):
        fixes = [*fixes, *_guarded(case, fixes_for_later(case, finding))]
    ordered = sorted(_unique(fixes), key=lambda fix: fix.rank)
    if any(fix.rank < FixRank.GIVE_UP for fix in ordered):
        ordered = [fix for fix in ordered if fix.rank < FixRank.GIVE_UP]
    fixes = ordered[:FIXES_MAX] or _last_advice(case, finding)
    return Answer(_cause(case, cause), tuple(_marked(case, each) for each in fixes))


def _marked(case: Case, fix: Fix) -> Fix:
    return replace(fix, gives_up=given_up(case, fix))


def _has_change(fixes: Iterable[Fix]) -> bool:
    return any(fix.kind == "change" and fix.rank < FixRank.GIVE_UP for fix in fixes)


def first_finding(case: Case) -> tuple[str, Finding]:
    """Return the cause of a pending pod, and the finding that it is from; nothing is tried."""
    finding = next(_findings(case), None) or _unknown(case)
    return _cause(case, finding.cause), finding


def _cause(case: Case, cause: str) -> str:
    return one_line(with_troubled_nodes(cause, _nearest_first(case)))


def answers(
    plan: Plan,
    pending: Iterable[Pending],
    context: Context,
    *,
    refused: Sequence[RefusedObject] = (),
    dropped: Sequence[DroppedFields] = (),
    effort: Callable[[], Effort] = lambda: EFFORT,
    progress: Progress = unwatched,
) -> Iterator[tuple[list[Pending], Explanation, Answer]]:
    """Yield the answers for all pods; those that are alike share one."""
    around = Surroundings(plan, context, refused, dropped, effort)
    for group in _alike(plan, pending):
        try:
            with nullcontext() if plan.limit is None else plan.limit.limited(plan.cluster):
                explanation = explain(plan, group[0], effort=effort, progress=progress)
                said = _answer(Case(around, explanation))
        except Interrupted as cause:
            explanation, said = _unexplained(group[0], str(cause))
        yield group, explanation, _for_all(said, group)


def cause_kinds(
    plan: Plan,
    context: Context,
    *,
    effort: Callable[[], Effort] = lambda: EFFORT,
) -> Iterator[tuple[Pending, CauseKind]]:
    """Yield the kind of the cause of each pending pod; nothing is tried."""
    around = Surroundings(plan, context, effort=effort)
    for group in _alike(plan, plan.pending):
        kind = CauseKind.UNKNOWN
        try:
            with nullcontext() if plan.limit is None else plan.limit.limited(plan.cluster):
                explanation = explain(plan, group[0], effort=effort)
                kind = first_finding(Case(around, explanation))[1].kind
        except Interrupted:
            kind = CauseKind.EXPRESSION  # They take too long.
        yield from ((each, kind) for each in group)


def _alike(plan: Plan, pending: Iterable[Pending]) -> Iterable[list[Pending]]:
    """Return pods in groups that wait for the same: one explanation does for all."""
    found: dict[object, list[Pending]] = {}
    for each in pending:
        found.setdefault(likeness(plan, each), []).append(each)
    return found.values()


def _unexplained(pending: Pending, cause: str) -> tuple[Explanation, Answer]:
    """Return what can be said of a pod whose expressions take too long."""
    fix = Fix(SIMPLER, FixRank.ADVICE)
    return Explanation(pending, stopped_by=pending.reason), Answer(cause, (fix,))


def _for_all(said: Answer, alike: Sequence[Pending]) -> Answer:
    """Return an answer whose changes of the first pod are made to all pods like it."""
    first, *others = (key_of(each.pod) for each in alike)
    if not others:
        return said

    def widened(change: ObjectChange) -> Iterator[ObjectChange]:
        yield change
        if change.key == first:
            yield from (ObjectChange(*key, change.edits) for key in others)

    fixes = (replace(f, changes=tuple(chain(*map(widened, f.changes)))) for f in said.fixes)
    return replace(said, fixes=tuple(fixes))


def likeness(plan: Plan, pending: Pending) -> Hashable:
    """Return a key that pods share which wait for the same: one explanation does for all."""
    pod = pending.pod
    entries = tuple(
        (entry.resource_claim_template_name, entry.resource_claim_name)
        for entry in pod.spec.resource_claims
    )
    signature = plan.cluster.signature(pod)
    owner = controller_of(pod.metadata)
    uid = "" if owner is None else owner.uid
    # Messages name the pod and what was made for it.
    reason = pending.reason.replace(pod.metadata.name, "*")
    return pod.metadata.namespace, uid, signature, entries, group_name(pod), reason


def _helps(fixes: Iterable[Fix]) -> bool:
    return any(fix.kind == "change" for fix in fixes)


def _is_enough(fix: Fix) -> bool:
    """Return whether nobody looks further: a change, or advice that comes before changes."""
    last = FixRank.ADVICE if fix.kind == "change" else FixRank.LESS
    return fix.rank <= last


def _findings(case: Case) -> Iterator[Finding]:
    found: list[Finding] = []
    for find, kind in PRECONDITIONS:
        found += of_kind(kind, _guarded(case, islice(find(case), FINDINGS_MAX)))
        if found and find in (refused_pod, unscheduled, unread_findings):
            break  # Such a pod waits for nothing else yet, or what else it waits for is unknown.
    if found:
        yield from found
        return
    yield from of_kind(CauseKind.FEATURE_GATE, _guarded(case, gate_findings(case)))
    if (companion := case.explanation.companion) is not None:
        yield from of_kind(CauseKind.POD_GROUP, _guarded(case, _of_companion(case, companion)))
    verdicts = _nearest_first(case)
    covering = _guarded(case, nowhere_findings(case, verdicts))
    if covering:
        yield from of_kind(CauseKind.DEVICES_APART, covering)
        return
    for verdict in verdicts:
        if verdict.is_behind or verdict.diagnosis is None:
            yield from _guarded(case, node_findings(case, verdict))
        if verdict.diagnosis is not None:
            devices = DeviceCase(case, verdict.diagnosis)
            some = _guarded(case, device_findings(case, verdict.diagnosis))
            yield from some or of_kind(
                CauseKind.CONSTRAINT, _guarded(case, conflict_findings(devices))
            )


def _nearest_first(case: Case) -> list[NodeVerdict]:
    """Return the verdicts of nodes that do not take the pod, the nearest first."""
    found = (verdict for verdict in case.explanation.verdicts if verdict.texts)
    return sorted(found, key=distance)


def _guarded(case: Case, findings: Iterable[T]) -> list[T]:
    """Return what is found until a finder fails; the others are as good without it."""
    found: list[T] = []
    with FAULTS.guard("explaining", lambda: f"Pod {full_name(case.pod)}"):
        found.extend(findings)
    return found


def _unknown(case: Case) -> Finding:
    """Return the cause that no finder knows better, from the words of the nearest nodes."""
    explanation, nearest = case.explanation, _nearest_first(case)
    if not case.cluster.snapshot.nodes:
        advice = "add nodes to the cluster; with files, --profile adds machines and --on a cluster"
        proposals = (Proposal(advice, FixRank.HARDWARE),)
        return Finding("the cluster has no node", proposals, CauseKind.NO_NODE)
    if explanation.stopped_by:
        return Finding(error_cause(explanation.stopped_by))
    if explanation.facts:
        return Finding(explanation.facts[0])
    for verdict in nearest[:1]:
        nodes = f"node{'s' if len(verdict.nodes) > 1 else ''} {listed(verdict.nodes)}"
        return Finding(f"{nodes}: {'; '.join((*verdict.texts, *verdict.facts))}")
    return Finding(explanation.pending.reason or "no node takes the pod")


def _last_advice(case: Case, finding: Finding) -> list[Fix]:
    """Return what to do where no change by itself gives the pod a node."""
    for proposal in finding.proposals:
        if proposal.rank is FixRank.REPAIR:
            return [Fix(f"{proposal.text}; more may be wrong then", FixRank.ADVICE)]
    for verdict in _nearest_first(case)[:1]:
        if verdict.diagnosis is not None:
            proposal = more_hardware(DeviceCase(case, verdict.diagnosis))
            return [Fix(proposal.text, proposal.rank)]
        text = f"change the pod or a node so that this ends: {', '.join(verdict.texts)}"
        return [Fix(text, FixRank.ADVICE)]
    return [Fix("remove what the cause names; the pod is tried again then", FixRank.ADVICE)]


def _of_companion(case: Case, companion: Explanation) -> Iterator[Finding]:
    """Yield why the next pod of the group gets no node beside the others."""
    theirs = Case(case.around, companion)
    found = list(islice(_findings(theirs), FINDINGS_MAX))
    if found:
        # Others than pods of the group may free devices.
        finding = next((each for each in found if _may_be_freed(each)), found[0])
        others, member = _placed_before(case, companion), companion.pending.pod
        yield fits_alone(case, others, member, finding)


def _may_be_freed(finding: Finding) -> bool:
    return any(each.rank == FixRank.FREE for each in finding.proposals)


def _placed_before(case: Case, companion: Explanation) -> int:
    """Return how many pods of the group fit before the first that does not."""
    name = group_name(case.pod)
    members = [
        pod.metadata.name
        for pod in case.snapshot.pods
        if pod.metadata.namespace == case.namespace and group_name(pod) == name
    ]
    found = companion.pending.pod.metadata.name
    return members.index(found) if found in members else 0  # else it is of another group


def _fixes(case: Case, proposals: Iterable[Proposal]) -> list[Fix]:
    """Return the proposals that hold, with the node that the pod gets."""
    found: list[Fix] = []
    for proposal in islice(proposals, PROPOSALS_MAX):
        if proposal.holders:
            found += _guarded(case, wait_fixes(case, proposal))
        elif not proposal.changes:
            if not _was_meant_as_change(proposal):
                found.append(Fix(proposal.text, proposal.rank))
        elif not case.is_late:
            found += _guarded(case, _tried(case, proposal))
    return found


def _tried(case: Case, proposal: Proposal) -> Iterator[Fix]:
    """Yield a proposal as a fix, if the pod gets a node with its changes."""
    node = case.rehearsal.node(proposal.changes)
    if node is not None:
        yield Fix(proposal.text, proposal.rank, proposal.changes, node)


def _was_meant_as_change(proposal: Proposal) -> bool:
    return proposal.rank in (FixRank.LESS, FixRank.GIVE_UP)


def _unique(fixes: Iterable[Fix]) -> list[Fix]:
    """Return the fixes without those that make the same changes, or say the same."""
    found: dict[str, Fix] = {}
    for fix in fixes:
        found.setdefault(repr(fix.changes) if fix.changes else fix.text, fix)
    return list(found.values())


def _of_diagnosis(case: Case) -> list[Fix]:
    """Return the changes that the diagnosis of the nearest node has tried, and that hold."""
    found: list[Proposal] = []
    for verdict in _nearest_first(case)[:1]:
        if verdict.diagnosis is not None:
            found += _guarded(case, tried_changes(DeviceCase(case, verdict.diagnosis)))
    return _fixes(case, found)
