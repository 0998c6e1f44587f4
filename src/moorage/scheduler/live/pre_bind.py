"""PreBind of DynamicResources: claims are allocated and reserved, and their devices get ready.

1. The special claim for extended resources is created.
2. Each claim gets its finalizer, then its devices and the pod's reservation.
3. The pod's status records which devices provide its extended and node resources.
4. Devices with binding conditions are waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.codec import to_tree
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference
from moorage.claims import pod_consumer
from moorage.claims.pod_claims import claim_names, group_name
from moorage.claims.reservations import is_group_consumer, is_reserved_for
from moorage.client.writes import Patch, RecordEvent, Target
from moorage.scheduler import binding_conditions
from moorage.scheduler.errors import BindError, DoubleAllocationError, PodGoneError
from moorage.scheduler.live.assume_cache import AssumeCache
from moorage.scheduler.live.claim_assume_cache import version_of
from moorage.scheduler.live.claim_writes import WAIT_FIRST_S, WAIT_MOST_S, allocate, create
from moorage.scheduler.live.config import Moment
from moorage.scheduler.live.effects import EffectDone, EffectRefused, Sleep, Steps, WaitFor
from moorage.scheduler.live.metrics import profile_of
from moorage.scheduler.live.queueing_hints import claim_watched, of_claim, of_pod
from moorage.scheduler.plugins.claim_needs import ClaimKey, claim_key
from moorage.scheduler.pod_signature import pod_key
from moorage.scheduler.reservation import Reservation

PREFIX = 'running PreBind plugin "DynamicResources": '
RECHECK_S = 5.0


class BindMetrics(Protocol):
    """Metrics of claims that are created, and of devices that get ready."""

    def created(self, status: str) -> None:
        """Count a claim that was created, or failed to be."""

    def waited(
        self, claims: list[ResourceClaim], profile: str, status: str, seconds: float
    ) -> None:
        """Count the result of waiting for devices, for a pod of a profile."""


class BindContext(Struct, frozen=True):
    """What binding needs besides the decision."""

    cache: AssumeCache
    now: Callable[[], Moment]
    metrics: BindMetrics
    joins_writes: bool = False  # a claim's finalizer goes with its status, in one write


class WrittenParts(Struct):
    """The writes made before the pod is bound, which are undone if binding fails."""

    special: ResourceClaim | None = None  # created, or perhaps
    has_status: bool = False  # the pod's status names claims, or perhaps


def pre_bind(context: BindContext, reservation: Reservation, written: WrittenParts) -> Steps[None]:
    """Store the claims of a pod, and wait for their devices; or raise BindError."""
    cache, pod = context.cache, reservation.pod
    try:
        check_alive(cache, pod)
        yield from _create_special(context, reservation, written)
        for claim in reservation.claims:
            check_alive(cache, pod)
            _check_first(cache, claim_key(claim))  # before more is written
            # Also if nothing is left to write: whoever deallocates the claim has the lock.
            consumer = consumer_in(claim, pod)
            yield from allocate(cache, claim, consumer, joins_writes=context.joins_writes)
        for claim in reservation.claims:
            yield from _await_watch(cache, claim, pod)
        check_alive(cache, pod)
        yield from _write_claim_statuses(cache, pod, written)
        yield from _await_devices(context, reservation)
        for claim in reservation.claims:
            _check_reserved(cache, claim, pod)
        _check_names(cache, pod)
    except PodGoneError:
        raise
    except BindError as error:
        raise type(error)(f"{PREFIX}{error}") from None


def consumer_in(claim: ResourceClaim, pod: Pod) -> ResourceClaimConsumerReference:
    """Return who the claim was reserved for when the decision was made: the pod, or its group."""
    group = group_name(pod)
    for consumer in claim.status.reserved_for:
        if group is not None and is_group_consumer(consumer) and consumer.name == group:
            return consumer
    return pod_consumer(pod)


def check_alive(cache: AssumeCache, pod: Pod) -> None:
    """Raise PodGoneError if the pod is being deleted."""
    if not cache.is_alive(pod_key(pod)):
        raise PodGoneError("the pod is being deleted")


def _await_watch(cache: AssumeCache, claim: ResourceClaim, pod: Pod) -> Steps[None]:
    """Wait until the watch reports the claim's devices; raise BindError if another was first."""
    key = claim_key(claim)
    written = cache.claims.stored.get(key)
    version = None if written is None else version_of(written)
    while True:
        stored = cache.claims.stored.get(key)
        if stored is None or stored.status.allocation is None:
            raise _deallocated(key)
        if cache.double_allocations.has_watched(stored, version):
            break
        events = (claim_watched(key), of_claim(*key), of_pod(pod_key(pod)))
        yield WaitFor(events, RECHECK_S)
        check_alive(cache, pod)
    _check_first(cache, key)


def _check_first(cache: AssumeCache, key: ClaimKey) -> None:
    if (first := cache.first_owner(key)) is not None:
        text = f"claim {'/'.join(key)} lost its devices to claim {'/'.join(first)}"
        raise DoubleAllocationError(text)


def _check_names(cache: AssumeCache, pod: Pod) -> None:
    """Raise BindError if the pod got other claims: controllers that overlap may create two."""
    newest = cache.pods.get(pod_key(pod))
    if newest is not None and claim_names(newest) != claim_names(pod):
        raise BindError("the pod got other claims in the meantime")


