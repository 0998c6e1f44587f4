"""The answer: the cause of a pending pod, and the fixes that an expert would choose.

    explanation ─► findings ─► the first that can be acted on ─► proposals ─ each tried ─► fixes

Findings come in the order in which an expert looks: what stops the pod before any node, then the
nearest nodes. A proposal with changes is offered only if the changed objects are valid and the pod
gets a node with them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from mooring.claims.pod_claims import controller_of
from mooring.insight.answer.claim_changes import ClaimEdits
from mooring.insight.answer.devices import device_findings
from mooring.insight.answer.finding import (
    Answer,
    Case,
    Finding,
    Fix,
    FixRank,
    Proposal,
    Unread,
    one_line,
)
from mooring.insight.answer.nodes import node_findings
from mooring.insight.answer.quotas import quota_findings
from mooring.insight.answer.references import (
    missing_claims,
    missing_classes,
    missing_group,
    scheduling_gates,
)
from mooring.insight.answer.unread import unread_findings
from mooring.insight.explain.phrases import change_text
from mooring.insight.explain.pods import Explanation
from mooring.insight.explain.situation import (
    AskCapacity,
    DropConstraint,
    DropSelector,
    LowerCount,
    SituationChange,
    Tolerate,
)
from mooring.insight.explain.verdicts import NodeVerdict
from mooring.insight.plan.planner import Plan
from mooring.insight.snapshot.builder import RefusedObject
from mooring.scheduler.scheduling_cycle import Pending
from mooring.validation.strategy import Context

FIXES_MAX: Final = 5
PRECONDITIONS: Final[tuple[Callable[[Case], Iterator[Finding]], ...]] = (
    scheduling_gates,
    quota_findings,
    unread_findings,
    missing_claims,
    missing_classes,
    missing_group,
)
_OFFERED: Final[dict[type, FixRank]] = {
    Tolerate: FixRank.GIVE,
    LowerCount: FixRank.LESS,
    AskCapacity: FixRank.LESS,
    DropConstraint: FixRank.GIVE_UP,
    DropSelector: FixRank.GIVE_UP,
}


def answer(
    plan: Plan,
    explanation: Explanation,
    context: Context,
    refused: Sequence[RefusedObject] = (),
    unread: Unread | None = None,
) -> Answer:
    """Return why a pod gets no node, and what would help.

    `refused` are objects that an API server would not take, and that the pod may wait for. `unread`
    are kinds whose objects could not all be read.
    """
    case = Case(
        plan.cluster,
        plan.before,
        explanation,
        context,
        refused=refused,
        over_quota=plan.over_quota,
        unread=unread,
    )
    found = list(findings(case, explanation.verdicts))
    tried = [(finding, _fixes(case, finding.proposals)) for finding in found[:4]]
    if not tried:
        return Answer(cause_of(None, explanation))
    (finding, fixes), *others = tried
    rest = list(chain(*(more for _, more in others if _helps(more))))
    fixes = _unique([*fixes, *rest])
    if not any(fix.kind == "change" and fix.rank < FixRank.GIVE_UP for fix in fixes):
        fixes = _unique([*fixes, *_fixes(case, _of_diagnosis(case))])
    ordered = sorted(fixes, key=lambda fix: fix.rank)
    if any(fix.rank < FixRank.GIVE_UP for fix in ordered):
        ordered = [fix for fix in ordered if fix.rank < FixRank.GIVE_UP]
    return Answer(cause_of(finding, explanation), tuple(ordered[:FIXES_MAX]))


def findings(case: Case, verdicts: Iterable[NodeVerdict]) -> Iterator[Finding]:
    """Yield what keeps the pod from nodes; the first is the cause.

    `verdicts` come nearest first. Only as many are asked for as the findings that are taken need.
    """
    found = [finding for find in PRECONDITIONS for finding in find(case)]
    if found:
        yield from found
        return
    for verdict in verdicts:
        if not verdict.texts:
            continue
        if verdict.is_behind or verdict.diagnosis is None:
            yield from node_findings(case, verdict)
        if verdict.diagnosis is not None:
            yield from device_findings(case, verdict.diagnosis)


def cause_of(finding: Finding | None, explanation: Explanation) -> str:
    """Return the cause of a pending pod: that of the first finding, if there is any."""
    if finding is not None:
        return one_line(finding.cause)
    return one_line(explanation.stopped_by or explanation.pending.reason)


def likeness(plan: Plan, pending: Pending) -> Hashable:
    """Return a key that pods share which wait for the same: one explanation does for all."""
    pod = pending.pod
    entries = tuple(
        (entry.resource_claim_template_name, entry.resource_claim_name)
        for entry in pod.spec.resource_claims
    )
    signature = plan.cluster.signature(pod)
    owner = controller_of(pod.metadata)
    uid = owner.uid if owner is not None else pod.metadata.uid
    return pod.metadata.namespace, uid, signature, entries, pending.reason


def _helps(fixes: Iterable[Fix]) -> bool:
    return any(fix.kind == "change" for fix in fixes)


def _fixes(case: Case, proposals: Iterable[Proposal]) -> list[Fix]:
    """Return the proposals that hold, with the node that the pod gets."""
    found: list[Fix] = []
    for proposal in proposals:
        if not proposal.changes:
            if not _was_meant_as_change(proposal):
                found.append(Fix(proposal.text, proposal.rank))
            continue
        node = case.rehearsal.node(proposal.changes)
        if node is not None:
            found.append(Fix(proposal.text, proposal.rank, proposal.changes, node))
    return found


def _was_meant_as_change(proposal: Proposal) -> bool:
    return proposal.rank in (FixRank.LESS, FixRank.GIVE_UP)


def _unique(fixes: Iterable[Fix]) -> list[Fix]:
    found: dict[str, Fix] = {}
    for fix in fixes:
        found.setdefault(fix.text, fix)
    return list(found.values())


def _of_diagnosis(case: Case) -> Iterator[Proposal]:
    """Yield the changes that the diagnosis of the nearest nodes has tried."""
    for verdict in case.explanation.verdicts[:1]:
        if verdict.diagnosis is None:
            continue
        situation = verdict.diagnosis.situation
        edits = ClaimEdits(situation, case.pod, case.sources)
        for fix in verdict.diagnosis.fixes:
            ranks = [_rank(change) for change in fix.changes]
            if None in ranks:
                continue
            changes = edits.changes(fix.changes)
            if changes:
                text = ", and ".join(change_text(change, situation) for change in fix.changes)
                yield Proposal(text, max(rank for rank in ranks if rank is not None), changes)


def _rank(change: SituationChange) -> FixRank | None:
    return _OFFERED.get(type(change))
