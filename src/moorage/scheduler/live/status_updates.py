"""Status updates: conditions and events of pods and groups, claims deallocated, pods preempted."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.api.codec import to_tree
from moorage.api.core.pod import DISRUPTION_TARGET, POD_SCHEDULED, Pod, PodCondition
from moorage.api.meta import Condition
from moorage.api.names import byte_length
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.scheduling.v1beta1 import INITIALLY_SCHEDULED
from moorage.api.timestamp import Timestamp
from moorage.claims.extended_resources import is_in_memory
from moorage.client.writes import Delete, Patch, RecordEvent, Target
from moorage.scheduler.errors import BindError
from moorage.scheduler.group_forest import AnyGroup, key_of
from moorage.scheduler.live.assume_cache import AssumeCache
from moorage.scheduler.live.claim_writes import deallocate, delete_special, unreserve
from moorage.scheduler.live.config import Moment
from moorage.scheduler.live.effects import (
    CONFLICT,
    NOT_FOUND,
    EffectDone,
    EffectRefused,
    GroupLock,
    ReadObject,
    Sleep,
    Steps,
    Unlock,
)
from moorage.scheduler.plugins.claim_needs import claim_key
from moorage.scheduler.plugins.dynamic_resources import ClaimDeallocation
from moorage.scheduler.pod_groups import GroupDecision, UnitDecision
from moorage.scheduler.signature_cache import PREEMPTED

EXPLAINED = "SchedulingExplained"  # the reason of Moorage's own event
SCHEDULED = "Scheduled"
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
MESSAGE_MAX = 4096
GROUP_MESSAGE_MAX = 32_768
NOTE_MAX = 1024  # of an event, as the API has it
RETRY_S = 5.0
SHORTENED = " ..."


def report_unscheduled(
    cache: AssumeCache,
    key: str,
    message: str,
    reason: str,
    now: Moment,
    *,
    nominated: str | None = None,
    explanation: str = "",
    is_apart: bool = False,
    is_muted: bool = False,
) -> Steps[None]:
    """Write why a pod has no node: an event, and the condition unless it is there already.

    Moorage's explanation follows Kubernetes' message, or gets an event of its own. Who is muted
    gets no event.
    """
    pod = cache.pods.get(key)
    if pod is None:
        return
    added = "" if is_apart else explanation
    note = _joined(message, added, NOTE_MAX)
    if not is_muted:
        yield RecordEvent(pod, "FailedScheduling", note, action="Scheduling", is_warning=True)
    if explanation and is_apart:
        own = _shortened(explanation, NOTE_MAX)
        yield RecordEvent(pod, EXPLAINED, own, action="Scheduling")
    condition = PodCondition(
        type=POD_SCHEDULED,
        status="False",
        reason=reason,
        message=_joined(message, added, MESSAGE_MAX),
        observed_generation=pod.metadata.generation,
    )
    more: dict[str, Any] = {}
    if nominated is not None and nominated != pod.status.nominated_node_name:
        more = {"nominatedNodeName": nominated or None}
    yield from _set_condition(cache, key, condition, now, more)


def _joined(message: str, explanation: str, bytes_max: int) -> str:
    """Return Kubernetes' message followed by ours; where both are too long, theirs is shortened."""
    own = _shortened(explanation, bytes_max)
    room = bytes_max - byte_length(own) - 1
    if not own or room <= len(SHORTENED):
        return own or _shortened(message, bytes_max)
    return f"{_shortened(message, room)} {own}"


def _shortened(text: str, bytes_max: int) -> str:
    """Return as much of a text as fits: the API counts bytes."""
    if byte_length(text) <= bytes_max:
        return text
    kept = text.encode("utf-8", "replace")[: bytes_max - len(SHORTENED)]
    return kept.decode("utf-8", "ignore") + SHORTENED


def carry_out(cache: AssumeCache, key: str, deallocation: ClaimDeallocation) -> Steps[None]:
    """Deallocate or delete a claim that keeps a pod from every node.

    If that fails the pod is tried again after a while: it waits for nothing but that claim.
    """
    pod, claim = cache.pods.get(key), deallocation.claim
    if pod is None or is_in_memory(claim):
        return
    result = yield ReadObject(Target.of(pod))
    is_done = False
    if isinstance(result, EffectDone):
        if result.value is None or result.value.spec.node_name:
            return  # it got a node meanwhile, from a scheduler before us or beside us
        with suppress(BindError):
            if deallocation.is_deleted:
                yield from delete_special(cache, claim)
                is_done = claim_key(claim) not in cache.claims.stored
            else:
                is_done = yield from deallocate(cache, claim, pod.metadata.uid)
    if not is_done:
        yield Sleep(RETRY_S)
        cache.wake(key)


def try_deallocate(cache: AssumeCache, claim: ResourceClaim, uid: str) -> Steps[None]:
    """Deallocate a claim that is reserved for nobody but this uid, if possible."""
    with suppress(BindError):
        yield from deallocate(cache, claim, uid)


def try_unreserve(cache: AssumeCache, claim: ResourceClaim, pod: Pod) -> Steps[None]:
    """Remove a pod's reservation of a claim, if possible; the last one goes with the devices."""
    if cache.claims.has_waiting(claim_key(claim)):
        return  # it is being bound once more
    with suppress(BindError):
        allocation = claim.status.allocation
        yield from unreserve(cache, claim_key(claim), pod, allocation=allocation)


