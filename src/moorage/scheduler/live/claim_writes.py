"""Claim writes: devices and reservations are stored, and taken back.

Each step locks one claim and writes it from the newest store version. On a conflict it reads the
claim and checks again whether the write still makes sense. A write without a response is repeated
unchanged until there is one: it names the version that it was made from, so it takes effect only
once, and then the server's state is certain.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import (
    FINALIZER,
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from moorage.claims import deallocated, pod_consumer, protected, unprotected
from moorage.claims.reservations import is_at_most_for
from moorage.client.writes import Create, Delete, Target, Update
from moorage.scheduler.errors import BindError, OtherSchedulerError
from moorage.scheduler.live.claim_assume_cache import ClaimAssumeCache
from moorage.scheduler.live.effects import (
    ALREADY_EXISTS,
    CONFLICT,
    NOT_FOUND,
    ClaimLock,
    EffectDone,
    EffectRefused,
    ReadObject,
    Sleep,
    Steps,
    Unlock,
)
from moorage.scheduler.plugins.claim_needs import ClaimKey, claim_key

CONFLICTS_MAX = 8
WAIT_FIRST_S = 0.2
WAIT_MOST_S = 5.0
STATUS = "status"


class ClaimStore(Protocol):
    """Where the newest versions of claims go."""

    claims: ClaimAssumeCache

    def put_claim(self, claim: ResourceClaim) -> None:
        """Add a claim, or its newer version."""

    def remove_claim(self, claim: ResourceClaim) -> None:
        """Remove a claim."""


def allocate(
    store: ClaimStore,
    mine: ResourceClaim,
    consumer: ResourceClaimConsumerReference,
    *,
    joins_writes: bool = False,
) -> Steps[None]:
    """Store the devices that were decided for a claim, and its consumer; or raise BindError.

    The finalizer comes first. If writes are joined, it comes with the devices, unless the server
    refuses that: then the refusal of one of both says why.
    """
    key = claim_key(mine)
    unlock: Unlock = yield ClaimLock(key)
    try:
        for _ in range(CONFLICTS_MAX):
            stored = _check(store, mine, consumer)
            if consumer in stored.status.reserved_for and stored.status.allocation is not None:
                return
            update = _next(store, stored, mine, consumer, joins_writes=joins_writes)
            is_status = update.with_status or update.subresource == STATUS
            result = yield from _write(update)
            match result:
                case EffectDone(value=value):
                    if is_status:
                        store.claims.record_write(stored, value)
                    store.put_claim(value)
                case EffectRefused(reason=reason) if reason in (CONFLICT, NOT_FOUND):
                    # Perhaps by an earlier try of ours without a response; or by others.
                    yield from _reread(store, key)
                case EffectRefused() if update.with_status:
                    joins_writes = False
                case EffectRefused(message=message):
                    raise BindError(f"{_action(stored, is_status=is_status)}: {message}")
        raise BindError(f"claim {_name(mine)} is changed by others all the time")
    finally:
        unlock()


def create(store: ClaimStore, claim: ResourceClaim) -> Steps[None]:
    """Create the special claim under the name that was decided; or raise BindError."""
    result = yield from _write(Create(replace(claim, metadata=replace(claim.metadata, uid=""))))
    match result:
        case EffectDone(value=value):
            store.put_claim(value)
        case EffectRefused(reason=reason, message=message):
            if reason in (ALREADY_EXISTS, CONFLICT):
                yield from _reread(store, claim_key(claim))
                stored = store.claims.stored.get(claim_key(claim))
                # A response got lost, and this is the claim that it was about.
                if stored is not None and _is_same_owner(stored, claim):
                    return
            raise BindError(_not_created(claim, message))


def unreserve(
    store: ClaimStore,
    key: ClaimKey,
    pod: Pod,
    *,
    allocation: AllocationResult | None,
    is_kept: bool = False,
) -> Steps[None]:
    """Remove a pod from the consumers of a claim; a group stays.

    Devices that were allocated for it go in the same write if nobody else uses them: a program that
    writes twice can die in between, and nobody would know the purpose of the devices. If the
    devices must be kept, the last consumer stays, too.
    """
    unlock: Unlock = yield ClaimLock(key)
    try:
        consumer = pod_consumer(pod)
        for _ in range(CONFLICTS_MAX):
            stored = store.claims.stored.get(key)
            if stored is None or consumer not in stored.status.reserved_for:
                return
            kept = tuple(each for each in stored.status.reserved_for if each != consumer)
            if not kept and is_kept:
                return
            freed = replace(stored, status=replace(stored.status, reserved_for=kept))
            if not kept and allocation is not None and stored.status.allocation == allocation:
                freed = deallocated(stored)
            if not (yield from _update(store, freed, STATUS)):
                return
    finally:
        unlock()


def delete_special(store: ClaimStore, claim: ResourceClaim) -> Steps[None]:
    """Delete a special claim with its devices."""
    key = claim_key(claim)
    unlock: Unlock = yield ClaimLock(key)
    try:
        for _ in range(CONFLICTS_MAX):
            stored = store.claims.stored.get(key)
            is_ours = stored is not None and _is_same_owner(stored, claim)
            if stored is None or not is_ours or store.claims.has_waiting(key):
                return
            if stored.status.allocation is not None or stored.status.reserved_for:
                more = yield from _update(store, deallocated(stored), STATUS)
            elif FINALIZER in stored.metadata.finalizers:
                more = yield from _update(store, unprotected(stored), "")
            else:
                more = yield from _delete(store, stored)
            if not more:
                return
    finally:
        unlock()


def deallocate(store: ClaimStore, seen: ResourceClaim, uid: str) -> Steps[bool]:
    """Deallocate a claim that only this uid holds; return whether it has no devices now."""
    key = claim_key(seen)
    unlock: Unlock = yield ClaimLock(key)
    try:
        for _ in range(CONFLICTS_MAX):
            stored = store.claims.stored.get(key)
            if stored is None or store.claims.has_waiting(key) or not is_at_most_for(stored, uid):
                return False  # it was deleted, or somebody uses it
            if stored.status.allocation is None:
                return True
            if stored.status.allocation != seen.status.allocation:
                return False
            if not (yield from _update(store, deallocated(stored), STATUS)):
                return False
        return False
    finally:
        unlock()


# --- the next write -------------------------------------------------------------------------------


def _check(
    store: ClaimStore, mine: ResourceClaim, consumer: ResourceClaimConsumerReference
) -> ResourceClaim:
    """Return the stored claim, if the devices can still be allocated to it."""
    stored = store.claims.stored.get(claim_key(mine))
    is_there = stored is not None and stored.metadata.deletion_timestamp is None
    if stored is None or not is_there:
        raise BindError(f"claim {_name(mine)} got deleted in the meantime")
    allocation = stored.status.allocation
    if allocation is None:
        if not store.claims.is_assumed(claim_key(mine)):
            raise BindError(f"claim {_name(mine)} got deallocated elsewhere in the meantime")
    elif not _is_same(allocation, mine.status.allocation):
        error = OtherSchedulerError if consumer in stored.status.reserved_for else BindError
        raise error(f"claim {_name(mine)} got allocated elsewhere in the meantime")
    return stored


def _next(
    store: ClaimStore,
    stored: ResourceClaim,
    mine: ResourceClaim,
    consumer: ResourceClaimConsumerReference,
    *,
    joins_writes: bool,
) -> Update:
    """Return the next write: of the finalizer, of the status, or of both."""
    needs_finalizer = stored.status.allocation is None and (
        FINALIZER not in stored.metadata.finalizers
    )
    if needs_finalizer and not joins_writes:
        return Update(protected(stored))
    status = replace(
        stored.status,
        allocation=stored.status.allocation or mine.status.allocation,
        reserved_for=store.claims.consumers(stored, consumer),
    )
    if needs_finalizer:
        return Update(replace(protected(stored), status=status), with_status=True)
    return Update(replace(stored, status=status), STATUS)


def _not_created(claim: ResourceClaim, message: str) -> str:
    """Return why, without the name, which differs in every try: so it is reported once."""
    prefix = claim.metadata.generate_name
    message = message.replace(claim.metadata.name, prefix)
    return f"create claim for extended resources {claim.metadata.namespace}/{prefix}: {message}"


def _action(stored: ResourceClaim, *, is_status: bool) -> str:
    if not is_status:
        return f"add finalizer to claim {_name(stored)}"
    if stored.status.allocation is None:
        return f"add allocation and reservation to claim {_name(stored)}"
    return f"add reservation to claim {_name(stored)}"


# --- reading and writing --------------------------------------------------------------------------


def _write(write: Create | Update | Delete) -> Steps[EffectDone | EffectRefused]:
    """Repeat a write until there is a response; a lost one may have been carried out.

    Then a refusal is a conflict, whatever its reason, until the claim was read.
    """
    wait_s = WAIT_FIRST_S
    was_lost = False
    while True:
        result = yield write
        match result:
            case EffectDone():
                return result
            case EffectRefused(message=message):
                return EffectRefused(CONFLICT, message) if was_lost else result
        was_lost = True
        yield Sleep(wait_s)
        wait_s = min(2 * wait_s, WAIT_MOST_S)


def _update(store: ClaimStore, claim: ResourceClaim, subresource: str) -> Steps[bool]:
    """Write a claim; False if trying again is no use."""
    result = yield from _write(Update(claim, subresource))
    match result:
        case EffectDone(value=value):
            store.put_claim(value)
            return True
        case EffectRefused(reason=reason) if reason in (CONFLICT, NOT_FOUND):
            yield from _reread(store, claim_key(claim))
            return True
        case _:
            return False


def _delete(store: ClaimStore, claim: ResourceClaim) -> Steps[bool]:
    result = yield from _write(Delete(Target.of(claim)))
    if isinstance(result, EffectDone):
        store.remove_claim(claim)
        return False
    yield from _reread(store, claim_key(claim))
    return result.reason == CONFLICT


def _reread(store: ClaimStore, key: ClaimKey) -> Steps[None]:
    """Read a claim until the server's state is certain."""
    wait_s = WAIT_FIRST_S
    while True:
        result = yield ReadObject(Target(ResourceClaim, *key))
        stored = store.claims.stored.get(key)
        match result:
            case EffectDone(value=None):
                if stored is not None:
                    store.remove_claim(stored)
                return
            case EffectDone(value=value):
                if stored is not None and stored.metadata.uid != value.metadata.uid:
                    store.remove_claim(stored)
                store.put_claim(value)
                return
            case EffectRefused(message=message):
                raise BindError(f"get updated claim {'/'.join(key)} after conflict: {message}")
        yield Sleep(wait_s)
        wait_s = min(2 * wait_s, WAIT_MOST_S)


def _is_same(one: AllocationResult, other: AllocationResult | None) -> bool:
    """Return whether allocations have the same devices, for the same nodes."""
    if other is None:
        return False
    return one.devices == other.devices and one.node_selector == other.node_selector


def _is_same_owner(stored: ResourceClaim, claim: ResourceClaim) -> bool:
    return stored.metadata.owner_references == claim.metadata.owner_references


def _name(claim: ResourceClaim) -> str:
    return "/".join(claim_key(claim))
