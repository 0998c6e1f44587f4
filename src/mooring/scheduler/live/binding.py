"""Binding: what was decided for a pod is written to the server, step by step, or all taken back.

1. The special claim for extended resources is created.
2. Each claim gets its finalizer, then its devices and the pod's reservation.
3. The pod's status tells which devices stand for its extended and node resources.
4. Devices that must get ready are waited for.
5. The pod is bound.

Whatever goes wrong, at any step: what was decided is taken back here and at the server, and the
pod goes back to the queue. A pod that was deleted meanwhile is not bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.codec import to_tree
from mooring.api.core.namespace import Binding
from mooring.api.core.pod import Pod
from mooring.api.core.references import ObjectReference
from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference
from mooring.claims import pod_consumer
from mooring.claims.consumers import is_group_consumer, is_reserved_for
from mooring.claims.owners import group_name
from mooring.client.writes import Create, Patch, Target, Tell
from mooring.scheduler import bindingconditions
from mooring.scheduler.claimneeds import PLUGIN as DYNAMIC_RESOURCES
from mooring.scheduler.cluster import ClaimKey
from mooring.scheduler.live.asks import (
    CONFLICT,
    Done,
    Gone,
    Joined,
    Lost,
    Read,
    Refused,
    Rivalled,
    Setback,
    Sleep,
    Steps,
    Until,
)
from mooring.scheduler.live.claimcache import key_of, version_of
from mooring.scheduler.live.claimwrites import (
    WAIT_FIRST_S,
    WAIT_MOST_S,
    create,
    deallocate,
    discard,
    give,
    take_back_reservation,
)
from mooring.scheduler.live.hints import of_claim, of_pod, told
from mooring.scheduler.live.livecluster import LiveCluster
from mooring.scheduler.live.metrics import profile_of
from mooring.scheduler.live.moment import Moment
from mooring.scheduler.plugin_times import BIND, DEFAULT_BINDER, ERROR, SUCCESS, PluginTimes
from mooring.scheduler.plugin_times import PRE_BIND as PRE_BIND_POINT
from mooring.scheduler.reserving import Reservation
from mooring.scheduler.shapes import key_of as pod_key_of

PRE_BIND = 'running PreBind plugin "DynamicResources": '
REJECTED = 'binding rejected: running Bind plugin "DefaultBinder": '
LOOK_AGAIN_S = 5.0


class Bound(Struct, frozen=True):
    """The pod is on its node."""


class Failed(Struct, frozen=True):
    """The pod is not bound, and nothing of what was decided is left."""

    message: str
    is_gone: bool = False  # there is no pod any more to be tried again


class Noted(Protocol):
    """Who counts how devices get ready, and claims that are created."""

    def created(self, status: str) -> None:
        """Count a claim that was created, or failed to be."""

    def waited(
        self, claims: list[ResourceClaim], profile: str, status: str, seconds: float
    ) -> None:
        """Count what became of waiting for devices, for a pod of a profile."""


class Desk(Struct, frozen=True):
    """What binding needs besides the decision."""

    live: LiveCluster
    now: Callable[[], Moment]
    noted: Noted
    binding_timeout_s: float


def bind(
    desk: Desk, reservation: Reservation, times: PluginTimes | None = None
) -> Steps[Bound | Failed]:
    """Write a decision to the server, or take it back; `times` notes how long that takes."""
    live, key = desk.live, pod_key_of(reservation.pod)
    for claim in reservation.claims:
        live.claims.want(key_of(claim), key, consumer_in(claim, reservation.pod))
    undoing = _Undoing()
    try:
        if reservation.claims:
            work = _pre_bind(desk, reservation, undoing)
            yield from _timed(desk, times, DYNAMIC_RESOURCES, PRE_BIND_POINT, work)
        else:
            yield from _pre_bind(desk, reservation, undoing)
        yield from _timed(desk, times, DEFAULT_BINDER, BIND, _post(live, reservation))
    except Setback as setback:
        undoing.has_rivals = isinstance(setback, Rivalled)
        undoing.is_joined = isinstance(setback, Joined)
        live.taking_back.add(key)
        yield from _undo(live, reservation, undoing)
        live.taking_back.discard(key)
        return Failed(str(setback), is_gone=isinstance(setback, Gone))
    for claim in reservation.claims:
        live.claims.unwant(key_of(claim), key)
    live.bound(reservation)
    name = "/".join((reservation.pod.metadata.namespace, reservation.pod.metadata.name))
    text = f"Successfully assigned {name} to {reservation.node}"
    yield Tell(reservation.pod, "Scheduled", text, action="Binding")
    return Bound()


def _timed(
    desk: Desk, times: PluginTimes | None, plugin: str, point: str, work: Steps[None]
) -> Steps[None]:
    """Do the work of a plugin, and note how long it took."""
    if times is None:
        yield from work
        return
    start_s, status = desk.now().elapsed_s, ERROR
    try:
        yield from work
        status = SUCCESS
    finally:
        times.note(desk.now().elapsed_s - start_s, plugin, point, status)


class _Undoing(Struct):
    """What must be undone besides reservations."""

    special: ResourceClaim | None = None  # created, or perhaps
    has_rivals: bool = False  # others got devices first, so that claims cannot keep theirs
    is_joined: bool = False  # another scheduler is at the same pod, and may use what we gave
    has_status: bool = False  # the pod's status tells of claims, or perhaps


def consumer_in(claim: ResourceClaim, pod: Pod) -> ResourceClaimConsumerReference:
    """Return who the claim was reserved for when the decision was made: the pod, or its group."""
    mine = pod_consumer(pod)
    group = group_name(pod)
    for consumer in claim.status.reserved_for:
        if group is not None and is_group_consumer(consumer) and consumer.name == group:
            return consumer
    return mine


# --- before the pod is bound ----------------------------------------------------------------------


def _pre_bind(desk: Desk, reservation: Reservation, undoing: _Undoing) -> Steps[None]:
    live, pod = desk.live, reservation.pod
    try:
        _check_wanted(live, pod)
        yield from _create_special(desk, reservation, undoing)
        for claim in reservation.claims:
            _check_wanted(live, pod)
            _check_first(live, key_of(claim))  # before more is written
            # Also if nothing is left to write: whoever gives the claim back has its turn.
            yield from give(live, claim, consumer_in(claim, pod))
        for claim in reservation.claims:
            yield from _outlast_rivals(live, claim, pod)
        _check_wanted(live, pod)
        yield from _tell_pod(live, pod, undoing)
        yield from _get_ready(desk, reservation)
        for claim in reservation.claims:
            _check_held(live, claim, pod)
    except Gone:
        raise
    except Setback as setback:
        raise type(setback)(f"{PRE_BIND}{setback}") from None


def _outlast_rivals(live: LiveCluster, claim: ResourceClaim, pod: Pod) -> Steps[None]:
    """Wait until the claim's devices are told back; raise Setback if another was told first."""
    key = key_of(claim)
    written = live.claims.stored.get(key)
    version = None if written is None else version_of(written)
    while True:
        stored = live.claims.stored.get(key)
        if stored is None or stored.status.allocation is None:
            raise _deallocated(key)
        if live.rivals.has_told(stored, version):
            break
        yield Until((told(key), of_claim(*key), of_pod(pod_key_of(pod))), LOOK_AGAIN_S)
        _check_wanted(live, pod)
    _check_first(live, key)