def clear_nomination(cache: AssumeCache, key: str) -> Steps[None]:
    """Write that a pod is nominated for no node, if it is."""
    pod = cache.pods.get(key)
    if pod is not None and pod.status.nominated_node_name:
        body = {"metadata": {"uid": pod.metadata.uid}, "status": {"nominatedNodeName": None}}
        yield Patch(Target.of(pod), body, "status")


class Preemptor(NamedTuple):
    """Whoever pods are evicted for."""

    kind: str  # "pod", or that of a group
    uid: str
    scheduler_name: str
    pods: tuple[str, ...]  # by key


def evict(
    cache: AssumeCache, victims: Iterable[str], preemptor: Preemptor, place: str, now: Moment
) -> Steps[None]:
    """Delete the victims of a preemption; if one stays, the pods are tried again after a while.

    No event would wake them: they wait for nothing but that the victims leave.
    """
    name, kind = preemptor.scheduler_name, preemptor.kind
    are_leaving = True
    for key in victims:
        victim = cache.pods.get(key)
        if victim is None or victim.metadata.deletion_timestamp is not None:
            continue
        condition = PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=PREEMPTED,
            message=f"{name}: preempting to accommodate a higher priority {kind}",
            observed_generation=victim.metadata.generation,
        )
        yield from _set_condition(cache, key, condition, now, {})
        result = yield Delete(Target.of(victim))
        if isinstance(result, EffectDone):
            text = f"Preempted by {kind} {preemptor.uid} on node {place}"
            yield RecordEvent(victim, "Preempted", text, action="Preempting")
        elif not (isinstance(result, EffectRefused) and result.reason == NOT_FOUND):
            are_leaving = False
    if not are_leaving:
        yield Sleep(RETRY_S)
        for key in preemptor.pods:
            cache.wake(key)


def report_group(
    group: AnyGroup,
    decision: GroupDecision | UnitDecision,
    now: Moment,
    *,
    is_outdated: bool = False,
) -> Steps[bool]:
    """Write whether a group got its nodes; return whether its condition changed.

    A condition that is there, or that was true once, stays; so does that of a group that was not
    tried. A group that is outdated is read before.
    """
    if decision.message is None:
        return False
    reason = SCHEDULED
    if decision.message:
        reason = SCHEDULER_ERROR if decision.is_fault else UNSCHEDULABLE
    condition = Condition(
        type=INITIALLY_SCHEDULED,
        status="False" if decision.message else "True",
        reason=reason,
        message=decision.message[:GROUP_MESSAGE_MAX],
        last_transition_time=Timestamp(now.wall),
    )
    unlock: Unlock = yield GroupLock(key_of(group))
    try:
        current: AnyGroup | None = group
        if is_outdated:
            current = yield from _read(group)
        for _ in range(2):
            patch = None if current is None else _group_patch(current, condition)
            if patch is None:
                return False
            result = yield patch
            if not (isinstance(result, EffectRefused) and result.reason == CONFLICT):
                return isinstance(result, EffectDone)
            current = yield from _read(group)
    finally:
        unlock()
    return False


def _read(group: AnyGroup) -> Steps[AnyGroup | None]:
    result = yield ReadObject(Target.of(group))
    return result.value if isinstance(result, EffectDone) else None


def _group_patch(group: AnyGroup, condition: Condition) -> Patch | None:
    """Return the patch for a group's condition; None if it is there, or was true before."""
    conditions = group.status.conditions
    condition = replace(condition, observed_generation=group.metadata.generation)
    old = next((each for each in conditions if each.type == condition.type), None)
    if old is not None:
        if old.status == "True" and condition.status != "True":
            return None
        if old.status == condition.status:
            condition = replace(condition, last_transition_time=old.last_transition_time)
        if old == condition:
            return None
    return _patch(group, condition, {}, always_versioned=True)


def _set_condition(
    cache: AssumeCache, key: str, condition: PodCondition, now: Moment, more: dict[str, Any]
) -> Steps[None]:
    """Patch a condition of a pod, unless it is there; on a conflict try once more."""
    pod = cache.pods.get(key)
    for _ in range(2):
        if pod is None:
            return
        old = next((each for each in pod.status.conditions if each.type == condition.type), None)
        if old is not None and _says_same(old, condition) and _has(pod, more):
            return
        is_same = old is not None and old.status == condition.status
        since = old.last_transition_time if old is not None and is_same else Timestamp(now.wall)
        result = yield _patch(pod, replace(condition, last_transition_time=since), more)
        if not (isinstance(result, EffectRefused) and result.reason == CONFLICT):
            return
        result = yield ReadObject(Target.of(pod))
        pod = result.value if isinstance(result, EffectDone) else None


def _patch(
    value: Pod | AnyGroup,
    condition: PodCondition | Condition,
    more: dict[str, Any],
    *,
    always_versioned: bool = False,
) -> Patch:
    others = [each for each in value.status.conditions if each.type != condition.type]
    metadata = {"uid": value.metadata.uid}
    if others or always_versioned:  # the list is replaced as a whole, and must still be this one
        metadata["resourceVersion"] = value.metadata.resource_version
    conditions = [to_tree(each) for each in (*others, condition)]
    body = {"metadata": metadata, "status": {"conditions": conditions, **more}}
    return Patch(Target.of(value), body, "status")


def _says_same(one: PodCondition, other: PodCondition) -> bool:
    return (one.status, one.reason, one.message) == (other.status, other.reason, other.message)


def _has(pod: Pod, more: dict[str, Any]) -> bool:
    nominated = pod.status.nominated_node_name
    return bool(nominated == (more.get("nominatedNodeName", nominated) or ""))
