"""Whose devices are: the claims that have them, with the pods that they are reserved for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from mooring.api.quantity import Quantity
from mooring.insight.devices import ClaimHolding, DeviceHolding
from mooring.insight.devices.model import ClaimId, Holder


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


class Owners:
    """The claims of a cluster as owners."""

    def __init__(self, claims: Iterable[ClaimHolding]) -> None:
        self._owners = {claim.id: _owner(claim) for claim in claims}

    def of(self, claims: Iterable[ClaimId]) -> tuple[Owner, ...]:
        """Return claims as owners, each once, by name."""
        return tuple(sorted({self._owners[claim] for claim in claims}))

    def holds(self, holding: DeviceHolding) -> tuple[Hold, ...]:
        """Return what claims have of a device, by owner."""
        found: dict[ClaimId, list[Holder]] = {}
        for holder in holding.holders:
            found.setdefault(holder.claim, []).append(holder)
        return tuple(
            sorted(
                (_hold(self._owners[claim], holders) for claim, holders in found.items()),
                key=lambda hold: hold.owner,
            )
        )


def _hold(owner: Owner, holders: Iterable[Holder]) -> Hold:
    """Return what an owner has of a device, which may be several shares."""
    consumed: dict[str, Quantity] = {}
    for holder in holders:
        for name, amount in holder.consumed:
            consumed[name] = consumed.get(name, Quantity.ZERO) + amount
    requests = {holder.request for holder in holders}
    is_share = all(holder.share_id for holder in holders)
    return Hold(owner, tuple(sorted(requests)), is_share, consumed)


def _owner(claim: ClaimHolding) -> Owner:
    users = sorted(f"{consumer.kind} {consumer.name}" for consumer in claim.consumers)
    return Owner(claim.id.namespace, claim.id.name, tuple(users))