def _check_first(live: LiveCluster, key: ClaimKey) -> None:
    if (first := live.rival_of(key)) is not None:
        raise Rivalled(f"claim {'/'.join(key)} lost its devices to claim {'/'.join(first)}")


def _check_held(live: LiveCluster, claim: ResourceClaim, pod: Pod) -> None:
    stored = live.claims.stored.get(key_of(claim))
    if stored is None or stored.status.allocation is None:
        raise _deallocated(key_of(claim))
    if not is_reserved_for(stored, pod, live.cluster.features.claims):
        raise Setback(f"claim {'/'.join(key_of(claim))} is no longer reserved for the pod")


def _deallocated(key: ClaimKey) -> Setback:
    return Setback(f"claim {'/'.join(key)} got deallocated elsewhere in the meantime")


def _check_wanted(live: LiveCluster, pod: Pod) -> None:
    if not live.is_wanted(pod_key_of(pod)):
        raise Gone("the pod is being deleted")


def _create_special(desk: Desk, reservation: Reservation, undoing: _Undoing) -> Steps[None]:
    """Create the special claim if there is none: first, for that is what a quota refuses."""
    for claim, before in zip(reservation.claims, reservation.before, strict=True):
        if before is not None:
            continue
        undoing.special = claim
        try:
            yield from create(desk.live, _to_create(claim))
        except Setback:
            desk.noted.created("failure")
            raise
        desk.noted.created("success")


