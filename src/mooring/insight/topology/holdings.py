"""Who has which device: the claims that are allocated, and the pods that they are reserved for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import (
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)

DeviceKey = tuple[str, str, str]  # driver, pool, device


class Owner(Struct, frozen=True, order=True):
    """A claim with devices."""

    namespace: str
    name: str
    users: tuple[str, ...] = ()  # whom it is reserved for

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Hold(NamedTuple):
    """What an owner has of a device: all of it, or a share with some capacity."""

    owner: Owner
    requests: tuple[str, ...]
    is_share: bool
    consumed: Mapping[str, Quantity]


class Holdings:
    """What all claims have, by device."""

    def __init__(self, claims: Iterable[ResourceClaim]) -> None:
        self._holds: dict[DeviceKey, dict[Owner, Hold]] = {}
        self._admins: dict[DeviceKey, dict[Owner, None]] = {}
        for claim in claims:
            if claim.status.allocation is not None:
                owner = _owner(claim)
                for result in claim.status.allocation.devices.results:
                    self._enter(owner, result)
        self.owners = tuple(sorted({owner for holds in self._holds.values() for owner in holds}))

    def of(self, key: DeviceKey) -> tuple[Hold, ...]:
        """Return the holds of a device, by owner."""
        return tuple(sorted(self._holds.get(key, {}).values(), key=lambda hold: hold.owner))

    def admins_of(self, key: DeviceKey) -> tuple[Owner, ...]:
        """Return the claims that look at a device with admin access; they own nothing."""
        return tuple(sorted(self._admins.get(key, ())))

    def keys(self) -> set[DeviceKey]:
        """Return all devices that claims name."""
        return {*self._holds, *self._admins}

    def _enter(self, owner: Owner, result: DeviceRequestAllocationResult) -> None:
        key = (result.driver, result.pool, result.device)
        if result.admin_access:
            self._admins.setdefault(key, {})[owner] = None
            return
        holds = self._holds.setdefault(key, {})
        holds[owner] = _joined(holds.get(owner), owner, result)


def _joined(hold: Hold | None, owner: Owner, result: DeviceRequestAllocationResult) -> Hold:
    """Return a hold with one more result; an owner may have several shares of a device."""
    consumed = dict(hold.consumed) if hold else {}
    for name, amount in (result.consumed_capacity or {}).items():
        consumed[name] = consumed[name] + amount if name in consumed else amount
    requests = {*(hold.requests if hold else ()), result.request}
    is_share = result.share_id is not None and (hold is None or hold.is_share)
    return Hold(owner, tuple(sorted(requests)), is_share, consumed)


def _owner(claim: ResourceClaim) -> Owner:
    users = tuple(sorted(map(_user, claim.status.reserved_for)))
    return Owner(claim.metadata.namespace, claim.metadata.name, users)


def _user(reference: ResourceClaimConsumerReference) -> str:
    if reference.resource == "pods" and not reference.api_group:
        return f"pod {reference.name}"
    return f"{reference.resource} {reference.name}"
