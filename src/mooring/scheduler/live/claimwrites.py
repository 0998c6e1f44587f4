"""Writing claims: devices and reservations given, and taken back.

Each writes one claim in its turn, from the newest version that is known. A conflict makes it read
the claim and look again whether it still is ours to write. A write without an answer is repeated
as it was until there is one: it names the version that it was made from, so it can count only
once, and then it is certain what the server has.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from mooring.api.core.pod import Pod
from mooring.api.resource.v1 import (
    FINALIZER,
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from mooring.claims import deallocated, pod_consumer, protected, unprotected
from mooring.claims.consumers import is_at_most_for
from mooring.client.writes import Create, Delete, Target, Update
from mooring.scheduler.cluster import ClaimKey
from mooring.scheduler.live.asks import (
    ALREADY_EXISTS,
    CONFLICT,
    NOT_FOUND,
    Done,
    EndTurn,
    Joined,
    Read,
    Refused,
    Setback,
    Sleep,
    Steps,
    Turn,
)
from mooring.scheduler.live.claimcache import ClaimCache, key_of

CONFLICTS_MAX = 8
WAIT_FIRST_S = 0.2
WAIT_MOST_S = 5.0
STATUS = "status"


class Claims(Protocol):
    """Who is told what claims are like now."""

    claims: ClaimCache

    def put_claim(self, claim: ResourceClaim) -> None:
        """Take in a claim."""

    def remove_claim(self, claim: ResourceClaim) -> None:
        """Take in that a claim is gone."""


def give(
    known: Claims,
    mine: ResourceClaim,
    consumer: ResourceClaimConsumerReference,
) -> Steps[None]:
    """Store the devices that were decided for a claim, and who may use it; or raise Setback."""
    key = key_of(mine)
    end_turn: EndTurn = yield Turn(key)
    try:
        for _ in range(CONFLICTS_MAX):
            stored = _check(known, mine, consumer)
            if consumer in stored.status.reserved_for and stored.status.allocation is not None:
                return
            claim, is_status = _next(known, stored, mine, consumer)
            answer = yield from _written(Update(claim, STATUS if is_status else ""))
            match answer:
                case Done(value=value):
                    if is_status:
                        known.claims.wrote(value)
                    known.put_claim(value)
                case Refused(reason=reason) if reason in (CONFLICT, NOT_FOUND):
                    # Perhaps by an earlier try of ours that was not answered; or by others.
                    yield from _reread(known, key)
                case Refused(message=message):
                    raise Setback(f"{_doing(stored, is_status=is_status)}: {message}")
        raise Setback(f"claim {_shown(mine)} is changed by others all the time")
    finally:
        end_turn()


def create(known: Claims, claim: ResourceClaim) -> Steps[None]:
    """Create the special claim under the name that was decided; or raise Setback."""
    answer = yield from _written(Create(replace(claim, metadata=replace(claim.metadata, uid=""))))
    match answer:
        case Done(value=value):
            known.put_claim(value)
        case Refused(reason=reason, message=message):
            if reason in (ALREADY_EXISTS, CONFLICT):
                yield from _reread(known, key_of(claim))
                stored = known.claims.stored.get(key_of(claim))
                # An answer got lost and this is the claim that it told of.
                if stored is not None and _is_same_owner(stored, claim):
                    return
            raise Setback(_not_created(claim, message))


def take_back_reservation(
    known: Claims,
    key: ClaimKey,
    pod: Pod,
    *,
    given: AllocationResult | None,
    is_kept: bool = False,
) -> Steps[None]:
    """Take a pod out of the consumers of a claim; what a group has stays.

    Devices that were given for it go in the same write if nobody else uses them: who writes twice
    can die in between, and nobody would know what the devices are for. If they are to be kept, the
    last consumer stays, too.
    """
    end_turn: EndTurn = yield Turn(key)
    try:
        consumer = pod_consumer(pod)
        for _ in range(CONFLICTS_MAX):
            stored = known.claims.stored.get(key)
            if stored is None or consumer not in stored.status.reserved_for:
                return
            kept = tuple(each for each in stored.status.reserved_for if each != consumer)
            if not kept and is_kept:
                return
            freed = replace(stored, status=replace(stored.status, reserved_for=kept))
            if not kept and given is not None and stored.status.allocation == given:
                freed = deallocated(stored)
            if not (yield from _update(known, freed, STATUS)):
                return
    finally:
        end_turn()


def discard(known: Claims, claim: ResourceClaim) -> Steps[None]:
    """Delete a special claim, with what it has."""
    key = key_of(claim)
    end_turn: EndTurn = yield Turn(key)
    try:
        for _ in range(CONFLICTS_MAX):
            stored = known.claims.stored.get(key)
            is_ours = stored is not None and _is_same_owner(stored, claim)
            if stored is None or not is_ours or known.claims.is_wanted(key):
                return
            if stored.status.allocation is not None or stored.status.reserved_for:
                more = yield from _update(known, deallocated(stored), STATUS)
            elif FINALIZER in stored.metadata.finalizers:
                more = yield from _update(known, unprotected(stored), "")
            else:
                more = yield from _delete(known, stored)
            if not more:
                return
    finally:
        end_turn()


def deallocate(known: Claims, seen: ResourceClaim, uid: str) -> Steps[bool]:
    """Take the devices of a claim away that nobody but the pod with this uid holds back."""
    key = key_of(seen)
    end_turn: EndTurn = yield Turn(key)
    try:
        for _ in range(CONFLICTS_MAX):
            stored = known.claims.stored.get(key)
            if stored is None or known.claims.is_wanted(key) or not is_at_most_for(stored, uid):
                return False  # it is gone, or somebody uses it
            if stored.status.allocation is None:
                return True
            if stored.status.allocation != seen.status.allocation:
                return False
            if not (yield from _update(known, deallocated(stored), STATUS)):
                return False
        return False
    finally:
        end_turn()


# --- the next write -------------------------------------------------------------------------------


def _check(
    known: Claims, mine: ResourceClaim, consumer: ResourceClaimConsumerReference
) -> ResourceClaim:
    """Return the claim as it is stored, if the devices can still be given to it."""
    stored = known.claims.stored.get(key_of(mine))
    is_there = stored is not None and stored.metadata.deletion_timestamp is None
    if stored is None or not is_there:
        raise Setback(f"claim {_shown(mine)} got deleted in the meantime")
    allocation = stored.status.allocation
    if allocation is None:
        if not known.claims.is_decided(key_of(mine)):
            raise Setback(f"claim {_shown(mine)} got deallocated elsewhere in the meantime")
    elif not _is_same(allocation, mine.status.allocation):
        struct = Joined if consumer in stored.status.reserved_for else Setback
        raise struct(f"claim {_shown(mine)} got allocated elsewhere in the meantime")
    return stored


def _next(
    known: Claims,
    stored: ResourceClaim,
    mine: ResourceClaim,
    consumer: ResourceClaimConsumerReference,
) -> tuple[ResourceClaim, bool]:
    """Return the claim as it is to be written next, and whether that is its status."""
    if stored.status.allocation is None and FINALIZER not in stored.metadata.finalizers:
        return protected(stored), False
    status = replace(
        stored.status,
        allocation=stored.status.allocation or mine.status.allocation,
        reserved_for=known.claims.consumers(stored, consumer),
    )
    return replace(stored, status=status), True


def _not_created(claim: ResourceClaim, message: str) -> str:
    """Return why, without the name, which is another in every try: so it is said once."""
    prefix = claim.metadata.generate_name
    message = message.replace(claim.metadata.name, prefix)
    return f"create claim for extended resources {claim.metadata.namespace}/{prefix}: {message}"


def _doing(stored: ResourceClaim, *, is_status: bool) -> str:
    if not is_status:
        return f"add finalizer to claim {_shown(stored)}"
    if stored.status.allocation is None:
        return f"add allocation and reservation to claim {_shown(stored)}"
    return f"add reservation to claim {_shown(stored)}"


# --- reading and writing --------------------------------------------------------------------------


def _written(write: Create | Update | Delete) -> Steps[Done | Refused]:
    """Carry a write out until it is answered; one that was lost before may have been carried out.

    Then a refusal says nothing, whatever its reason: it is a conflict until the claim was read.
    """
    wait_s = WAIT_FIRST_S
    was_lost = False
    while True:
        answer = yield write
        match answer:
            case Done():
                return answer
            case Refused(message=message):
                return Refused(CONFLICT, message) if was_lost else answer
        was_lost = True
        yield Sleep(wait_s)
        wait_s = min(2 * wait_s, WAIT_MOST_S)


def _update(known: Claims, claim: ResourceClaim, subresource: str) -> Steps[bool]:
    """Write a claim; False if there is no use in trying again."""
    answer = yield from _written(Update(claim, subresource))
    match answer:
        case Done(value=value):
            known.put_claim(value)
            return True
        case Refused(reason=reason) if reason in (CONFLICT, NOT_FOUND):
            yield from _reread(known, key_of(claim))
            return True
        case _:
            return False


def _delete(known: Claims, claim: ResourceClaim) -> Steps[bool]:
    answer = yield from _written(Delete(Target.of(claim)))
    if isinstance(answer, Done):
        known.remove_claim(claim)
        return False
    yield from _reread(known, key_of(claim))
    return answer.reason == CONFLICT


def _reread(known: Claims, key: ClaimKey) -> Steps[None]:
    """Read a claim until it is certain what the server has."""
    wait_s = WAIT_FIRST_S
    while True:
        answer = yield Read(Target(ResourceClaim, *key))
        stored = known.claims.stored.get(key)
        match answer:
            case Done(value=None):
                if stored is not None:
                    known.remove_claim(stored)
                return
            case Done(value=value):
                if stored is not None and stored.metadata.uid != value.metadata.uid:
                    known.remove_claim(stored)
                known.put_claim(value)
                return
            case Refused(message=message):
                raise Setback(f"get updated claim {'/'.join(key)} after conflict: {message}")
        yield Sleep(wait_s)
        wait_s = min(2 * wait_s, WAIT_MOST_S)


def _is_same(one: AllocationResult, other: AllocationResult | None) -> bool:
    return other is not None and one.devices == other.devices


def _is_same_owner(stored: ResourceClaim, claim: ResourceClaim) -> bool:
    return stored.metadata.owner_references == claim.metadata.owner_references


def _shown(claim: ResourceClaim) -> str:
    return "/".join(key_of(claim))
