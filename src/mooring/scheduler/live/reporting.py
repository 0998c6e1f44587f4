"""Saying what became of pods: conditions, events, and what is done to make room."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from mooring.api.codec import to_tree
from mooring.api.core.pod import Pod
from mooring.api.core.podstatus import DISRUPTION_TARGET, POD_SCHEDULED, PodCondition
from mooring.api.resource.v1 import ResourceClaim
from mooring.api.timestamp import Timestamp
from mooring.claims.specialclaim import is_in_memory
from mooring.client.writes import Delete, Patch, Target, Tell
from mooring.scheduler.claimcheck import GivenUp
from mooring.scheduler.live.asks import (
    CONFLICT,
    NOT_FOUND,
    Done,
    Read,
    Refused,
    Setback,
    Sleep,
    Steps,
)
from mooring.scheduler.live.claimcache import key_of
from mooring.scheduler.live.claimwrites import deallocate, discard, take_back_reservation
from mooring.scheduler.live.livecluster import LiveCluster
from mooring.scheduler.live.moment import Moment
from mooring.scheduler.shapes import key_of as pod_key_of

EXPLAINED = "SchedulingExplained"  # the reason of our own event
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
MESSAGE_MAX = 4096
AGAIN_S = 5.0
NOTE_MAX = 1024  # of an event, as the API has it


def say(
    live: LiveCluster,
    key: str,
    message: str,
    reason: str,
    now: Moment,
    *,
    nominated: str = "",
    explanation: str = "",
) -> Steps[None]:
    """Write why a pod has no node: an event, and the condition unless it says so already.

    An explanation that is not part of the message gets an event of its own.
    """
    pod = live.pods.get(key)
    if pod is None:
        return
    yield Tell(pod, "FailedScheduling", message[:NOTE_MAX], action="Scheduling", is_warning=True)
    if explanation:
        yield Tell(pod, EXPLAINED, explanation[:NOTE_MAX], action="Scheduling")
    condition = PodCondition(
        type=POD_SCHEDULED,
        status="False",
        reason=reason,
        message=message[:MESSAGE_MAX],
        observed_generation=pod.metadata.generation,
    )
    more = {"nominatedNodeName": nominated} if nominated else {}
    yield from _set_condition(live, key, condition, now, more)


def make_room(live: LiveCluster, key: str, given_up: GivenUp) -> Steps[None]:
    """Give back the devices of a claim that is in a pod's way, or delete it.

    If that fails the pod is tried again after a while: all that it waits for is that claim.
    """
    pod = live.pods.get(key)
    if pod is None or is_in_memory(given_up.claim):
        return
    answer = yield Read(Target.of(pod))
    is_done = False
    if isinstance(answer, Done):
        if answer.value is None or answer.value.spec.node_name:
            return  # it got a node meanwhile, from a scheduler before us or beside us
        with suppress(Setback):
            is_done = yield from _give_up(live, given_up, pod.metadata.uid)
    if not is_done:
        yield Sleep(AGAIN_S)
        live.wake(key)


def _give_up(live: LiveCluster, given_up: GivenUp, uid: str) -> Steps[bool]:
    if not given_up.is_deleted:
        return (yield from deallocate(live, given_up.claim, uid))
    yield from discard(live, given_up.claim)
    return key_of(given_up.claim) not in live.claims.stored


def give_back(live: LiveCluster, claim: ResourceClaim, uid: str) -> Steps[None]:
    """Give back the devices of a claim that nobody but the pod with this uid holds back."""
    with suppress(Setback):
        yield from deallocate(live, claim, uid)


def unreserve(live: LiveCluster, claim: ResourceClaim, pod: Pod) -> Steps[None]:
    """Take a pod's reservation of a claim back; the last one goes with the devices."""
    if live.claims.is_wanted(key_of(claim)):
        return  # it is being bound once more
    with suppress(Setback):
        yield from take_back_reservation(live, key_of(claim), pod, given=claim.status.allocation)


def evict(
    live: LiveCluster, victims: Iterable[str], pod: Pod, node: str, now: Moment
) -> Steps[None]:
    """Delete pods of lower priority that are in a pod's way; if one stays, the pod is tried again.

    Nobody else would wake it: all that it waits for is that they go.
    """
    name = pod.spec.scheduler_name
    are_going = True
    for key in victims:
        victim = live.pods.get(key)
        if victim is None or victim.metadata.deletion_timestamp is not None:
            continue
        condition = PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason="PreemptionByScheduler",
            message=f"{name}: preempting to accommodate a higher priority pod",
            observed_generation=victim.metadata.generation,
        )
        yield from _set_condition(live, key, condition, now, {})
        answer = yield Delete(Target.of(victim))
        if isinstance(answer, Done):
            text = f"Preempted by pod {pod.metadata.uid} on node {node}"
            yield Tell(victim, "Preempted", text, action="Preempting")
        elif not (isinstance(answer, Refused) and answer.reason == NOT_FOUND):
            are_going = False
    if not are_going:
        yield Sleep(AGAIN_S)
        live.wake(pod_key_of(pod))


def _set_condition(
    live: LiveCluster, key: str, condition: PodCondition, now: Moment, more: dict[str, Any]
) -> Steps[None]:
    """Patch a condition of a pod, unless it is there; on a conflict look once more."""
    pod = live.pods.get(key)
    for _ in range(2):
        if pod is None:
            return
        old = next((each for each in pod.status.conditions if each.type == condition.type), None)
        if old is not None and _says_same(old, condition) and _has(pod, more):
            return
        is_same = old is not None and old.status == condition.status
        since = old.last_transition_time if old is not None and is_same else Timestamp(now.wall)
        answer = yield _patch(pod, replace(condition, last_transition_time=since), more)
        if not (isinstance(answer, Refused) and answer.reason == CONFLICT):
            return
        answer = yield Read(Target.of(pod))
        pod = answer.value if isinstance(answer, Done) else None


def _patch(pod: Pod, condition: PodCondition, more: dict[str, Any]) -> Patch:
    others = [each for each in pod.status.conditions if each.type != condition.type]
    metadata = {"uid": pod.metadata.uid}
    if others:  # which are replaced with the list, and must still be these
        metadata["resourceVersion"] = pod.metadata.resource_version
    conditions = [to_tree(each) for each in (*others, condition)]
    body = {"metadata": metadata, "status": {"conditions": conditions, **more}}
    return Patch(Target.of(pod), body, "status")


def _says_same(one: PodCondition, other: PodCondition) -> bool:
    return (one.status, one.reason, one.message) == (other.status, other.reason, other.message)


def _has(pod: Pod, more: dict[str, Any]) -> bool:
    nominated = pod.status.nominated_node_name
    return bool(nominated == more.get("nominatedNodeName", nominated))
