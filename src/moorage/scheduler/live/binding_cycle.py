"""The binding cycle: writes the decision about a pod to the server, or undoes all of it.

    PreBind (see `pre_bind`) ─ Bind ─► BindSucceeded
       └─────────┴─ Unreserve ───────► BindFailed

If anything fails, at any step, the decision is undone here and at the server, and the pod goes back
to the queue. A pod that was deleted meanwhile is not bound.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from moorage.api.core.namespace import Binding, ObjectReference
from moorage.api.core.pod import Pod
from moorage.api.meta import ObjectMeta, object_text
from moorage.api.resource.v1 import ResourceClaim
from moorage.client.writes import Create, Patch, RecordEvent, Target
from moorage.kit.bulkhead import FAULTS
from moorage.scheduler import binding_conditions
from moorage.scheduler.errors import (
    INTERNAL_ERROR,
    BindError,
    DoubleAllocationError,
    OtherSchedulerError,
    PodGoneError,
)
from moorage.scheduler.framework import (
    BIND,
    DEFAULT_BINDER,
    DYNAMIC_RESOURCES,
    ERROR,
    PRE_BIND,
    SUCCESS,
    PluginTimes,
)
from moorage.scheduler.live.assume_cache import AssumeCache
from moorage.scheduler.live.claim_writes import (
    WAIT_FIRST_S,
    WAIT_MOST_S,
    deallocate,
    delete_special,
    unreserve,
)
from moorage.scheduler.live.effects import (
    CONFLICT,
    EffectDone,
    EffectLost,
    EffectRefused,
    ReadObject,
    Sleep,
    Steps,
)
from moorage.scheduler.live.pre_bind import (
    BindContext,
    WrittenParts,
    check_alive,
    consumer_in,
    pre_bind,
)
from moorage.scheduler.plugins.claim_needs import claim_key
from moorage.scheduler.pod_signature import pod_key
from moorage.scheduler.reservation import Reservation

REJECTED = 'binding rejected: running Bind plugin "DefaultBinder": '


class BindSucceeded(Struct, frozen=True):
    """The pod is on its node."""


class BindFailed(Struct, frozen=True):
    """The pod is not bound, and the decision is undone completely."""

    message: str
    is_gone: bool = False  # the pod no longer exists and is not tried again


def bind(
    context: BindContext, reservation: Reservation, times: PluginTimes | None = None
) -> Steps[BindSucceeded | BindFailed]:
    """Write a decision to the server, or undo it; `times` records how long plugins take."""
    cache, key = context.cache, pod_key(reservation.pod)
    for claim in reservation.claims:
        cache.claims.add_waiting(claim_key(claim), key, consumer_in(claim, reservation.pod))
    written = WrittenParts()
    try:
        work = pre_bind(context, reservation, written)
        if reservation.claims:
            work = _timed(context, times, DYNAMIC_RESOURCES, PRE_BIND, work)
        yield from work
        yield from _timed(context, times, DEFAULT_BINDER, BIND, _create_binding(cache, reservation))
    except Exception as error:
        failed = _as_bind_error(error, reservation)
        cache.being_undone.add(key)
        try:
            yield from _undo(cache, reservation, written, failed)
        except Exception as other:  # what is left is cleaned up by the next try
            _as_bind_error(other, reservation)
        cache.being_undone.discard(key)
        return BindFailed(str(failed), is_gone=isinstance(failed, PodGoneError))
    for claim in reservation.claims:
        cache.claims.remove_waiting(claim_key(claim), key)
    cache.finish_binding(reservation)
    name = "/".join((reservation.pod.metadata.namespace, reservation.pod.metadata.name))
    text = f"Successfully assigned {name} to {reservation.node}"
    yield RecordEvent(reservation.pod, "Scheduled", text, action="Binding")
    return BindSucceeded()


def _as_bind_error(error: Exception, reservation: Reservation) -> BindError:
    """Return why a pod is not bound; of an error that nobody foresaw the log says more."""
    if isinstance(error, BindError):
        return error
    FAULTS.note("binding", object_text(reservation.pod), error, "is not bound")
    return BindError(INTERNAL_ERROR)


def _timed(
    context: BindContext, times: PluginTimes | None, plugin: str, point: str, work: Steps[None]
) -> Steps[None]:
    """Do the work of a plugin, and record how long it took."""
    if times is None:
        yield from work
        return
    start_s, status = context.now().elapsed_s, ERROR
    try:
        yield from work
        status = SUCCESS
    finally:
        times.observe(context.now().elapsed_s - start_s, plugin, point, status)


def _create_binding(cache: AssumeCache, reservation: Reservation) -> Steps[None]:
    """Bind the pod, until it is certain whether it is bound."""
    target = Target.of(reservation.pod)
    metadata = ObjectMeta(name=target.name, namespace=target.namespace, uid=target.uid)
    node = ObjectReference(kind="Node", name=reservation.node)
    wait_s = WAIT_FIRST_S
    was_lost = False
    check_alive(cache, reservation.pod)
    while True:
        result = yield Create(Binding(metadata=metadata, target=node))
        match result:
            case EffectDone():
                return
            case EffectRefused(reason=reason, message=message):
                # Perhaps by an earlier try of ours without a response.
                if was_lost or reason == CONFLICT:
                    pod = yield from _read_pod(target)
                    if pod is not None and pod.spec.node_name == reservation.node:
                        return
                raise BindError(f"{REJECTED}{message}")
            case EffectLost():
                was_lost = True
                yield Sleep(wait_s)
                wait_s = min(2 * wait_s, WAIT_MOST_S)


# --- Unreserve ------------------------------------------------------------------------------------


def _undo(
    cache: AssumeCache, reservation: Reservation, written: WrittenParts, error: BindError
) -> Steps[None]:
    """Undo a decision, here and at the server; what cannot be undone is left to the next try.

    A pod that another scheduler has bound keeps its claims, and claims that we never wrote stay
    unchanged. One that another is about to bind keeps its claims, too: the next attempt finds them
    unchanged.
    """
    pod, target = reservation.pod, Target.of(reservation.pod)
    keys = [claim_key(claim) for claim in reservation.claims]
    ours = {key for key in keys if cache.claims.remove_waiting(key, pod_key(pod))}
    cache.forget(reservation)
    if not (ours or written.special is not None or written.has_status):
        return
    stored = yield from _read_pod(target)
    if stored is not None and stored.spec.node_name:
        return
    for claim in reservation.claims:
        try:
            if written.special is claim:
                yield from delete_special(cache, claim)
            elif claim_key(claim) in ours and not isinstance(error, OtherSchedulerError):
                yield from _unreserve(cache, claim, pod, error)
        except BindError:
            continue  # the claim controller, or the next attempt, cleans up
    if written.has_status and cache.is_alive(pod_key(pod)):
        empty: dict[str, Any] = {
            "extendedResourceClaimStatus": None,
            "nodeAllocatableResourceClaimStatuses": [],
        }
        yield Patch(target, {"metadata": {"uid": target.uid}, "status": empty}, "status")


def _unreserve(cache: AssumeCache, claim: ResourceClaim, pod: Pod, error: BindError) -> Steps[None]:
    """Remove a pod's reservation, with the devices that we allocated if nobody else uses them."""
    key = claim_key(claim)
    allocation = cache.claims.allocated_by_us(key)
    # Kubernetes decides in the next try that devices which did not get ready are deallocated. Until
    # then the reservation records their purpose: a program can die meanwhile.
    is_kept = binding_conditions.has_conditions(claim) and cache.is_alive(pod_key(pod))
    yield from unreserve(cache, key, pod, allocation=allocation, is_kept=is_kept)
    # Where others got devices first, claims cannot keep theirs.
    if isinstance(error, DoubleAllocationError) and cache.first_owner(key) is not None:
        yield from deallocate(cache, claim, cache.holder_of(claim, pod))


def _read_pod(target: Target) -> Steps[Pod | None]:
    """Return a pod as the server has it, or None if there is none that we may read."""
    while True:
        result = yield ReadObject(target)
        match result:
            case EffectDone(value=None) | EffectRefused():
                return None
            case EffectDone(value=pod):
                return pod if pod.metadata.uid == target.uid else None
        yield Sleep(WAIT_MOST_S)