def _check_reserved(cache: AssumeCache, claim: ResourceClaim, pod: Pod) -> None:
    stored = cache.claims.stored.get(claim_key(claim))
    if stored is None or stored.status.allocation is None:
        raise _deallocated(claim_key(claim))
    if not is_reserved_for(stored, pod, cache.cluster.features.claims):
        name = "/".join(claim_key(claim))
        raise BindError(f"claim {name} is no longer reserved for the pod")


def _deallocated(key: ClaimKey) -> BindError:
    return BindError(f"claim {'/'.join(key)} got deallocated elsewhere in the meantime")


def _create_special(
    context: BindContext, reservation: Reservation, written: WrittenParts
) -> Steps[None]:
    """Create the special claim if there is none: first, since a quota may refuse it."""
    for claim, before in zip(reservation.claims, reservation.before, strict=True):
        if before is not None:
            continue
        written.special = claim
        try:
            # Created with its finalizer: that saves a write, and the claim controller removes the
            # finalizer of a claim without devices.
            yield from create(context.cache, replace(claim, status=type(claim.status)()))
        except BindError:
            context.metrics.created("failure")
            raise
        context.metrics.created("success")


def _write_claim_statuses(cache: AssumeCache, pod: Pod, written: WrittenParts) -> Steps[None]:
    """Write the pod's status about claims for extended and node resources, if there are any."""
    status = dict(_claim_statuses(cache.pods[pod_key(pod)], pod))
    if not status:
        return
    written.has_status = True
    target = Target.of(pod)
    patch = Patch(target, {"metadata": {"uid": target.uid}, "status": status}, "status")
    wait_s = WAIT_FIRST_S
    while True:  # until the result is certain; a patch can be repeated
        result = yield patch
        match result:
            case EffectDone():
                return
            case EffectRefused(message=message):
                name = f"{target.namespace}/{target.name}"
                raise BindError(f"update pod {name} status: {message}")
        yield Sleep(wait_s)
        wait_s = min(2 * wait_s, WAIT_MOST_S)


def _claim_statuses(stored: Pod, pod: Pod) -> Iterator[tuple[str, Any]]:
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended != stored.status.extended_resource_claim_status:
        yield "extendedResourceClaimStatus", to_tree(extended)
    resources = pod.status.node_allocatable_resource_claim_statuses
    if resources and resources != stored.status.node_allocatable_resource_claim_statuses:
        yield "nodeAllocatableResourceClaimStatuses", [to_tree(each) for each in resources]


# --- binding conditions ---------------------------------------------------------------------------


def _await_devices(context: BindContext, reservation: Reservation) -> Steps[None]:
    """Wait until all devices of the claims are ready; or raise BindError."""
    cache, pod = context.cache, reservation.pod
    if not cache.cluster.features.allocator.device_binding_and_status:
        return
    keys = [claim_key(c) for c in reservation.claims if binding_conditions.has_conditions(c)]
    if not keys:
        return
    text = f"waiting for binding conditions for device on node {reservation.node}"
    yield RecordEvent(pod, "BindingConditionsPending", text, action="Scheduling")
    nominated = {"nominatedNodeName": reservation.node}
    yield Patch(Target.of(pod), {"status": nominated}, "status")
    start_s, profile = context.now().elapsed_s, profile_of(pod)
    timeout_s = cache.cluster.profile_for(pod).binding_timeout_s
    while True:
        claims = [claim for key in keys if (claim := cache.claims.stored.get(key)) is not None]
        waited_s = context.now().elapsed_s - start_s
        try:
            check_alive(cache, pod)
            left_s = _check_ready(context, claims, len(keys), waited_s, timeout_s)
        except PodGoneError:
            raise
        except BindError as error:
            status = "timeout" if "timeout" in str(error) else "failure"
            context.metrics.waited(claims, profile, status, waited_s)
            raise
        if left_s is None:
            context.metrics.waited(claims, profile, "success", waited_s)
            return
        events = (of_pod(pod_key(pod)), *(of_claim(*key) for key in keys))
        yield WaitFor(events, min(left_s, RECHECK_S), is_long=True)


def _check_ready(
    context: BindContext,
    claims: list[ResourceClaim],
    count: int,
    waited_s: float,
    timeout_s: float,
) -> float | None:
    """Return how long devices may still take; None if all are ready; raise BindError if never."""
    if len(claims) < count:
        raise BindError("a claim got deleted in the meantime")
    left_s: float | None = None
    for claim in claims:
        if claim.status.allocation is None:
            raise _deallocated(claim_key(claim))
        if (failed := binding_conditions.failure(claim)) is not None:
            text = f'reason={failed.reason}, message="{failed.message}"'
            raise BindError(f"device binding failed: claim={claim.metadata.name}, {text}")
        if binding_conditions.is_ready(claim):
            continue
        left = binding_conditions.time_left_s(claim, context.now().wall, timeout_s=timeout_s)
        left = min(left, timeout_s - waited_s)
        if left < 0:
            raise BindError(f"device binding timeout: claim={claim.metadata.name}")
        left_s = left if left_s is None else min(left, left_s)
    return None if left_s is None else max(left_s, 0.01)