def _to_create(claim: ResourceClaim) -> ResourceClaim:
    # Created with its finalizer: so it costs one write less, and the claim controller takes the
    # finalizer of a claim without devices away.
    return replace(claim, status=type(claim.status)())


def _tell_pod(live: LiveCluster, pod: Pod, undoing: _Undoing) -> Steps[None]:
    """Write what the pod's status says of claims for extended and node resources, if anything."""
    status = dict(_claim_statuses(live.pods[pod_key_of(pod)], pod))
    if not status:
        return
    undoing.has_status = True
    target = Target.of(pod)
    body = {"metadata": {"uid": target.uid}, "status": status}
    yield from _patched(Patch(target, body, "status"))


def _claim_statuses(stored: Pod, pod: Pod) -> Iterator[tuple[str, Any]]:
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended != stored.status.extended_resource_claim_status:
        yield "extendedResourceClaimStatus", to_tree(extended)
    resources = pod.status.node_allocatable_resource_claim_statuses
    if resources and resources != stored.status.node_allocatable_resource_claim_statuses:
        yield "nodeAllocatableResourceClaimStatuses", [to_tree(each) for each in resources]


def _patched(patch: Patch) -> Steps[None]:
    """Patch until it is certain what became of it; a patch can be repeated."""
    wait_s = WAIT_FIRST_S
    while True:
        answer = yield patch
        match answer:
            case Done():
                return
            case Refused(message=message):
                name = f"{patch.target.namespace}/{patch.target.name}"
                raise Setback(f"update pod {name} status: {message}")
        yield Sleep(wait_s)
        wait_s = min(2 * wait_s, WAIT_MOST_S)


def _get_ready(desk: Desk, reservation: Reservation) -> Steps[None]:
    """Wait until all devices of the claims are ready; or raise Setback."""
    live, pod = desk.live, reservation.pod
    if not live.cluster.features.allocator.device_binding_and_status:
        return
    keys = [key_of(c) for c in reservation.claims if bindingconditions.has_conditions(c)]
    if not keys:
        return
    text = f"waiting for binding conditions for device on node {reservation.node}"
    yield Tell(pod, "BindingConditionsPending", text, action="Scheduling")
    nominated = {"nominatedNodeName": reservation.node}
    yield Patch(Target.of(pod), {"status": nominated}, "status")
    start_s = desk.now().elapsed_s
    while True:
        claims = [claim for key in keys if (claim := live.claims.stored.get(key)) is not None]
        try:
            _check_wanted(live, pod)
            left_s = _check_ready(desk, claims, len(keys), desk.now().elapsed_s - start_s)
        except Setback as setback:
            if not isinstance(setback, Gone):
                status = "timeout" if "timeout" in str(setback) else "failure"
                took_s = desk.now().elapsed_s - start_s
                desk.noted.waited(claims, profile_of(pod), status, took_s)
            raise
        if left_s is None:
            took_s = desk.now().elapsed_s - start_s
            desk.noted.waited(claims, profile_of(pod), "success", took_s)
            return
        topics = (of_pod(pod_key_of(pod)), *(of_claim(*key) for key in keys))
        yield Until(topics, min(left_s, LOOK_AGAIN_S), is_long=True)


def _check_ready(
    desk: Desk, claims: list[ResourceClaim], count: int, waited_s: float
) -> float | None:
    """Return how long devices may still take; None if all are ready; raise Setback if never."""
    if len(claims) < count:
        raise Setback("a claim got deleted in the meantime")
    left_s: float | None = None
    for claim in claims:
        if claim.status.allocation is None:
            raise _deallocated(key_of(claim))
        if (failed := bindingconditions.failure(claim)) is not None:
            text = f'reason={failed.reason}, message="{failed.message}"'
            raise Setback(f"device binding failed: claim={claim.metadata.name}, {text}")
        if bindingconditions.is_ready(claim):
            continue
        timeout_s = desk.binding_timeout_s
        left = bindingconditions.time_left_s(claim, desk.now().wall, timeout_s=timeout_s)
        left = min(left, timeout_s - waited_s)
        if left < 0:
            raise Setback(f"device binding timeout: claim={claim.metadata.name}")
        left_s = left if left_s is None else min(left, left_s)
    return None if left_s is None else max(left_s, 0.01)


