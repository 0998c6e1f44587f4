"""Pods that wait for devices in vain, and changes that help once devices are free.

claims of others released ─► scheduled ─► a node: it is not in vain
                                      └─► none: explained again ─► what waiting does not end
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Final, NamedTuple

from msgspec.structs import replace

from moorage.api.resource.v1 import ResourceClaim
from moorage.claims.pod_claims import group_name
from moorage.insight.answer.cause_kinds import CauseKind
from moorage.insight.answer.changes.changed_cluster import put_claim
from moorage.insight.answer.finding import Case, Finding, Fix, FixRank
from moorage.insight.answer.holders import held_claims, wait_fixes, waits_for_claims
from moorage.insight.explain.nodes import NodeProbe
from moorage.insight.explain.pods import Explanation
from moorage.insight.explain.report import distance
from moorage.insight.explain.verdicts import NodeVerdict
from moorage.insight.plan.decisions import placed_anywhere
from moorage.insight.plan.planner import Plan
from moorage.scheduler.scheduling_cycle import Pending, attempt

CLAIMS_MAX: Final = 2_000  # that are released; a larger cluster has many nodes that may do
PROPOSALS_MAX: Final = 6
BESIDES: Final = "; besides, devices are in use now"
# Causes for which other pods are waited for, and what is advised then.
WAITING: Final = (CauseKind.DEVICES_IN_USE, CauseKind.CONSTRAINT, CauseKind.CONTENTION)
MORE_OF_THE_SAME: Final = (FixRank.FREE, FixRank.HARDWARE)
# What no other pod can end by leaving.
_LASTING: Final = (
    CauseKind.NO_DEVICE,
    CauseKind.SELECTOR,
    CauseKind.DEVICE_TAINT,
    CauseKind.DEVICE_CAPACITY,
    CauseKind.DEVICES_APART,
    CauseKind.CONSTRAINT,
    CauseKind.CONTENTION,
)
Find = Callable[[Case], Iterable[Finding]]


class Lasting(NamedTuple):
    """What is wrong with a pod even if all devices were free, and what helps against it."""

    cause: str
    fixes: Sequence[Fix]


def is_in_vain(case: Case) -> bool:
    """Return whether the nearest node has too few devices even with all its claims released."""
    verdict = _nearest_short(case)
    if verdict is None or verdict.diagnosis is None:
        return False
    diagnosis = verdict.diagnosis
    return not diagnosis.obstacles.holders_left_out and diagnosis.is_impossible_when_free()


def waits_in_vain(case: Case, find: Find) -> Iterator[Lasting]:
    """Yield why waiting for devices does not help a pod, unless it does, or nobody knows.

    `find` finds what is wrong with a case.
    """
    finding = _when_released(case, find)
    if finding is not None and finding.kind in _LASTING:
        advice = [
            Fix(each.text, each.rank)
            for each in finding.proposals
            if not each.changes and each.rank is FixRank.HARDWARE
        ]
        yield Lasting(f"{finding.cause}{BESIDES}", [*fixes_for_later(case, finding), *advice])


def _when_released(case: Case, find: Find) -> Finding | None:
    """Return what is wrong with a pod if others have no devices; None if nothing is, or unknown."""
    with _all_released(case) as is_released:
        if not is_released:
            return None
        explanation = _explained(case)
        if explanation is None or placed_anywhere(case.cluster, case.pod, case.nearest_nodes):
            return None
        plan = Plan(case.snapshot, (explanation.pending,), (), lambda: case.cluster)
        return next(iter(find(Case(case.around.changed(plan), explanation))), None)


def _explained(case: Case) -> Explanation | None:
    """Return why the nearest node without enough devices takes no pod; None if it does."""
    ready = attempt(case.cluster, case.pod)
    verdict = _nearest_short(case)
    if isinstance(ready, Pending) or verdict is None:
        return None
    diagnosis = NodeProbe(ready).diagnose(verdict.nodes[0], lambda: case.effort)
    if diagnosis is None:
        return None
    return replace(case.explanation, verdicts=(replace(verdict, diagnosis=diagnosis),))


def _nearest_short(case: Case) -> NodeVerdict | None:
    """Return the verdict of the nearest nodes that have too few devices."""
    short = (each for each in case.explanation.verdicts if each.diagnosis is not None)
    return min(short, key=distance, default=None)


def fixes_for_later(case: Case, finding: Finding) -> Iterator[Fix]:
    """Yield the changes of a finding that help once others have gone, as advice to wait for them.

    Now they place no pod.
    """
    held = list(islice(_held_by_others(case), CLAIMS_MAX))
    if group_name(case.pod) is not None or case.is_late:
        return
    near = _nearest_short(case)
    keys = [*(near.diagnosis.obstacles.holders if near and near.diagnosis else ())]
    keys += [(claim.metadata.namespace, claim.metadata.name) for claim in held]
    for waiting in waits_for_claims(case, keys):
        for proposal in islice(finding.proposals, PROPOSALS_MAX):
            for fix in wait_fixes(case, waiting, proposal.changes) if proposal.changes else ():
                yield replace(fix, text=f"{proposal.text}; then {fix.text}", rank=proposal.rank)


@contextmanager
def _all_released(case: Case) -> Iterator[bool]:
    """Release the claims of others for a while; False if there are none, or too many to try."""
    held = list(_held_by_others(case))
    if not held or len(held) > CLAIMS_MAX or group_name(case.pod) is not None or case.is_late:
        yield False
        return
    with ExitStack() as undo:
        for claim in held:
            status = replace(claim.status, allocation=None, reserved_for=())
            put_claim(case.cluster, replace(claim, status=status), undo)
        yield True


def _held_by_others(case: Case) -> Iterator[ResourceClaim]:
    own = {entry.resource_claim_name for entry in case.pod.spec.resource_claims}
    for (namespace, name), claim in held_claims(case):
        if namespace != case.namespace or name not in own:
            yield claim
