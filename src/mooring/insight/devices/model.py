"""What is told of devices and of claims.

# holder: a claim that has a device, or a share of it
# open: a claim that asks for this device and nothing in particular would get it now
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from mooring.api.meta import Condition
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device, DeviceTaint, ResourceClaim
from mooring.insight.devices.places import Place


class State(StrEnum):
    """What may be had of a device."""

    FREE = "free"
    SHARED = "shared"  # some claims have shares, and more may be had
    TAKEN = "taken"
    BLOCKED = "blocked"  # nobody has it, but others have what it needs
    TAINTED = "tainted"
    UNUSABLE = "unusable"  # no claim gets it, whatever is given back
    MISSING = "missing"  # claims have it, but no slice has


class DeviceId(NamedTuple):
    """What names a device."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class ClaimId(NamedTuple):
    """What names a claim."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Consumer(NamedTuple):
    """A pod or group that may use a claim."""

    kind: str  # pod, podgroup, or the resource with its group
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class Holder(Struct, frozen=True):
    """A claim that has a device, or a share of it."""

    claim: ClaimId
    request: str
    is_admin: bool = False
    share_id: str = ""
    consumed: tuple[tuple[str, Quantity], ...] = ()
    consumers: tuple[Consumer, ...] = ()


class Room(NamedTuple):
    """How much of a capacity the shares of a device have."""

    name: str
    total: Quantity
    used: Quantity
    left: Quantity


class Mark(NamedTuple):
    """A taint, and the rule that it comes from, if not from the slice."""

    taint: DeviceTaint
    rule: str = ""

    def __str__(self) -> str:
        value = f"={self.taint.value}" if self.taint.value else ""
        return f"{self.taint.key}{value}:{self.taint.effect}"


class User(NamedTuple):
    """A device that has some of what another one needs, and the claims that have it."""

    device: DeviceId
    claims: tuple[ClaimId, ...]


class Reason(NamedTuple):
    """Why a device cannot be had."""

    state: State
    text: str
    users: tuple[User, ...] = ()


class DeviceHolding(Struct, frozen=True):
    """A device, who has it, and why it cannot be had if it cannot."""

    id: DeviceId
    state: State
    is_open: bool
    place: Place
    slice_name: str
    device: Device  # as its slice has it, without the taints of rules
    holders: tuple[Holder, ...] = ()
    admins: tuple[Holder, ...] = ()
    rooms: tuple[Room, ...] = ()
    marks: tuple[Mark, ...] = ()
    reasons: tuple[Reason, ...] = ()
    conflict: str = ""  # how claims have more of it than there is
    is_replaced: bool = False  # a newer generation of the pool has it, too


class ClaimState(StrEnum):
    """How far a claim has come."""

    PENDING = "pending"
    ALLOCATED = "allocated"
    RESERVED = "reserved"
    DELETING = "deleting"


class Wanted(NamedTuple):
    """A request of a claim, and the alternative that was chosen."""

    name: str
    classes: tuple[str, ...]
    number: str  # of devices
    chosen: str = ""


class Held(Struct, frozen=True):
    """A device that a claim has."""

    id: DeviceId
    request: str
    node: str  # "" if it is not one node
    is_published: bool
    is_admin: bool = False
    share_id: str = ""
    consumed: tuple[tuple[str, Quantity], ...] = ()
    conditions: tuple[Condition, ...] = ()
    conflict: str = ""


class ClaimHolding(Struct, frozen=True):
    """A claim, what it wants and has, and for whom."""

    id: ClaimId
    state: ClaimState
    claim: ResourceClaim
    wanted: tuple[Wanted, ...] = ()
    held: tuple[Held, ...] = ()
    owner: Consumer | None = None
    template: str = ""
    consumers: tuple[Consumer, ...] = ()
    nodes: tuple[str, ...] = ()  # where its devices and consumers are


class Holdings(Struct, frozen=True):
    """All devices and claims, sorted by their names."""

    devices: tuple[DeviceHolding, ...]
    claims: tuple[ClaimHolding, ...]
    are_nodes_known: bool  # else each device is judged as if its node were there