# --- the pod itself -------------------------------------------------------------------------------


def _post(live: LiveCluster, reservation: Reservation) -> Steps[None]:
    """Bind the pod, until it is certain whether it is bound."""
    target = Target.of(reservation.pod)
    wait_s = WAIT_FIRST_S
    was_lost = False
    _check_wanted(live, reservation.pod)
    while True:
        answer = yield Create(_binding(target, reservation.node))
        match answer:
            case Done():
                return
            case Refused(reason=reason, message=message):
                # Perhaps by an earlier try of ours that was not answered.
                is_unclear = was_lost or reason == CONFLICT
                if is_unclear and (yield from _is_bound(target, reservation.node)):
                    return
                raise Setback(f"{REJECTED}{message}")
            case Lost():
                was_lost = True
                yield Sleep(wait_s)
                wait_s = min(2 * wait_s, WAIT_MOST_S)


def _binding(target: Target, node: str) -> Binding:
    metadata = ObjectMeta(name=target.name, namespace=target.namespace, uid=target.uid)
    return Binding(metadata=metadata, target=ObjectReference(kind="Node", name=node))


def _is_bound(target: Target, node: str) -> Steps[bool]:
    pod = yield from _stored(target)
    return pod is not None and pod.spec.node_name == node


# --- taking back ----------------------------------------------------------------------------------


def _undo(live: LiveCluster, reservation: Reservation, undoing: _Undoing) -> Steps[None]:
    """Take a decision back, here and at the server; what cannot be is left to the next try.

    A pod that another scheduler has bound keeps what it has, and so do claims that we never wrote.
    One that another is about to bind keeps its claims, too: the next try finds them as they are.
    """
    pod = reservation.pod
    keys = [key_of(claim) for claim in reservation.claims]
    ours = {key for key in keys if live.claims.unwant(key, pod_key_of(pod))}
    live.unreserve(reservation)
    has_written = bool(ours) or undoing.special is not None or undoing.has_status
    if not has_written or (yield from _has_node(Target.of(pod))):
        return
    for claim in reservation.claims:
        try:
            if undoing.special is claim:
                yield from discard(live, claim)
            elif key_of(claim) in ours and not undoing.is_joined:
                yield from _take_back(live, claim, pod, has_rivals=undoing.has_rivals)
        except Setback:
            continue  # the claim controller, or the next try, finds what is left
    if undoing.has_status and live.is_wanted(pod_key_of(pod)):
        empty: dict[str, Any] = {
            "extendedResourceClaimStatus": None,
            "nodeAllocatableResourceClaimStatuses": [],
        }
        target = Target.of(pod)
        yield Patch(target, {"metadata": {"uid": target.uid}, "status": empty}, "status")


def _take_back(
    live: LiveCluster, claim: ResourceClaim, pod: Pod, *, has_rivals: bool
) -> Steps[None]:
    """Take a pod's reservation back, with the devices that we gave if nobody else uses them."""
    key = key_of(claim)
    given = live.claims.given(key)
    # Kubernetes tells in the next try that devices which did not get ready are given back. Until
    # then the reservation says what they are for: a program can die meanwhile.
    is_kept = bindingconditions.has_conditions(claim) and live.is_wanted(pod_key_of(pod))
    yield from take_back_reservation(live, key, pod, given=given, is_kept=is_kept)
    if has_rivals and live.rival_of(key) is not None:
        yield from deallocate(live, claim, live.holder_of(claim, pod))


def _has_node(target: Target) -> Steps[bool]:
    """Tell whether the server has a pod on a node."""
    pod = yield from _stored(target)
    return pod is not None and bool(pod.spec.node_name)


def _stored(target: Target) -> Steps[Pod | None]:
    """Return a pod as the server has it, or None if there is none that we may see."""
    while True:
        answer = yield Read(target)
        match answer:
            case Done(value=None) | Refused():
                return None
            case Done(value=pod):
                return pod if pod.metadata.uid == target.uid else None
        yield Sleep(WAIT_MOST_S)
