"""Saying what became of groups: a condition that once is true and stays so."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.codec import to_tree
from mooring.api.meta import Condition
from mooring.api.scheduling import PodGroup
from mooring.api.scheduling.v1beta1 import INITIALLY_SCHEDULED
from mooring.api.timestamp import Timestamp
from mooring.client.writes import Patch, Target
from mooring.scheduler.groups import Decided
from mooring.scheduler.live.asks import CONFLICT, Done, Read, Refused, Steps
from mooring.scheduler.live.moment import Moment
from mooring.scheduler.live.reporting import SCHEDULER_ERROR, UNSCHEDULABLE

SCHEDULED = "Scheduled"
MESSAGE_MAX = 32_768


def say_of_group(group: PodGroup, decided: Decided, now: Moment) -> Steps[None]:
    """Write whether a group got its nodes, unless it says so or was not tried."""
    wanted = _condition(decided, now)
    known: PodGroup | None = group
    for _ in range(2):
        if wanted is None or known is None:
            return
        patch = _patch(known, wanted)
        if patch is None:
            return
        answer = yield patch
        if not (isinstance(answer, Refused) and answer.reason == CONFLICT):
            return
        answer = yield Read(Target.of(known))
        known = answer.value if isinstance(answer, Done) else None


def _condition(decided: Decided, now: Moment) -> Condition | None:
    if decided.message is None:
        return None
    reason = SCHEDULED
    if decided.message:
        reason = SCHEDULER_ERROR if decided.is_fault else UNSCHEDULABLE
    return Condition(
        type=INITIALLY_SCHEDULED,
        status="False" if decided.message else "True",
        reason=reason,
        message=decided.message[:MESSAGE_MAX],
        last_transition_time=Timestamp(now.wall),
    )


def _patch(group: PodGroup, wanted: Condition) -> Patch | None:
    """Return the patch that makes a group say so; None if it does, or was scheduled before."""
    metadata, conditions = group.metadata, group.status.conditions
    wanted = replace(wanted, observed_generation=metadata.generation)
    old = next((each for each in conditions if each.type == wanted.type), None)
    if old is not None:
        if old.status == "True" and wanted.status != "True":
            return None
        if old.status == wanted.status:
            wanted = replace(wanted, last_transition_time=old.last_transition_time)
        if old == wanted:
            return None
    # The list is replaced as a whole, so it must still be this one.
    held = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    others = [each for each in conditions if each.type != wanted.type]
    body = {"conditions": [to_tree(each) for each in (*others, wanted)]}
    return Patch(Target.of(group), {"metadata": held, "status": body}, "status")
